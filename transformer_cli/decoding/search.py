"""The loop of every search: sentences take places, all places make a step, who is finished makes room.

Legend: N places (a sentence each), K hypotheses of a place, V vocabulary.

The loop knows neither how a model computes (``model_steps.py``), nor how hypotheses are chosen (``beam.py``,
``sampling.py``), nor when it is noticed that a sentence has ended (``history.py``). Waiting sentences take the places
of finished ones, so that the steps stay full; that costs about a step, so it happens when an eighth of the places is
free. When none wait, places are given up; the copy of the caches costs half a step, so it happens when half of the
places are free.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from transformer_cli.decoding.hypotheses import Hypotheses
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.source import Source

_REFILL, _GIVE_UP = 1 / 8, 1 / 2  # share of free places


class SteppedModel(Protocol):
    """What a search sees of a model; rows ``[N * K]`` are places times hypotheses."""

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""

    def release(self, places: list[int]) -> None:
        """Hear that the sentences of these places are finished."""

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return log-probabilities ``[N * K, V]``, which may be overwritten.

        Args:
            tokens: newest token ``[N, K]`` of each hypothesis; ``<s>`` at a sentence's first step.
            parents: ``[N, K]`` which hypothesis of the step before it continues.
        """


class Chooser(Protocol):
    """How hypotheses are grown and ended: beam search or sampling.

    Attributes:
        live: the hypotheses that still grow.
    """

    live: Hypotheses

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""

    def advance(self, log_probs: Tensor) -> dict[int, list[Finished]]:
        """Grow all hypotheses by one token; return what was found for each place that is now known to be finished.

        That may be some steps after its sentence has ended: see ``history.py``.

        Args:
            log_probs: ``[N * K, V]`` of what may follow each hypothesis; overwritten.
        """


def search(
    model: SteppedModel,
    chooser: Chooser,
    sentences: Sequence[Source],
    n_places: int,
    *,
    refill: bool = True,
    usable_places: Callable[[int], int] = lambda n: n,
) -> list[list[Finished]]:
    """Search translations of any number of sentences.

    Args:
        model: with ``n_places`` places.
        chooser: with as many.
        sentences: in the order in which they are taken.
        n_places: how many are translated side by side.
        refill: let sentences take the places of finished ones; otherwise only when all are finished.
        usable_places: the least number of places, from the given one on, with which the model may go on.

    Returns:
        What the chooser found for each sentence.
    """
    waiting, found = deque(range(len(sentences))), [list[Finished]() for _ in sentences]
    at: list[int | None] = [None] * n_places  # which sentence is in a place
    while True:
        free = [place for place, number in enumerate(at) if number is None]
        if waiting and (len(free) == len(at) or refill) and len(free) >= _REFILL * len(at):
            numbers = [waiting.popleft() for _ in free[: len(waiting)]]
            places, free = free[: len(numbers)], free[len(numbers) :]
            model.admit(places, [sentences[number] for number in numbers])
            chooser.admit(places, [sentences[number] for number in numbers])
            for place, number in zip(places, numbers, strict=True):
                at[place] = number
        if len(free) == len(at):
            return found
        if not waiting and len(free) >= _GIVE_UP * len(at):
            kept = _kept(at, usable_places)
            if len(kept) < len(at):
                model.keep(kept)
                chooser.keep(kept)
                at = [at[place] for place in kept]
        over: dict[int, list[Finished]] = {}
        while not over:  # what has been noted of steps is about these places
            over = chooser.advance(model.step(chooser.live.newest, chooser.live.parents))
        for place, result in over.items():
            found[at[place]], at[place] = result, None  # type: ignore[index]
        model.release(list(over))


def _kept(at: list[int | None], usable_places: Callable[[int], int]) -> list[int]:
    busy = [place for place, number in enumerate(at) if number is not None]
    free = [place for place, number in enumerate(at) if number is None]
    return [*busy, *free[: usable_places(len(busy)) - len(busy)]]
