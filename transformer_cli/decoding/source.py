"""One sentence that waits to be translated, and what is wished of its translation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding.forbidden import ForbiddenPhrases

Found = TypeVar("Found")


@dataclass(frozen=True)
class Source:
    """Source ids and what belongs to them alone.

    Attributes:
        ids: source ids, ``</s>`` at the end.
        number: its line in the input and its piece of that line; they seed its samples, which so do not depend on its
            batch.
        prefix: target ids with which every translation starts.
        required: phrases of target ids that its translation has to hold.
        forbidden: what its translation must not hold.
        listed: ids, ascending, of which alone its translation may be made, if there is a shortlist. Within a search the
            other ids are then numbers in this list (``own_tokens.py``).
        cap: longest translation, with ``</s>``; set by the decoder, which knows its limits.
    """

    ids: Sequence[int]
    number: tuple[int, int] = (0, 0)
    prefix: Sequence[int] = ()
    required: Sequence[Sequence[int]] = ()
    forbidden: ForbiddenPhrases | None = None
    listed: NDArray[np.int64] | None = field(default=None, compare=False)
    cap: int = 0

    @property
    def n_required(self) -> int:
        """How many tokens its required phrases have."""
        return sum(map(len, self.required))


def first_alike(sentences: Sequence[Source]) -> list[int]:
    """Return for each sentence the number of the first one from which it differs in its number alone."""
    first: dict[object, int] = {}
    return [first.setdefault(_all_but_number(sentence), number) for number, sentence in enumerate(sentences)]


def once_if_alike(search: Callable[[list[Source]], list[Found]], sentences: Sequence[Source]) -> list[Found]:
    """Search each sentence that is unlike all before it; what was found goes to all that are like it."""
    first = first_alike(sentences)
    unlike = sorted(set(first))
    of_first = dict(zip(unlike, search([sentences[number] for number in unlike]), strict=True))
    return [of_first[number] for number in first]


def _all_but_number(one: Source) -> object:
    return tuple(one.ids), tuple(one.prefix), tuple(map(tuple, one.required)), id(one.forbidden), one.cap
