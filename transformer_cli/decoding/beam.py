"""Beam search, knowing nothing of the model: it sees tokens and log-probabilities.

Legend: N places (a sentence each), K live hypotheses of a place, V vocabulary.

A hypothesis ends with ``</s>``; its score is log P(y|x) over a normalisation of its length (``pool.py``). Each step
keeps the K best continuations; a hypothesis may end where its ``</s>`` is at least as probable as the K-th of them. A
sentence is searched until no live hypothesis can win: the score of one is at most log P(so far) / norm(longest
allowed). So a beam as wide as all live prefixes is exhaustive search. ``early_stopping`` ends it when K hypotheses have
ended. With a beam of one there is nothing to compare, and the first ``</s>`` ends the search: greedy search. At the
longest length allowed only ``</s>`` may follow, even if ``min_length`` forbids it.

How equals are ordered is in ``ranking.py``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.decoding.hypotheses import Hypotheses, end_of
from transformer_cli.decoding.pool import Finished, Pool, length_norm
from transformer_cli.decoding.ranking import DEAD, STEPS_PER_NAT, best, best_tokens, to_grid
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source


class BeamSearch:
    """The live hypotheses of all places, and the finished ones."""

    def __init__(
        self, n_places: int, longest: int, settings: DecodeSettings, device: torch.device | str = "cpu"
    ) -> None:
        """Make an empty beam; no hypothesis will be longer than ``longest`` tokens, with ``</s>``."""
        k = settings.beam_size
        self._settings, self._device = settings, device
        self.live = Hypotheses(n_places, longest, k, settings, device)
        self._totals = torch.full((n_places, k), DEAD, device=device)  # log-probabilities in steps of the grid
        self._norms = torch.ones(n_places, dtype=torch.float64, device=device)  # of the longest: no other is larger
        self._to_beat = torch.full((n_places,), -torch.inf, dtype=torch.float64, device=device)
        self._pools = [Pool(settings) for _ in range(n_places)]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places; each starts with one hypothesis, the others are dead."""
        self.live.admit(places, sentences)
        self._totals[places] = DEAD
        self._totals[places, 0] = 0
        norms = [length_norm(sentence.cap, self._settings) for sentence in sentences]
        self._norms[places] = torch.tensor(norms, dtype=torch.float64, device=self._device)
        self._to_beat[places] = -torch.inf
        for place in places:
            self._pools[place] = Pool(self._settings)

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self.live.keep(places)
        self._totals, self._norms, self._to_beat = self._totals[places], self._norms[places], self._to_beat[places]
        self._pools = [self._pools[place] for place in places]

    def advance(self, log_probs: Tensor) -> dict[int, list[Finished]]:
        """Grow all hypotheses by one token; return what was found for each place whose sentence is finished."""
        live, k = self.live, self._settings.beam_size
        live.restrict(log_probs)
        last_values = end_of(log_probs, len(self._totals))  # [N, K]
        endings = self._totals + to_grid(last_values)
        values, ids = best_tokens(log_probs, k)  # [N * K, n]
        candidates = self._totals[..., None] + values.view(*self._totals.shape, -1)  # [N, K, n]
        at_cap = live.at_cap()
        capped = at_cap[:, None] & (candidates[..., 0] > endings)
        candidates = candidates.masked_fill(at_cap[:, None, None], DEAD)

        may_end = self._may_end() & alive(endings)  # [N, K]
        totals, parents, newest = self._choose(candidates, ids.view_as(candidates), log_probs)
        ended = may_end & (endings >= totals[:, -1:])
        self._collect(ended, endings, last_values, capped)

        worth = log_probs.view(len(totals), -1).gather(1, parents * log_probs.size(-1) + newest)
        live.grow(parents, newest, worth)
        self._totals = totals.masked_fill(~alive(totals), DEAD)
        return self._finished(ended)

    def _may_end(self) -> Tensor:
        """Return ``[N, K]``, or ``[N, 1]`` for all of a place: ``</s>`` may follow."""
        return self.live.may_end()[:, None]

    def _choose(self, candidates: Tensor, ids: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Choose K continuations in each place, best first.

        Args:
            candidates: log-probabilities ``[N, K, n]``, in steps, of the hypotheses that go on by the best tokens.
            ids: these tokens ``[N, K, n]``.
            log_probs: of all tokens ``[N * K, V]``.

        Returns:
            Log-probability in steps, parent and newest token ``[N, K]`` of each.
        """
        totals, chosen = best(candidates.flatten(1), self._settings.beam_size)
        return totals, chosen.div(ids.size(-1), rounding_mode="floor"), ids.flatten(1).gather(1, chosen)

    def _collect(self, ended: Tensor, endings: Tensor, last_values: Tensor, capped: Tensor) -> None:
        """Put the hypotheses that ended into their pools, and note what is to beat now."""
        places, hypotheses = ended.nonzero(as_tuple=True)  # place by place, best parent first
        if not len(places):
            return
        lengths = self.live.lengths[places]
        found = zip(
            places.tolist(),
            hypotheses.tolist(),
            lengths.tolist(),
            endings[ended].tolist(),
            last_values[ended].tolist(),
            capped[ended].tolist(),
            strict=True,
        )
        for place, hypothesis, length, total, last, was_capped in found:
            tokens, values = self.live.of(place, hypothesis, length)
            norm = length_norm(length + 1, self._settings)
            score = (sum(values) + last) / norm
            self._pools[place].add(Finished(score, tokens, was_capped, [*values, last]), total / STEPS_PER_NAT / norm)
            self._to_beat[place] = self._pools[place].to_beat

    def _finished(self, ended: Tensor) -> dict[int, list[Finished]]:
        best_total = self._totals[:, 0]
        over = ~alive(best_total) | (best_total.double() / STEPS_PER_NAT / self._norms <= self._to_beat)
        if self._settings.beam_size == 1:
            over |= ended[:, 0]
        places = (over & self.live.busy).nonzero()[:, 0].tolist()
        if self._settings.early_stopping:
            busy = self.live.busy.nonzero()[:, 0].tolist()
            places = [place for place in busy if place in places or self._pools[place].is_full]
        self.live.busy[places] = False
        self._totals[places] = DEAD
        return {place: self._pools[place].best for place in places}


def alive(totals: Tensor) -> Tensor:
    """Return which of the totals are those of hypotheses."""
    return totals > DEAD // 2
