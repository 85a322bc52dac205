"""The text with which a translation has to start, as the ids that are forced.

The text is cut into pieces as if it stood alone, and the model goes on from its last piece. So its last word may grow:
``Haus`` may become ``Hausboot`` or ``Haus am See``. White space at its ends is left away, because the space before a
word belongs to the piece of that word: a prefix that ended in one would be followed by a second.
"""

from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import UserError


def prefix_ids(text: str, tokenizer: Tokenizer, limit: int) -> list[int]:
    """Return the target ids of a prefix.

    Args:
        text: without line ends.
        tokenizer: of the model.
        limit: longest translation, in ids, that the model can be asked for, without ``</s>``.

    Raises:
        UserError: nothing of it is left to encode, it is too long, or the tokenizer cannot spell it.
    """
    text = text.strip()
    if not text:
        raise UserError("the prefix of a translation is empty", expected="text", hint="leave it away")
    ids = tokenizer.encode_tgt([text])[0]
    if len(ids) > limit:
        raise UserError(
            "the prefix is longer than a translation may be", got=f"{len(ids)} tokens", expected=f"at most {limit}"
        )
    if (spelled := tokenizer.decode(ids)) != text:
        raise UserError(
            "the run's tokenizer cannot spell the prefix", got=spelled, expected=text, hint="change these characters"
        )
    return ids
