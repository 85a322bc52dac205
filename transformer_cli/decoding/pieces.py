"""Cutting a line that is too long for the model into pieces, and joining their translations."""

import re
from collections.abc import Sequence

from transformer_cli.data.languages import writes_spaces

_SENTENCE_END = re.compile(r"[.!?。！？;；…][\"'”’»)\]」』]*$")
_INNER_BYTE = re.compile(r"<0x[89AB][0-9A-F]>")  # a UTF-8 continuation byte: no character starts here
_WORD_START = "\u2581"


def cut(pieces: Sequence[str], limit: int) -> list[tuple[int, int]]:
    """Cut a line into ranges of at most ``limit`` subword pieces, as few as the places to cut allow.

    The last place within reach is taken, of the best kind there is: after a sentence's end, else before a word, else
    between characters.

    Args:
        pieces: the subword pieces of the line.
        limit: most pieces in a range, at least 1.
    """
    ranges, start = [], 0
    while len(pieces) - start > limit:
        end = start + _cut_place(pieces[start : start + limit + 1])
        ranges.append((start, end))
        start = end
    return [*ranges, (start, len(pieces))]


def join(texts: Sequence[str], tgt_lang: str) -> str:
    """Join the translations of a line's pieces, with a space where the language writes spaces."""
    if not writes_spaces(tgt_lang):
        return "".join(texts)
    return " ".join(text.strip() for text in texts if text.strip()) if len(texts) > 1 else texts[0]


def _cut_place(pieces: Sequence[str]) -> int:
    """Return where to cut the first ``len(pieces) - 1`` pieces; the last one is only looked at."""
    for fits in (_ends_sentence, _starts_word, _starts_character):
        for place in range(len(pieces) - 1, 0, -1):
            if fits(pieces, place):
                return place
    return len(pieces) - 1


def _ends_sentence(pieces: Sequence[str], place: int) -> bool:
    before, after = pieces[place - 1], pieces[place]
    ends = _SENTENCE_END.search(before) is not None
    return ends and (after.startswith(_WORD_START) or not before[-1].isascii())  # not inside 3.14


def _starts_word(pieces: Sequence[str], place: int) -> bool:
    return pieces[place].startswith(_WORD_START)


def _starts_character(pieces: Sequence[str], place: int) -> bool:
    return _INNER_BYTE.fullmatch(pieces[place]) is None
