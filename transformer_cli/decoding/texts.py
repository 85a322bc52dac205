"""From what was found for the pieces of a line to its texts: put together, each once, the n best of them."""

from collections.abc import Sequence

from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.joining import by_draw, by_rank
from transformer_cli.decoding.pieces import join
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Hypothesis, Text

# Everything that some reader of the output could take for the end of a line.
_LINE_BREAKS = dict.fromkeys(map(ord, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), " ")


def chosen_texts(
    pieces: list[list[Finished]], settings: DecodeSettings, tokenizer: Tokenizer, tgt_lang: str
) -> list[Text]:
    """Return the n best texts, best first, each with a translation of every piece; a blank line has none."""
    if not pieces:
        return [("", [])]
    if settings.mbr:
        from transformer_cli.decoding.risk import by_risk  # loads sacreBLEU, which nothing else here needs

        pieces = [by_risk(piece, tokenizer.decode) for piece in pieces]
    chosen: list[Text] = []
    for parts in by_draw(pieces) if settings.repeats else by_rank(pieces):
        text = join([tokenizer.decode(part.tokens) for part in parts], tgt_lang).translate(_LINE_BREAKS)
        if settings.repeats or text not in (other for other, _ in chosen):
            chosen.append((text, parts))
        if len(chosen) == settings.n_best:
            break
    return chosen


def hypothesis(text: str, parts: Sequence[Finished], tokenizer: Tokenizer) -> Hypothesis:
    """Return what is told of a text that was put together of such parts."""
    known = all(part.log_probs for part in parts)  # of </s> at least, if the engine tells
    return Hypothesis(
        text,
        sum(part.score for part in parts) / max(1, len(parts)),
        [piece for part in parts for piece in tokenizer.tgt_pieces(part.tokens)],
        any(part.capped for part in parts),
        [value for part in parts for value in part.log_probs[:-1]] if known else None,
        [part.log_probs[-1] for part in parts] if known else None,
    )
