"""The finished hypotheses of one sentence, and the length normalisation that makes them comparable."""

import math
from dataclasses import dataclass, field

from transformer_cli.decoding.settings import DecodeSettings


@dataclass(frozen=True)
class Finished:
    """A finished hypothesis."""

    score: float  # log-probability, in nats, over the normalisation of its length
    tokens: list[int]  # without <s> and </s>
    capped: bool  # it had to end: another token was more probable than </s>
    log_probs: list[float] = field(default_factory=list)  # of each token, and of </s>; empty: the engine does not tell
    draw: int = 0  # the number of a sample


class Pool:
    """The finished hypotheses of one sentence, best first; of equal ones the earlier first.

    It holds twice the beam size, because different tokens may spell the same text.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self._ranked: list[tuple[float, Finished]] = []
        self._settings, self._size, self._n_added = settings, 2 * settings.beam_size, 0

    def add(self, hypothesis: Finished, rank: float) -> None:
        """Take a hypothesis in if it is among the best; ``rank`` is its score as rounded for comparisons."""
        self._n_added += 1
        ranked = sorted([*self._ranked, (rank, hypothesis)], key=lambda other: -other[0])
        self._ranked = ranked[: self._size]

    @property
    def best(self) -> list[Finished]:
        """The best hypotheses."""
        return [hypothesis for _, hypothesis in self._ranked]

    @property
    def to_beat(self) -> float:
        """The score that a live hypothesis must exceed to change the n best."""
        n_best = self._settings.n_best
        return self._ranked[n_best - 1][0] if len(self._ranked) >= n_best else -math.inf

    @property
    def is_full(self) -> bool:
        """Whether as many hypotheses ended as the beam is wide."""
        return self._n_added >= self._settings.beam_size


def length_norm(length: int, settings: DecodeSettings) -> float:
    """Return what the log-probability of a hypothesis is divided by; its length counts ``</s>``.

    ``gnmt``: ((5 + |y|) / 6)^alpha (Wu et al. 2016, eq. 14); ``plain``: |y|^alpha.
    """
    base = (5 + length) / 6 if settings.length_normalization == "gnmt" else length
    try:
        return float(base**settings.length_penalty)
    except OverflowError:
        return math.inf
