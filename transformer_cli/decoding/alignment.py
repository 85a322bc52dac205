"""Which source words a translated word comes from, read off the attention of the decoder to the source.

Legend: T target pieces, S source pieces.

Each target piece is aligned to the source piece of the greatest weight in the step that predicts it, averaged over the
heads of the last decoder layer but one, where attention resembles an alignment most (Garg et al. 2019, section 4.1); in
a model of one layer, of that. Pieces become words, and the words pairs in the notation of Pharaoh.

Here is what follows from weights; a model computes them in ``attention_reader.py``. No torch here.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.languages import units, writes_spaces

Links = set[tuple[int, int]]  # source word, target word, from 0
Words = Sequence[int]  # those that a piece has a part of

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_STEPS = 2.0**13  # weights are compared in steps, so that noise in the last bits seldom decides


def words_of_pieces(pieces: Sequence[str], lang: str) -> list[Words]:
    """Return the words that each piece has a part of; a piece of spaces has none.

    Words are the ``units`` of the text that the pieces spell: what stands between spaces, or the characters in
    languages that write no spaces.
    """
    spelled = [_spelled(piece) for piece in pieces]
    word_of = _word_of_bytes(b"".join(spelled).decode("utf-8", "surrogateescape"), writes_spaces(lang))
    found: list[Words] = []
    at = 0
    for piece in spelled:
        numbers = {number for number in word_of[at : at + len(piece)] if number is not None}
        found.append(sorted(numbers))
        at += len(piece)
    return found


def links(weights: NDArray[np.float32], sources: Sequence[Words], targets: Sequence[Words]) -> Links:
    """Return the pairs of words of one translation.

    Args:
        weights: attention ``[T, S]`` of the step that predicts each target piece.
        sources: words of each source piece; those without (``</s>``, the tag of the language) are never aligned to.
        targets: words of each target piece.
    """
    candidates = [column for column, words in enumerate(sources) if words]
    if not candidates or not targets:
        return set()
    best = np.round(weights[:, candidates] * _STEPS).argmax(axis=1)  # of equal ones the first
    return {
        (source, target)
        for row, words in enumerate(targets)
        for target in words
        for source in sources[candidates[int(best[row])]]
    }


def pharaoh(found: Links) -> str:
    """Write pairs as ``0-0 1-2``: source word, target word, in this order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(found))


def count_words(words: Sequence[Words]) -> int:
    """Return how many words the pieces spell."""
    return max((numbers[-1] + 1 for numbers in words if numbers), default=0)


def spells(words: Sequence[Words], text: str, lang: str) -> bool:
    """Return whether the pieces spell as many words as a text has: a tokenizer that normalises may change it."""
    return count_words(words) == len(units(text, lang))


def _spelled(piece: str) -> bytes:
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode()


def _word_of_bytes(text: str, between_spaces: bool) -> list[int | None]:
    """Return for each byte of a text, broken ones escaped, its word, None for spaces."""
    found: list[int | None] = []
    number, inside = -1, False
    for character in text:
        is_space = character.isspace()
        if not is_space and not (inside and between_spaces):
            number += 1
        inside = not is_space
        found += [None if is_space else number] * len(character.encode("utf-8", "surrogateescape"))
    return found
