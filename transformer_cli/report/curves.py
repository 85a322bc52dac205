"""Records of a training as line charts: where lines, ticks and labels stand.

Not here: the SVG itself, which the page's template writes from these numbers, and where records lie on disk.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH, HEIGHT = 440, 220
LEFT, RIGHT, TOP, BOTTOM = 48, 424, 10, 192  # of the plotted area
_MOST_POINTS = 400  # of a line: about one for each pixel
_TICKS = 5

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    points: list[Point]  # step and value, for the reader's pointer
    path: str  # the same as SVG draws it


@dataclass(frozen=True)
class Chart:
    """One chart, ready to be drawn."""

    title: str
    caption: str
    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    x_range: Point
    last: list[tuple[str, str]] = field(default_factory=list)  # of each line: its name and last value


def training_charts(records: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return loss, BLEU, learning rate, throughput and gradient norm over the steps; those that were recorded.

    Values that are missing, of another type or not finite are passed over, as damaged lines are.
    """
    train = [record for record in records if record.get("kind") == "train"]
    validations = [record for record in records if record.get("kind") == "validation"]
    losses = {"training": values(train, "loss"), "dev": values(validations, "loss")}
    made = [
        _chart("Loss", "nats per token; training with dropout and label smoothing, dev without", losses),
        _chart(
            "BLEU of the dev set", "as validation searches, see the configuration", {"dev": values(validations, "bleu")}
        ),
        _chart("Learning rate", "", {"learning rate": values(train, "lr")}),
        _chart("Throughput", "target tokens per second", {"tokens/s": values(train, "tokens_per_second")}),
        _chart("Gradient norm", "before clipping", {"norm": values(train, "grad_norm")}),
    ]
    return [chart for chart in made if chart is not None]


def values(records: Iterable[Mapping[str, Any]], key: str) -> list[Point]:
    """Return step and value of the records that have a finite number there."""
    return [(float(record["step"]), float(record[key])) for record in records if is_number(record.get(key))]


def is_number(value: object) -> bool:
    """Return whether something is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> list[Point]:
    """Return at most so many points: the means of equally many neighbours; the last one stays."""
    if len(points) <= most:
        return list(points)
    each = math.ceil(len(points) / (most - 1))
    groups = [points[start : start + each] for start in range(0, len(points), each)]
    means = [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
    return [*means, points[-1]]


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """Return a number in few characters: ``5k``, ``0.002``, ``1e-5``."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    if value and abs(value) < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.4g}"


def exact(value: float) -> str:
    """Return a number with about four digits: ``5,558``, ``2.076``, ``6.82e-7``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else short(value)


def _chart(title: str, caption: str, series: Mapping[str, Sequence[Point]]) -> Chart | None:
    present = {name: thinned(points) for name, points in series.items() if points}
    if not present:
        return None
    everything = [point for points in present.values() for point in points]
    x_range = 0.0, max(max(x for x, _ in everything), 1.0)
    y_range = _range([y for _, y in everything])
    lines = [Line(name, points, _path(points, x_range, y_range)) for name, points in present.items()]
    return Chart(
        title,
        caption,
        lines,
        [(_place(x, x_range, LEFT, RIGHT), short(x)) for x in ticks(*x_range)],
        [(_place(y, y_range, BOTTOM, TOP), short(y)) for y in ticks(*y_range)],
        x_range,
        [(name, exact(points[-1][1])) for name, points in series.items() if points],
    )


def _range(numbers: Sequence[float]) -> Point:
    """Return where the axis begins and ends: at zero if the smallest value is not far from it."""
    low, high = min(numbers), max(numbers)
    if 0 <= low < high / 2:
        low = 0.0
    spread = high - low or abs(high) or 1.0
    return low - (0.05 * spread if low else 0.0), high + 0.05 * spread


def _path(points: Sequence[Point], x_range: Point, y_range: Point) -> str:
    places = [f"{_place(x, x_range, LEFT, RIGHT):.1f} {_place(y, y_range, BOTTOM, TOP):.1f}" for x, y in points]
    # A line of one point has no length; drawn to itself its round end is a dot.
    return "M" + "L".join(places if len(places) > 1 else places * 2)


def _place(value: float, span: Point, start: float, end: float) -> float:
    return round(start + (value - span[0]) / (span[1] - span[0]) * (end - start), 1)
