"""A sentence whose target tokens are numbered by its own list, so that a search need not know of lists.

The list of a sentence becomes its vocabulary: token n of it is the n-th id of the list. Lists ascend and begin with the
special ids, which so keep their numbers, and the order of the others is that of their ids: of equals the search takes
the same one. A list that holds the whole vocabulary numbers it as ever.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.source import Source


def with_own_tokens(sentence: Source) -> Source:
    """Return a sentence whose wishes are numbered by its list, to which they are added; without either it stays."""
    if sentence.listed is None or not (sentence.prefix or sentence.required or sentence.forbidden):
        return sentence
    wished = [*sentence.prefix, *(token for phrase in sentence.required for token in phrase)]
    listed = np.union1d(sentence.listed, np.array(wished, dtype=np.int64))

    def numbered(ids: Sequence[int]) -> list[int]:
        numbers: list[int] = np.searchsorted(listed, ids).tolist()
        return numbers

    return replace(
        sentence,
        listed=listed,
        prefix=numbered(sentence.prefix),
        required=[numbered(phrase) for phrase in sentence.required],
        forbidden=sentence.forbidden and sentence.forbidden.among(listed.tolist()),
    )


def with_ids(sentence: Source, found: Finished) -> Finished:
    """Return a translation of such a sentence with the ids of its tokens."""
    if sentence.listed is None:
        return found
    return replace(found, tokens=sentence.listed[found.tokens].tolist() if found.tokens else [])
