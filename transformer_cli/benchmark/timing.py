"""How long a call takes: warmed up, synchronised, median and spread."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch.utils.benchmark import Timer

#: Even a call of microseconds is watched for so long (seconds).
SHORTEST_WATCH = 0.2


@dataclass(frozen=True)
class Timing:
    """Seconds a call: the median, the interquartile range, and how many measurements they summarise."""

    seconds: float
    spread: float
    measurements: int


def time_call(call: Callable[[], object], *, repeats: int, threads: int) -> Timing:
    """Time a call after two warm-up calls.

    ``torch.utils.benchmark`` waits for the accelerator before it reads the clock, switches the garbage collector off
    and groups short calls into blocks; a measurement is the mean of a block. There are ``repeats`` of them, or more.
    """
    timer = Timer("call()", globals={"call": call}, num_threads=threads)
    first = timer.timeit(1).median  # preceded by two calls that are not timed
    times: list[float] = []
    while len(times) < repeats:  # a first call slower or quicker than the others gives a wrong estimate
        wanted = (repeats - len(times)) * first
        times += timer.blocked_autorange(min_run_time=max(SHORTEST_WATCH, wanted)).times
    lower, median, upper = np.percentile(times, [25, 50, 75])
    return Timing(float(median), float(upper - lower), len(times))
