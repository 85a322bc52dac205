"""Beam search for translations that have to hold certain phrases (Hokamp & Liu 2017; Post & Vilar 2018).

Legend: N places (a sentence each), K hypotheses of a place, V vocabulary.

A hypothesis has met so many of the tokens of its sentence's phrases: all of those that stand in it, and the beginning
of one that it ends with. Besides the best continuations of each hypothesis, those by the next token of a phrase are
candidates. The beam is shared out among the numbers of tokens met, the best of each number in turn from the greatest
number on: hypotheses that have met nothing yet, and are more probable for it, cannot crowd out the others, and after as
many steps as there are tokens one hypothesis has met all. So that each number has room, the beam of such a sentence is
wider by a hypothesis for each token (``batch_decoder.py``). A hypothesis may end when it has met all; at the longest
length allowed also if none has.

Sentences without phrases are searched as ever. Phrases are pieces here: one that is spelled otherwise is not seen.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_cli.decoding.beam import BeamSearch, alive
from transformer_cli.decoding.ranking import DEAD, to_grid
from transformer_cli.decoding.required import Required, State
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source


class ConstrainedBeam(BeamSearch):
    """A beam that knows how far each hypothesis has come with the phrases of its sentence."""

    def __init__(
        self, n_places: int, longest: int, settings: DecodeSettings, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(n_places, longest, settings, device)
        self._required = [Required(()) for _ in range(n_places)]
        self._states: list[list[State]] = [[] for _ in range(n_places)]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""
        super().admit(places, sentences)
        for place, sentence in zip(places, sentences, strict=True):
            self._required[place] = Required(sentence.required)
            self._states[place] = [self._required[place].start] * self._settings.beam_size

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        super().keep(places)
        self._required = [self._required[place] for place in places]
        self._states = [self._states[place] for place in places]

    def _may_end(self) -> Tensor:
        allowed = super()._may_end().expand(self._totals.shape).clone()
        at_cap, living = self.live.at_cap().tolist(), alive(self._totals).tolist()
        for place in self._constrained():
            done = [self._required[place].is_met(state) for state in self._states[place]]
            in_time = self._pools[place].best or any(map(all, zip(done, living[place], strict=True)))
            if in_time or not at_cap[place]:
                allowed[place] &= torch.tensor(done, device=self._device)
        return allowed

    def _choose(self, candidates: Tensor, ids: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        totals, parents, newest = super()._choose(candidates, ids, log_probs)
        at_cap = self.live.at_cap().tolist()
        for place in self._constrained():
            if at_cap[place]:
                continue
            found = self._with_next(place, _alive_ones(candidates[place], ids[place]), log_probs)
            chosen = self._shared_out(place, found)
            self._states[place] = [self._after(place, parent, token) for parent, token in chosen]
            missing = self._settings.beam_size - len(chosen)
            rows = [(found[one], *one) for one in chosen] + [(DEAD, 0, 0)] * missing
            self._states[place] += [self._required[place].start] * missing
            row = torch.tensor(rows, device=self._device)
            totals[place], parents[place], newest[place] = row.unbind(1)
        return totals, parents, newest

    def _with_next(
        self, place: int, found: dict[tuple[int, int], int], log_probs: Tensor
    ) -> dict[tuple[int, int], int]:
        """Add the continuations (parent, token) of each hypothesis by the next token of a phrase."""
        required, states, k = self._required[place], self._states[place], self._settings.beam_size
        for parent in alive(self._totals[place]).nonzero()[:, 0].tolist():
            if wanted := required.wanted(states[parent]):
                totals = self._totals[place, parent] + to_grid(log_probs[place * k + parent, wanted])
                found |= _alive_ones(totals[None], torch.tensor([wanted]), parent)
        return found

    def _shared_out(self, place: int, found: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
        """Choose K continuations, the best first; of equals the earlier parent and the lower id first."""
        banks: dict[int, list[tuple[int, int]]] = {}
        for one in sorted(found, key=_best_first(found)):
            banks.setdefault(self._required[place].n_met(self._after(place, *one)), []).append(one)
        turns = sorted((turn, -n_met, one) for n_met, ones in banks.items() for turn, one in enumerate(ones))
        chosen = [one for _, _, one in turns[: self._settings.beam_size]]
        return sorted(chosen, key=_best_first(found))

    def _after(self, place: int, parent: int, token: int) -> State:
        return self._required[place].step(self._states[place][parent], token)

    def _constrained(self) -> list[int]:
        busy = self.live.busy.tolist()
        return [place for place, required in enumerate(self._required) if required.phrases and busy[place]]


def _alive_ones(candidates: Tensor, ids: Tensor, first: int = 0) -> dict[tuple[int, int], int]:
    """Return the totals of continuations (parent, token): candidates and ids ``[m, n]`` of m parents in a row."""
    rows = zip(candidates.tolist(), alive(candidates).tolist(), ids.tolist(), strict=True)
    return {
        (parent, token): total
        for parent, row in enumerate(rows, start=first)
        for total, lives, token in zip(*row, strict=True)
        if lives
    }


def _best_first(totals: dict[tuple[int, int], int]) -> Callable[[tuple[int, int]], tuple[int, tuple[int, int]]]:
    return lambda one: (-totals[one], one)
