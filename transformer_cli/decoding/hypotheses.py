"""The hypotheses that a search grows: where they stand, and what may not follow.

Legend: N places (a sentence each), K hypotheses of a place, L room for tokens, V vocabulary.

All that can be counted is counted on the host, so that no step has to ask a GPU. What they are made of is in
``history.py``.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.decoding.forbidden import START, ForbiddenPhrases
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source

_NONE = -1  # no token


class Hypotheses:
    """K prefixes in each of N places, all of one length in a place.

    Attributes:
        lengths: ``[N]`` tokens so far, without ``<s>``; on the host, as caps and busy.
        caps: ``[N]`` longest hypothesis allowed, with ``</s>``.
        busy: boolean ``[N]``, the place has a sentence.
        newest: ``[N, K]``.
        parents: ``[N, K]`` which hypothesis of the step before each one continues.
    """

    def __init__(
        self, n_places: int, longest: int, n_hypotheses: int, settings: DecodeSettings, device: torch.device | str
    ) -> None:
        """Make room for hypotheses of at most ``longest`` tokens."""
        self._settings, self._device = settings, device
        self.n_hypotheses = n_hypotheses
        self.lengths = np.zeros(n_places, dtype=np.int64)
        self.caps = self.lengths.copy()
        self.busy = np.zeros(n_places, dtype=bool)
        self.newest = torch.full((n_places, n_hypotheses), BOS, device=device)
        self.parents = torch.arange(n_hypotheses, device=device).repeat(n_places, 1)
        room = longest if settings.no_repeat_ngram else 0
        self._tokens = torch.full((n_places, n_hypotheses, room), _NONE, device=device)
        self._prefixes: list[Sequence[int]] = [()] * n_places
        self._forbidden: list[ForbiddenPhrases | None] = [None] * n_places
        self._nodes = [[START] * n_hypotheses for _ in range(n_places)]  # of the automaton of forbidden phrases

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Start anew in these places."""
        self.lengths[places], self.busy[places], self.newest[places] = 0, True, BOS
        self.caps[places] = [sentence.cap for sentence in sentences]
        self._tokens[places] = _NONE
        for place, sentence in zip(places, sentences, strict=True):
            self._prefixes[place], self._forbidden[place] = sentence.prefix, sentence.forbidden
            self._nodes[place] = [START] * self.n_hypotheses

    def rest(self, places: list[int]) -> None:
        """Let the sentences of these places be over."""
        self.lengths[places], self.busy[places] = 0, False
        for place in places:
            self._prefixes[place], self._forbidden[place] = (), None

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        for name in ("lengths", "caps", "busy", "newest", "parents", "_tokens"):
            setattr(self, name, getattr(self, name)[places])
        for name in ("_prefixes", "_forbidden", "_nodes"):
            setattr(self, name, [getattr(self, name)[place] for place in places])

    def there(self, of_places: NDArray[np.generic]) -> Tensor:
        """Return what the host knows of places, ``[N, ...]``, where the hypotheses are, without waiting for a GPU."""
        return torch.from_numpy(of_places).to(self._device, non_blocking=True)

    def at_cap(self) -> NDArray[np.bool_]:
        """Return ``[N]``: only ``</s>`` may follow."""
        return self.lengths + 1 >= self.caps

    def may_end(self) -> NDArray[np.bool_]:
        """Return ``[N]``: ``</s>`` may follow. The cap wins over the least length; a prefix wins in ``restrict``."""
        return self.busy & (self.at_cap() | (self.lengths >= self._settings.min_length))

    def restrict(self, log_probs: Tensor) -> None:
        """Forbid, in ``log_probs [N * K, V]``, what must not follow; ``</s>`` is the chooser's affair."""
        by_place = log_probs.view(len(self.lengths), self.n_hypotheses, -1)
        forced = self._forced(by_place)
        log_probs[:, :EOS] = -torch.inf  # padding, unknown, <s>
        if self._settings.no_repeat_ngram:
            self._forbid_repeats(log_probs, self._settings.no_repeat_ngram)
        self._forbid_phrases(log_probs)
        if forced is not None:
            places, ids, values = forced
            by_place.index_fill_(0, places, -torch.inf)
            by_place[places, :, ids] = values

    def grow(self, parents: Tensor, newest: Tensor) -> None:
        """Append a token ``[N, K]`` to a copy of each one's parent ``[N, K]``."""
        self.parents, self.newest = parents, newest
        self._walk(parents, newest)
        if self._settings.no_repeat_ngram:
            self._tokens = self._tokens.gather(1, parents[..., None].expand_as(self._tokens))
            at = self.there(self.lengths)[:, None, None].expand(-1, self.n_hypotheses, 1)
            self._tokens.scatter_(2, at, newest[..., None])
        self.lengths = self.lengths + self.busy

    def _forced(self, by_place: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return the n places that are inside their prefix, the ids ``[n]`` that must follow, and what these are worth.

        Args:
            by_place: log-probabilities ``[N, K, V]``; of them ``[n, K]`` are returned.
        """
        inside = [
            (place, prefix[length])
            for place, (prefix, length) in enumerate(zip(self._prefixes, self.lengths.tolist(), strict=True))
            if length < len(prefix)
        ]
        if not inside:
            return None
        places, ids = self.there(np.array(inside)).unbind(1)
        return places, ids, by_place[places, :, ids]

    def _forbid_phrases(self, log_probs: Tensor) -> None:
        rows, ids = list[int](), list[int]()
        for place, forbidden in self._watched():
            for row, node in enumerate(self._nodes[place], start=place * self.n_hypotheses):
                blocked = forbidden.blocked(node)
                rows += [row] * len(blocked)
                ids += blocked
        if rows:
            log_probs[rows, ids] = -torch.inf

    def _walk(self, parents: Tensor, newest: Tensor) -> None:
        """Let the automata of forbidden phrases take a step; they are on the host, which waits for each step here."""
        if watched := self._watched():
            places = [place for place, _ in watched]
            from_, tokens = parents[places].tolist(), newest[places].tolist()
            for (place, forbidden), olds, ids in zip(watched, from_, tokens, strict=True):
                before = self._nodes[place]
                self._nodes[place] = [forbidden.step(before[old], token) for old, token in zip(olds, ids, strict=True)]

    def _watched(self) -> list[tuple[int, ForbiddenPhrases]]:
        """Return the places whose sentence forbids something, with what that is."""
        return [(place, forbidden) for place, forbidden in enumerate(self._forbidden) if forbidden]

    def _forbid_repeats(self, log_probs: Tensor, n: int) -> None:
        """Forbid every token that would end an n-gram which a hypothesis contains already."""
        longest = int(self.lengths.max())
        if longest < n:
            return
        tokens = self._tokens[..., :longest].flatten(0, 1)  # [R, T], NONE beyond a row's length
        lengths = self.there(self.lengths).repeat_interleave(self.n_hypotheses)[:, None]  # [R, 1]
        seen = tokens.unfold(1, n, 1)  # [R, T - n + 1, n]
        last = (lengths - n + 1 + torch.arange(n - 1, device=tokens.device)).clamp(min=0)  # [R, n - 1]
        recurs = (seen[..., :-1] == tokens.gather(1, last)[:, None]).all(-1)
        recurs &= seen[..., -1] != _NONE  # so a row of fewer than n tokens has none
        log_probs.scatter_(1, torch.where(recurs, seen[..., -1], PAD), -torch.inf)  # padding is forbidden anyway


def end_of(log_probs: Tensor, n_places: int) -> Tensor:
    """Return a copy of the log-probabilities ``[N, K]`` of ``</s>``, and forbid it from now on."""
    endings = log_probs[:, EOS].clone().view(n_places, -1)
    log_probs[:, EOS] = -torch.inf
    return endings
