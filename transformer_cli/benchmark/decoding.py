"""How fast sentences are translated: rounds in turn, so that a slow minute of the machine falls on all sides."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from transformer_cli.benchmark.early_end import EarlyEnd, finished_kept
from transformer_cli.benchmark.timing import quartiles

_ALONE = 100  # lines that are translated one by one

T = TypeVar("T")


class Side(Protocol):
    """An engine that is loaded, with one way of searching.

    Attributes:
        engine: its name.
        name: the engine, and what its translations depend on.
        setting: how it shares its work.
        load_seconds: how long it took to be ready.
    """

    engine: str
    name: str
    setting: str
    load_seconds: float

    def translate(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Return the translations of lines, and the number of their tokens."""

    def peak_bytes(self) -> int:
        """Return the greatest resident sets of its processes, added up; 0 where the system does not tell."""


@dataclass
class Measured:
    """What was measured of one side, with one way of searching."""

    engine: str
    setting: str
    load_seconds: float
    warm_up_seconds: float
    translations: list[str]
    n_tokens: int  # of all translations
    seconds: list[float] = field(default_factory=list)  # of each round over all lines
    latencies: list[float] = field(default_factory=list)  # seconds of lines that come alone
    peak_bytes: int = 0
    name: str = ""  # the engine, and what its translations depend on

    def document(self) -> dict[str, object]:
        """Return the figures as JSON has them: medians, spreads as interquartile ranges; None: not measured."""
        lower, median, upper = quartiles(self.seconds)
        alone = np.percentile(self.latencies, [50, 95]) * 1e3 if self.latencies else (None, None)
        p50, p95 = (value if value is None else float(value) for value in alone)
        n_lines = len(self.translations)
        return {
            "engine": self.engine,
            "setting": self.setting,
            "round_seconds": median,
            "round_seconds_spread": upper - lower,
            "sentences_per_second": n_lines / median,
            "sentences_per_second_spread": n_lines / lower - n_lines / upper,
            "target_tokens_per_second": self.n_tokens / median,
            "latency_ms_p50": p50,
            "latency_ms_p95": p95,
            "peak_bytes": self.peak_bytes or None,
            "load_seconds": self.load_seconds,
            "warm_up_seconds": self.warm_up_seconds,
        }


def measure(
    sides: Sequence[Side], lines: Sequence[str], repeats: int, note: Callable[[str], None]
) -> tuple[list[Measured], EarlyEnd]:
    """Translate all lines by each side in turn, then some of them one by one. Ended early, whole rounds count.

    Args:
        sides: loaded, each with its way of searching.
        lines: any number, at least one.
        repeats: rounds that count; one more warms up.
        note: told of each round.

    Returns:
        What was measured of each side, and what ended it early, if something did.

    Raises:
        KeyboardInterrupt: Ctrl-C came before a round was finished.
        WorkerKilled: a process of a side was killed before a round was finished.
    """
    measured = []
    for side in sides:
        seconds, (translations, n_tokens) = _timed(lambda side=side: side.translate(lines))  # type: ignore[misc]
        told = (side.engine, side.setting, side.load_seconds, seconds)
        measured.append(Measured(*told, translations, n_tokens, name=side.name))
    with finished_kept(measured[-1].seconds) as end:
        _rounds(sides, lines, measured, repeats, note)
        for side, found in zip(sides, measured, strict=True):
            found.peak_bytes = side.peak_bytes()
        _latencies(sides, lines, measured)
    for found in measured:
        del found.seconds[len(measured[-1].seconds) :]  # of a round in which not every side had its turn
    return measured, end


def _rounds(
    sides: Sequence[Side],
    lines: Sequence[str],
    measured: Sequence[Measured],
    repeats: int,
    note: Callable[[str], None],
) -> None:
    for number in range(1, repeats + 1):
        note(f"round {number} of {repeats}")
        for side, found in zip(sides, measured, strict=True):
            found.seconds.append(_timed(lambda side=side: side.translate(lines))[0])  # type: ignore[misc]


def _latencies(sides: Sequence[Side], lines: Sequence[str], measured: Sequence[Measured]) -> None:
    """Translate some lines one by one, by each side in turn, and note how long each took; the first warms up."""
    for number, line in enumerate([lines[0], *lines[:: max(1, len(lines) // _ALONE)]][: _ALONE + 1]):
        for side, found in zip(sides, measured, strict=True):
            seconds = _timed(lambda side=side, line=line: side.translate([line]))[0]  # type: ignore[misc]
            found.latencies += [seconds] if number else []


def ratio(ours: Measured, other: Measured) -> float:
    """Return our speed over another's: the median over rounds, whose sides stood next to each other in time."""
    return float(np.median([theirs / mine for mine, theirs in zip(ours.seconds, other.seconds, strict=True)]))


def identical(ours: Measured, other: Measured) -> float:
    """Return the share of lines that both translate alike."""
    pairs = list(zip(ours.translations, other.translations, strict=True))
    return sum(mine == theirs for mine, theirs in pairs) / len(pairs)


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
