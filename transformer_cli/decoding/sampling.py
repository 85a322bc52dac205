"""Sampling: hypotheses drawn from the model, instead of the most probable ones.

Legend: N places (a sentence each), K samples of a place, V vocabulary.

A token is drawn by inverting the distribution function, from one number per step that depends on the seed, the
sentence's number in the input and the sample's own number: what is drawn for a sentence depends neither on its batch
nor on how many samples are asked for. Probabilities are those of log P / temperature (Ackley et al. 1985), of the
``top_k`` most probable tokens (Fan et al. 2018) and of the least set that holds ``top_p`` (Holtzman et al. 2020).
Scores are the model's own.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.data.tokenizer import EOS
from transformer_cli.decoding.history import History
from transformer_cli.decoding.hypotheses import Hypotheses
from transformer_cli.decoding.pool import Finished, length_norm
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source


class Sampling:
    """The samples of all places."""

    def __init__(
        self, n_places: int, longest: int, settings: DecodeSettings, device: torch.device | str = "cpu"
    ) -> None:
        """Make room for samples of at most ``longest`` tokens, with ``</s>``."""
        k = settings.beam_size
        self._settings = settings
        self.live = Hypotheses(n_places, longest, k, settings, device)
        self._history = History(self.live, longest, settings.look_every)
        self._unfinished = torch.zeros(n_places, k, dtype=torch.bool, device=device)
        self._draws = torch.zeros(n_places, k, longest, dtype=torch.float64, device=device)
        self._found: list[list[Finished]] = [[] for _ in range(n_places)]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""
        self.live.admit(places, sentences)
        self._unfinished[places] = True
        for place, sentence in zip(places, sentences, strict=True):
            self._found[place] = []
            for sample in range(self._settings.beam_size):
                rng = np.random.default_rng([self._settings.seed, *sentence.number, sample])
                self._draws[place, sample, : sentence.cap] = torch.from_numpy(rng.random(sentence.cap))

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self.live.keep(places)
        self._history.keep(places)
        self._unfinished, self._draws = self._unfinished[places], self._draws[places]
        self._found = [self._found[place] for place in places]

    def advance(self, log_probs: Tensor) -> dict[int, list[Finished]]:
        """Draw a token for every sample; return the samples of each place whose last one is now known to have ended.

        Args:
            log_probs: ``[N * K, V]``; overwritten.
        """
        live, shape = self.live, (*self._unfinished.shape, -1)
        own = log_probs.clone()
        live.restrict(log_probs)
        at_cap, may_end = live.there(live.at_cap())[:, None], live.there(live.may_end())[:, None]
        wanted = log_probs[:, EOS] < log_probs[:, EOS + 1 :].amax(-1)  # another token is more probable than </s>
        log_probs.view(shape)[..., EOS].masked_fill_(~may_end, -torch.inf)
        tokens = self._drawn(log_probs).view(shape[:2]).masked_fill(at_cap, EOS)
        values = own.view(shape).gather(2, tokens[..., None])[..., 0]
        ended = self._unfinished & (tokens == EOS)
        # Where no token is possible (NaN, or all are forbidden) a sample ends with nothing, as in beam search.
        possible = log_probs.view(shape).gather(2, tokens[..., None])[..., 0] > -torch.inf
        self._unfinished &= ~ended & possible
        capped = wanted.view(shape[:2]) & at_cap
        self._history.grow(live.parents, tokens, values, ended, values, capped, self._unfinished.any(-1))
        over = self._history.look(self._read)
        return {place: sorted(self._found[place], key=lambda sample: (-sample.score, sample.draw)) for place in over}

    def _drawn(self, log_probs: Tensor) -> Tensor:
        """Draw one token ``[N * K]`` from each row of ``log_probs [N * K, V]``."""
        how = self._settings
        ids = None
        if how.top_k or how.top_p < 1:
            k = min(how.top_k or log_probs.size(1), log_probs.size(1))
            log_probs, ids = log_probs.sort(dim=-1, descending=True, stable=True)
            log_probs, ids = log_probs[:, :k], ids[:, :k]
        probabilities = (log_probs.double() / how.temperature).softmax(-1)
        if how.top_p < 1:
            before = probabilities.cumsum(-1) - probabilities
            probabilities = probabilities.masked_fill(before >= how.top_p, 0.0)  # the first one always stays
        cumulative = probabilities.cumsum(-1)
        at = self.live.there(self.live.lengths)[:, None, None].expand(-1, self._draws.size(1), 1)
        draws = self._draws.gather(2, at).flatten()[:, None] * cumulative[:, -1:]
        chosen = (cumulative <= draws).sum(-1, keepdim=True).clamp(max=cumulative.size(-1) - 1)
        return (chosen if ids is None else ids.gather(1, chosen))[:, 0]

    def _read(
        self,
        lengths: NDArray[np.int64],
        ended: NDArray[np.bool_],
        last_values: NDArray[np.float32],
        capped: NDArray[np.bool_],
        unfinished: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Collect the samples that ended in a step; return ``[N]``: none goes on.

        Args:
            lengths: ``[N]`` before the step.
            ended: ``[N, K]`` which samples did.
            last_values: ``[N, K]`` log-probabilities of their ``</s>``.
            capped: ``[N, K]`` which had to.
            unfinished: ``[N]`` where some go on.
        """
        for place, sample in np.argwhere(ended).tolist():
            length = int(lengths[place])
            tokens, values = self._history.of(place, sample, length)
            values.append(float(last_values[place, sample]))
            score = sum(values) / length_norm(length + 1, self._settings)
            self._found[place].append(Finished(score, tokens, bool(capped[place, sample]), values, sample))
        return ~unfinished
