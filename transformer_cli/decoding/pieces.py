"""Cutting a line that is too long for the model into pieces, and joining their translations."""

import re
from collections.abc import Collection, Sequence
from itertools import accumulate

from transformer_cli.data.languages import writes_spaces

_SENTENCE_END = re.compile(r"[.!?。！？;；…][\"'”’»)\]」』]*$")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_INNER_BYTE = re.compile(r"<0x[89AB][0-9A-F]>")  # a UTF-8 continuation byte: no character starts here
_WORD_START = "\u2581"


def cut(pieces: Sequence[str], limit: int, sentences: Collection[int] = ()) -> list[tuple[int, int]]:
    """Cut a line into ranges of at most ``limit`` subword pieces, as few as the places to cut allow.

    The last place within reach is taken, of the best kind there is: after a sentence, so that a range holds as many
    whole ones as fit, else after a mark that may end a sentence or a clause, else before a word, else between
    characters. Nothing is left out: the ranges join to the line.

    Args:
        pieces: the subword pieces of the line.
        limit: most pieces in a range, at least 1.
        sentences: after how many pieces a sentence is known to end (``places``).
    """
    ranges, start = [], 0
    while len(pieces) - start > limit:
        end = _cut_place(pieces, start, start + limit, sentences)
        ranges.append((start, end))
        start = end
    return [*ranges, (start, len(pieces))]


def places(pieces: Sequence[str], line: str, ends: Sequence[int]) -> set[int]:
    """Return after how many pieces of a line so many of its characters are complete, where a piece ends just there.

    Args:
        pieces: the subword pieces of the line.
        line: its text.
        ends: numbers of characters.
    """
    before = list(accumulate(map(_n_characters, pieces)))
    extra = before[-1] - len(line) if pieces else 0  # 1: the pieces begin with a space that the text has not
    if extra not in (0, 1):
        return set()  # the tokenizer normalises: its pieces do not spell the line
    found = {characters - extra: place for place, characters in enumerate(before, start=1)}
    return {found[end] for end in ends if end in found}


def is_byte(piece: str) -> bool:
    """Return whether a piece is one byte of a character for which there is no piece."""
    return _BYTE.fullmatch(piece) is not None


def join(texts: Sequence[str], tgt_lang: str) -> str:
    """Join the translations of a line's pieces, with a space where the language writes spaces."""
    if not writes_spaces(tgt_lang):
        return "".join(texts)
    return " ".join(text.strip() for text in texts if text.strip()) if len(texts) > 1 else texts[0]


def _cut_place(pieces: Sequence[str], start: int, last: int, sentences: Collection[int]) -> int:
    """Return where the range that begins at ``start`` ends, ``last`` at the latest."""
    for fits in (lambda _, place: place in sentences, _ends_sentence, _starts_word, _starts_character):
        for place in range(last, start, -1):
            if fits(pieces, place):
                return place
    return last


def _n_characters(piece: str) -> int:
    """Return how many characters begin in a piece."""
    if is_byte(piece):
        return int(_INNER_BYTE.fullmatch(piece) is None)
    return len(piece)


def _ends_sentence(pieces: Sequence[str], place: int) -> bool:
    before, after = pieces[place - 1], pieces[place]
    ends = _SENTENCE_END.search(before) is not None
    return ends and (after.startswith(_WORD_START) or not before[-1].isascii())  # not inside 3.14


def _starts_word(pieces: Sequence[str], place: int) -> bool:
    return pieces[place].startswith(_WORD_START)


def _starts_character(pieces: Sequence[str], place: int) -> bool:
    return _INNER_BYTE.fullmatch(pieces[place]) is None
