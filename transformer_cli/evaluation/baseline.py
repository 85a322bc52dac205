"""What is reached without a model: each source line gets the target of the closest training source.

A score says little unless one knows what copying from the training data would score.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.languages import units
from transformer_cli.data.pairs import ParallelText

#: An n-gram and its how-manyth occurrence in the line: with these, multisets intersect as plain sets do.
_Gram = tuple[str | tuple[str, str], int]


def nearest_neighbour(train: ParallelText, sources: Sequence[str], *, src_lang: str = "") -> list[str]:
    """Return for each source the target of the training source that is most like it.

    Likeness is the Dice coefficient 2 |A ∩ B| / (|A| + |B|) of the multisets of 1- and 2-grams of the lower-cased
    words (Dice 1945), or of the characters in languages that write no spaces. The first of equals wins; a source that
    shares nothing with any line gets an empty target.

    Args:
        train: the training pairs.
        sources: lines to find neighbours for.
        src_lang: code of the sources' language.
    """
    postings, sizes = _index(train.src, src_lang)
    return [train.tgt[best] if best is not None else "" for best in _closest(sources, postings, sizes, src_lang)]


def _index(lines: Sequence[str], lang: str) -> tuple[dict[_Gram, NDArray[np.intp]], NDArray[np.intp]]:
    """Return for each n-gram the lines that hold it, and for each line the number of its n-grams."""
    found: dict[_Gram, list[int]] = {}
    sizes = np.zeros(len(lines), dtype=np.intp)
    for number, line in enumerate(lines):
        for gram in _grams(line, lang):
            found.setdefault(gram, []).append(number)
            sizes[number] += 1
    return {gram: np.array(numbers, dtype=np.intp) for gram, numbers in found.items()}, sizes


def _closest(
    sources: Sequence[str], postings: dict[_Gram, NDArray[np.intp]], sizes: NDArray[np.intp], lang: str
) -> Iterator[int | None]:
    for source in sources:
        grams = list(_grams(source, lang))
        shared = [postings[gram] for gram in grams if gram in postings]
        if not shared:
            yield None
            continue
        overlap = np.bincount(np.concatenate(shared), minlength=len(sizes))
        yield int(np.argmax(2 * overlap / (sizes + len(grams))))


def _grams(line: str, lang: str) -> Iterator[_Gram]:
    single = units(line.lower(), lang)
    counts = Counter[str | tuple[str, str]]([*single, *pairwise(single)])
    for gram, count in counts.items():
        for occurrence in range(count):
            yield gram, occurrence
