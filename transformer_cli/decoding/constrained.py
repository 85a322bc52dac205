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
All places are shared out together, as arrays: hypothesis by hypothesis it took ten times as long as the model.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.decoding.beam import BeamSearch, alive
from transformer_cli.decoding.ranking import DEAD, to_grid
from transformer_cli.decoding.required import State, required_of
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source

Rows = NDArray[np.int64]  # continuations [n, 4]: place, parent, token, log-probability in steps
_PLACE, _PARENT, _TOKEN, _TOTAL = range(4)


class ConstrainedBeam(BeamSearch):
    """A beam that knows how far each hypothesis has come with the phrases of its sentence."""

    def __init__(
        self, n_places: int, longest: int, settings: DecodeSettings, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__(n_places, longest, replace(settings, look_every=1), device)  # the host shares out each step
        self._required = [required_of(())] * n_places
        self._states: list[list[State]] = [[] for _ in range(n_places)]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""
        super().admit(places, sentences)
        for place, sentence in zip(places, sentences, strict=True):
            self._required[place] = required_of(tuple(map(tuple, sentence.required)))
            self._states[place] = [self._required[place].start] * self._settings.beam_size

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        super().keep(places)
        self._required = [self._required[place] for place in places]
        self._states = [self._states[place] for place in places]

    def _may_end(self) -> Tensor:
        allowed = super()._may_end().expand(self._totals.shape).clone()
        at_cap, living = self.live.at_cap(), alive(self._totals).tolist()
        for place in self._constrained():
            done = [self._required[place].is_met(state) for state in self._states[place]]
            in_time = self._pools[place].best or any(map(all, zip(done, living[place], strict=True)))
            if in_time or not at_cap[place]:
                allowed[place] &= torch.tensor(done, device=self._device)
        return allowed

    def _choose(self, candidates: Tensor, ids: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        totals, parents, newest = super()._choose(candidates, ids, log_probs)
        at_cap = self.live.at_cap()
        if not (places := [place for place in self._constrained() if not at_cap[place]]):
            return totals, parents, newest
        found = _best_first(_among(candidates, ids, places), self._by_next_tokens(places, log_probs))
        chosen = found[_shared_out(found[:, _PLACE], self._n_met(found, places), self._settings.beam_size)]
        chosen_places, at = chosen[:, _PLACE], _turns(chosen[:, _PLACE])
        before = self._states.copy()
        for place in places:
            totals[place], parents[place], newest[place] = DEAD, 0, 0
            self._states[place] = [self._required[place].start] * self._settings.beam_size
        totals[chosen_places, at], parents[chosen_places, at], newest[chosen_places, at] = (
            torch.from_numpy(chosen).to(self._device)[:, [_TOTAL, _PARENT, _TOKEN]].unbind(1)
        )
        for number, (place, parent, token, _) in zip(at.tolist(), chosen.tolist(), strict=True):
            self._states[place][number] = self._required[place].step(before[place][parent], token)
        return totals, parents, newest

    def _by_next_tokens(self, places: list[int], log_probs: Tensor) -> Rows:
        """Return the continuations of each hypothesis by the next token of a phrase."""
        wanted = [
            (place, parent, token)
            for place in places
            for parent, state in enumerate(self._states[place])
            for token in self._required[place].wanted(state)
        ]
        if not wanted:
            return np.empty((0, 4), dtype=np.int64)
        at, parents, tokens = torch.tensor(wanted, device=self._device).unbind(1)
        worth = to_grid(log_probs[at * self._settings.beam_size + parents, tokens])
        return torch.stack([at, parents, tokens, self._totals[at, parents] + worth], dim=1).cpu().numpy()

    def _n_met(self, found: Rows, places: list[int]) -> NDArray[np.int64]:
        """Return how many tokens each continuation has met; few of them end in a token of a phrase."""
        held = np.zeros((len(self._states), self._settings.beam_size), dtype=np.int64)
        for place in places:
            held[place] = [self._required[place].n_held(state) for state in self._states[place]]
        n_met = held[found[:, _PLACE], found[:, _PARENT]]
        of_phrases = set[int]().union(*(self._required[place].tokens for place in places))
        rows = np.flatnonzero(np.isin(found[:, _TOKEN], list(of_phrases)))
        for row, (place, parent, token, _) in zip(rows.tolist(), found[rows].tolist(), strict=True):
            required = self._required[place]
            n_met[row] = required.n_met(required.step(self._states[place][parent], token))
        return n_met

    def _constrained(self) -> list[int]:
        return [place for place in np.flatnonzero(self.live.busy).tolist() if self._required[place].phrases]


def _among(candidates: Tensor, ids: Tensor, places: list[int]) -> Rows:
    """Return the continuations by the best tokens of each hypothesis; candidates and ids ``[N, K, n]``."""
    chosen = torch.tensor(places, device=ids.device)[:, None, None].expand(-1, *ids.shape[1:])
    parents = torch.arange(ids.size(1), device=ids.device)[:, None].expand_as(chosen)
    rows = torch.stack([chosen, parents, ids[places], candidates[places]], dim=-1)  # [m, K, n, 4]
    return rows.flatten(0, 2).cpu().numpy()


def _best_first(*found: Rows) -> Rows:
    """Put continuations in order, place by place, each once; of equals the earlier parent and the lower id first."""
    rows = np.concatenate(found)
    rows = rows[rows[:, _TOTAL] > DEAD // 2]
    rows = rows[np.lexsort((rows[:, _TOKEN], rows[:, _PARENT], -rows[:, _TOTAL], rows[:, _PLACE]))]
    return rows[np.any(np.diff(rows, axis=0, prepend=-1), axis=1)]  # the same continuation has the same total


def _shared_out(places: NDArray[np.int64], n_met: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return which continuations are chosen, ascending: k in each place, the best of each number of tokens in turn."""
    turns = _turns(places * (n_met.max(initial=0) + 1) + n_met)
    in_turn = np.lexsort((-n_met, turns, places))
    return np.sort(in_turn[_turns(places[in_turn]) < k])


def _turns(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many equal ones stand before each key."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    turns = np.empty_like(keys)
    turns[order] = np.arange(len(keys)) - np.repeat(begins, np.diff(begins, append=len(keys)))
    return turns
