"""One sentence that waits to be translated, and what is wished of its translation."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """Source ids and what belongs to them alone.

    Attributes:
        ids: source ids, ``</s>`` at the end.
        cap: longest translation, with ``</s>``.
        number: its place in the input, which seeds its samples: so they do not depend on its batch.
        prefix: target ids with which every translation starts.
    """

    ids: Sequence[int]
    cap: int
    number: int = 0
    prefix: Sequence[int] = ()
