"""Beam search, knowing nothing of the model: it sees tokens and log-probabilities.

Legend: N places (a sentence each), K live hypotheses of a place, V vocabulary, n best tokens of a hypothesis.

A hypothesis ends with ``</s>``; its score is log P(y|x) over a normalisation of its length (``pool.py``). Each step
keeps the K best continuations; a hypothesis may end where its ``</s>`` is at least as probable as the K-th of them. A
sentence is searched until no live hypothesis can win: the score of one is at most log P(so far) / norm(longest
allowed). So a beam as wide as all live prefixes is exhaustive search. ``early_stopping`` ends it when K hypotheses have
ended. With a beam of one there is nothing to compare, and the first ``</s>`` ends the search: greedy search. At the
longest length allowed only ``</s>`` may follow, even if ``min_length`` forbids it.

How equals are ordered is in ``ranking.py``; when the host gets to know what has ended in ``history.py``.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.decoding.history import History
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
        self._history = History(self.live, longest, settings.look_every)
        self._totals = torch.full((n_places, k), DEAD, device=device)  # log-probabilities in steps of the grid
        self._norms = np.ones(n_places)  # of the longest: no other is larger
        self._to_beat = np.full(n_places, -np.inf)
        self._pools = [Pool(settings) for _ in range(n_places)]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places; each starts with one hypothesis, the others are dead."""
        self.live.admit(places, sentences)
        self._totals[places] = DEAD
        self._totals[places, 0] = 0
        self._norms[places] = [length_norm(sentence.cap, self._settings) for sentence in sentences]
        self._to_beat[places] = -np.inf
        for place in places:
            self._pools[place] = Pool(self._settings)

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self.live.keep(places)
        self._history.keep(places)
        self._totals, self._norms, self._to_beat = self._totals[places], self._norms[places], self._to_beat[places]
        self._pools = [self._pools[place] for place in places]

    def advance(self, log_probs: Tensor) -> dict[int, list[Finished]]:
        """Grow all hypotheses by one token; return what was found for each place that is now known to be finished.

        Args:
            log_probs: ``[N * K, V]``; overwritten.
        """
        live, k = self.live, self._settings.beam_size
        live.restrict(log_probs)
        last_values = end_of(log_probs, len(self._totals))  # [N, K]
        endings = self._totals + to_grid(last_values)
        values, ids = best_tokens(log_probs, k)  # [N * K, n]
        candidates = self._totals[..., None] + values.view(*self._totals.shape, -1)  # [N, K, n]
        at_cap = live.there(live.at_cap())
        capped = at_cap[:, None] & (candidates[..., 0] > endings)
        candidates = candidates.masked_fill(at_cap[:, None, None], DEAD)

        may_end = self._may_end() & alive(endings)  # [N, K]
        totals, parents, newest = self._choose(candidates, ids.view_as(candidates), log_probs)
        ended = may_end & (endings >= totals[:, -1:])
        worth = log_probs.view(len(totals), -1).gather(1, parents * log_probs.size(-1) + newest)
        self._totals = totals.masked_fill(~alive(totals), DEAD)
        self._history.grow(parents, newest, worth, ended, endings, last_values, capped, self._totals[:, 0])
        return {place: self._pools[place].best for place in self._history.look(self._read)}

    def _may_end(self) -> Tensor:
        """Return ``[N, K]``, or ``[N, 1]`` for all of a place: ``</s>`` may follow."""
        return self.live.there(self.live.may_end())[:, None]

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

    def _read(
        self,
        lengths: NDArray[np.int64],
        ended: NDArray[np.bool_],
        endings: NDArray[np.int64],
        last_values: NDArray[np.float32],
        capped: NDArray[np.bool_],
        best_totals: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Put the hypotheses that ended in a step into their pools; return ``[N]``: the search is over with it.

        Args:
            lengths: ``[N]`` before the step.
            ended: ``[N, K]`` which hypotheses did.
            endings: ``[N, K]`` log-probabilities in steps of those that do.
            last_values: ``[N, K]`` of their ``</s>`` alone.
            capped: ``[N, K]`` which had to.
            best_totals: ``[N]`` log-probability in steps of the best hypothesis that goes on.
        """
        for place, hypothesis in np.argwhere(ended & self.live.busy[:, None]).tolist():  # best parent first
            length, total = int(lengths[place]), int(endings[place, hypothesis])
            tokens, values = self._history.of(place, hypothesis, length)
            last, norm = float(last_values[place, hypothesis]), length_norm(length + 1, self._settings)
            found = Finished((sum(values) + last) / norm, tokens, bool(capped[place, hypothesis]), [*values, last])
            self._pools[place].add(found, total / STEPS_PER_NAT / norm)
            self._to_beat[place] = self._pools[place].to_beat
        over = (best_totals <= DEAD // 2) | (best_totals / STEPS_PER_NAT / self._norms <= self._to_beat)
        if self._settings.beam_size == 1:
            over |= ended[:, 0]
        if self._settings.early_stopping:
            over |= [pool.is_full for pool in self._pools]
        return over


def alive(totals: Tensor) -> Tensor:
    """Return, in the shape of the totals, which of them are those of hypotheses."""
    return totals > DEAD // 2
