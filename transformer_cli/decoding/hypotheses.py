"""The hypotheses that a search grows: their tokens, and what each token was worth.

Legend: N places (a sentence each), K hypotheses of a place, L room for tokens, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK
from transformer_cli.decoding.forbidden import START, ForbiddenPhrases
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source

_NONE = -1  # no token, no sentence


class Hypotheses:
    """K prefixes in each of N places, all of one length in a place.

    Attributes:
        lengths: ``[N]`` tokens so far, without ``<s>``.
        caps: ``[N]`` longest hypothesis allowed, with ``</s>``.
        busy: boolean ``[N]``, the place has a sentence.
        newest: ``[N, K]``.
        parents: ``[N, K]`` which hypothesis of the step before each one continues.
    """

    def __init__(
        self, n_places: int, longest: int, n_hypotheses: int, settings: DecodeSettings, device: torch.device | str
    ) -> None:
        """Make room for hypotheses of at most ``longest`` tokens."""
        self._settings = settings
        self.n_hypotheses = n_hypotheses
        self.lengths = torch.zeros(n_places, dtype=torch.long, device=device)
        self.caps = self.lengths.clone()
        self.busy = torch.zeros(n_places, dtype=torch.bool, device=device)
        self.newest = torch.full((n_places, n_hypotheses), BOS, device=device)
        self.parents = torch.arange(n_hypotheses, device=device).repeat(n_places, 1)
        self._tokens = torch.full((n_places, n_hypotheses, longest), _NONE, device=device)
        self._values = torch.zeros(n_places, n_hypotheses, longest, device=device)
        self._prefixes: Tensor | None = None  # [N, P], NONE at the end
        self._forbidden: list[ForbiddenPhrases | None] = [None] * n_places
        self._nodes = [[START] * n_hypotheses for _ in range(n_places)]  # of the automaton of forbidden phrases

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Start anew in these places."""
        self.lengths[places], self.busy[places], self.newest[places] = 0, True, BOS
        self.caps[places] = torch.tensor([sentence.cap for sentence in sentences], device=self.caps.device)
        self._tokens[places] = _NONE
        longest = max(len(sentence.prefix) for sentence in sentences)
        self._write_prefixes(places, sentences, longest)
        for place, sentence in zip(places, sentences, strict=True):
            self._forbidden[place], self._nodes[place] = sentence.forbidden, [START] * self.n_hypotheses

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        for name in ("lengths", "caps", "busy", "newest", "parents", "_tokens", "_values"):
            setattr(self, name, getattr(self, name)[places])
        if self._prefixes is not None:
            self._prefixes = self._prefixes[places]
        self._forbidden = [self._forbidden[place] for place in places]
        self._nodes = [self._nodes[place] for place in places]

    def at_cap(self) -> Tensor:
        """Return ``[N]``: only ``</s>`` may follow."""
        return self.lengths + 1 >= self.caps

    def may_end(self) -> Tensor:
        """Return ``[N]``: ``</s>`` may follow. The cap wins over the least length; a prefix wins in ``restrict``."""
        return self.busy & (self.at_cap() | (self.lengths >= self._settings.min_length))

    def restrict(self, log_probs: Tensor) -> None:
        """Forbid, in ``log_probs [N * K, V]``, what must not follow; ``</s>`` is the chooser's affair."""
        forced = self._forced(log_probs)
        log_probs[:, [PAD, UNK, BOS]] = -torch.inf
        if self._settings.no_repeat_ngram:
            self._forbid_repeats(log_probs, self._settings.no_repeat_ngram)
        self._forbid_phrases(log_probs)
        if forced is not None:
            rows, ids, values = forced
            log_probs[rows] = -torch.inf
            log_probs[rows, ids] = values

    def grow(self, parents: Tensor, newest: Tensor, values: Tensor) -> None:
        """Append a token ``[N, K]``, worth a log-probability ``[N, K]``, to a copy of each one's parent ``[N, K]``."""
        self.parents, self.newest = parents, newest
        self._walk(parents, newest)
        if self.n_hypotheses > 1:
            index = parents[..., None].expand_as(self._tokens)
            self._tokens, self._values = self._tokens.gather(1, index), self._values.gather(1, index)
        at = self.lengths.clamp(max=self._tokens.size(-1) - 1)[:, None, None].expand(-1, self.n_hypotheses, 1)
        self._tokens.scatter_(2, at, newest[..., None])
        self._values.scatter_(2, at, values[..., None])
        self.lengths = self.lengths + self.busy

    def of(self, place: int, hypothesis: int, length: int) -> tuple[list[int], list[float]]:
        """Return tokens and log-probabilities of one hypothesis."""
        tokens, values = self._tokens[place, hypothesis, :length], self._values[place, hypothesis, :length]
        return tokens.tolist(), values.tolist()

    def _write_prefixes(self, places: list[int], sentences: Sequence[Source], longest: int) -> None:
        if self._prefixes is None and not longest:
            return
        n_places, width = len(self.lengths), 0 if self._prefixes is None else self._prefixes.size(1)
        prefixes = torch.full((n_places, max(width, longest)), _NONE, device=self.lengths.device)
        if self._prefixes is not None:
            prefixes[:, :width] = self._prefixes
        prefixes[places] = _NONE
        for place, sentence in zip(places, sentences, strict=True):
            prefixes[place, : len(sentence.prefix)] = torch.tensor(sentence.prefix, dtype=torch.long)
        self._prefixes = prefixes

    def _forced(self, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return rows that are inside their prefix, the ids that must follow, and their log-probabilities."""
        if self._prefixes is None:
            return None
        inside = self.lengths < self._prefixes.size(1)
        at = torch.where(inside, self.lengths, 0)[:, None]
        ids = torch.where(inside, self._prefixes.gather(1, at)[:, 0], _NONE).repeat_interleave(self.n_hypotheses)
        rows = (ids != _NONE).nonzero()[:, 0]
        return rows, ids[rows], log_probs[rows, ids[rows]]

    def _forbid_phrases(self, log_probs: Tensor) -> None:
        rows, ids = list[int](), list[int]()
        for place in self._watched():
            for row, node in enumerate(self._nodes[place], start=place * self.n_hypotheses):
                blocked = self._forbidden[place].blocked(node)  # type: ignore[union-attr]
                rows += [row] * len(blocked)
                ids += blocked
        if rows:
            log_probs[rows, ids] = -torch.inf

    def _walk(self, parents: Tensor, newest: Tensor) -> None:
        """Let the automata of forbidden phrases take a step."""
        if watched := self._watched():
            from_, tokens = parents[watched].tolist(), newest[watched].tolist()
            for place, olds, ids in zip(watched, from_, tokens, strict=True):
                before, step = self._nodes[place], self._forbidden[place].step  # type: ignore[union-attr]
                self._nodes[place] = [step(before[old], token) for old, token in zip(olds, ids, strict=True)]

    def _watched(self) -> list[int]:
        """Return the places whose sentence forbids something."""
        if not any(self._forbidden):
            return []
        return [place for place in self.busy.nonzero()[:, 0].tolist() if self._forbidden[place]]

    def _forbid_repeats(self, log_probs: Tensor, n: int) -> None:
        """Forbid every token that would end an n-gram which a hypothesis contains already."""
        longest = int(self.lengths.max())
        if longest < n:
            return
        tokens = self._tokens[..., :longest].flatten(0, 1)  # [R, T], NONE beyond a row's length
        lengths = self.lengths.repeat_interleave(self.n_hypotheses)[:, None]  # [R, 1]
        seen = tokens.unfold(1, n, 1)  # [R, T - n + 1, n]
        last = (lengths - n + 1 + torch.arange(n - 1, device=tokens.device)).clamp(min=0)  # [R, n - 1]
        recurs = (seen[..., :-1] == tokens.gather(1, last)[:, None]).all(-1)
        recurs &= seen[..., -1] != _NONE  # so a row of fewer than n tokens has none
        rows, places = recurs.nonzero(as_tuple=True)
        log_probs[rows, seen[rows, places, -1]] = -torch.inf


def end_of(log_probs: Tensor, n_places: int) -> Tensor:
    """Return a copy of the log-probabilities ``[N, K]`` of ``</s>``, and forbid it from now on."""
    endings = log_probs[:, EOS].clone().view(n_places, -1)
    log_probs[:, EOS] = -torch.inf
    return endings
