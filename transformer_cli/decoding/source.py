"""One sentence that waits to be translated, and what is wished of its translation."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_cli.decoding.forbidden import ForbiddenPhrases


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
        cap: longest translation, with ``</s>``; set by the decoder, which knows its limits.
    """

    ids: Sequence[int]
    number: tuple[int, int] = (0, 0)
    prefix: Sequence[int] = ()
    required: Sequence[Sequence[int]] = ()
    forbidden: ForbiddenPhrases | None = None
    cap: int = 0

    @property
    def n_required(self) -> int:
        """How many tokens its required phrases have."""
        return sum(map(len, self.required))


def first_alike(sentences: Sequence[Source]) -> list[int]:
    """Return for each sentence the number of the first one from which it differs in its number alone."""
    first: dict[object, int] = {}
    return [first.setdefault(_all_but_number(sentence), number) for number, sentence in enumerate(sentences)]


def _all_but_number(one: Source) -> object:
    return tuple(one.ids), tuple(one.prefix), tuple(map(tuple, one.required)), id(one.forbidden), one.cap
