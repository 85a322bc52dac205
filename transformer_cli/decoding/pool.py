"""The finished hypotheses of one sentence, and the length penalty that makes them comparable."""

import math
from dataclasses import dataclass

from transformer_cli.decoding.settings import DecodeSettings


@dataclass(frozen=True)
class Finished:
    """A finished hypothesis."""

    score: float  # log-probability divided by the length penalty
    tokens: list[int]  # without <s> and </s>
    capped: bool  # it had to end: another token was more probable than </s>


class Pool:
    """The finished hypotheses of one sentence, best first; of equal ones the earlier first.

    It holds twice the beam size, because different tokens may spell the same text.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self.best: list[Finished] = []
        self._n_best, self._size = settings.n_best, 2 * settings.beam_size

    def add(self, hypothesis: Finished) -> None:
        """Take a hypothesis in if it is among the best."""
        self.best = sorted([*self.best, hypothesis], key=lambda other: -other.score)[: self._size]

    @property
    def to_beat(self) -> float:
        """The score that a live hypothesis must exceed to change the n best."""
        return self.best[self._n_best - 1].score if len(self.best) >= self._n_best else -math.inf


def length_penalty(length: int, alpha: float) -> float:
    """Return lp(y) = ((5 + |y|) / 6)^alpha for a length that counts ``</s>`` (Wu et al. 2016, eq. 14)."""
    return float(((5 + length) / 6) ** alpha)
