"""How long a call takes: warmed up, synchronised, median and spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch.utils.benchmark import Timer

#: Even a call of microseconds is watched for so long in all (seconds).
SHORTEST_WATCH = 0.2


@dataclass(frozen=True)
class Timing:
    """Seconds a call: the median, the interquartile range, and how many measurements they summarise."""

    seconds: float
    spread: float
    measurements: int


class Stopwatch:
    """Times a call whenever it is told to, so that several can be timed in turn and meet the same moods of a machine.

    ``torch.utils.benchmark`` waits for the accelerator before it reads the clock, switches the garbage collector off,
    groups short calls into blocks and warms up before each round; a measurement is the mean of a block.
    """

    def __init__(self, call: Callable[[], object], *, threads: int, rounds: int) -> None:
        self._timer = Timer("call()", globals={"call": call}, num_threads=threads)
        self._watch = SHORTEST_WATCH / rounds
        self._times: list[float] = []

    def measure(self) -> None:
        """Take one round's measurements: one of a long call, several of a short one."""
        self._times += self._timer.blocked_autorange(min_run_time=self._watch).times

    def timing(self) -> Timing:
        """Return what the rounds so far say together."""
        lower, median, upper = quartiles(self._times)
        return Timing(median, upper - lower, len(self._times))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile; the spread is the last less the first."""
    lower, median, upper = np.percentile(values, [25, 50, 75])
    return float(lower), float(median), float(upper)
