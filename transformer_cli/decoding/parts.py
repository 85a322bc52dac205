"""A line as the parts that a model can take: one as a rule, several where it is longer than training allowed.

Between which subword pieces to cut is decided in ``pieces.py``, where sentences end in ``sentences.py``.
"""

from collections.abc import Sequence

from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.decoding.pieces import cut, is_byte, places
from transformer_cli.decoding.sentences import sentence_ends


class LineCutter:
    """Cuts lines of text into parts, each the ids of a source."""

    def __init__(self, tokenizer: Tokenizer, src_lang: str, before: Sequence[int], longest: int) -> None:
        """Take what the cuts depend on.

        Args:
            tokenizer: the model's own.
            src_lang: language of the lines.
            before: ids in front of every part that are no text: the tag of a language.
            longest: most ids of a part, with these and ``</s>``.
        """
        self._tokenizer, self._src_lang, self._before = tokenizer, src_lang, before
        self._longest = longest - len(before) - 1  # what they leave to the text

    def parts(self, lines: Sequence[str]) -> list[list[list[int]]]:
        """Return the ids of the parts of each line; a blank line has none."""
        return [self._parts(*both) for both in zip(lines, self._tokenizer.encode_src(lines), strict=True)]

    def _parts(self, line: str, ids: list[int]) -> list[list[int]]:
        if not line.strip():
            return []
        if len(ids) <= self._longest:
            return [[*self._before, *ids, EOS]]
        pieces = self._tokenizer.src_pieces(ids)
        sentences = places(pieces, line, sentence_ends(line, self._src_lang))
        return [[*self._before, *ids[start:end], EOS] for start, end in cut(pieces, self._longest, sentences)]

    def texts(self, line: str, parts: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each part of a line; what is spelled in bytes is left out, if there are several."""
        if len(parts) == 1:
            return [line]
        pieces = [self._tokenizer.src_pieces(part[len(self._before) : -1]) for part in parts]
        spelled = [[piece for piece in of_part if not is_byte(piece)] for of_part in pieces]
        return ["".join(of_part).replace("\u2581", " ") for of_part in spelled]

    def is_spelled(self, parts: Sequence[Sequence[int]]) -> bool:
        """Return whether the parts have characters without a piece, which the model reads byte by byte."""
        return any(is_byte(piece) for part in parts for piece in self._tokenizer.src_pieces(part))
