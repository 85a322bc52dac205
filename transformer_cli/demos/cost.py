"""How time and memory of attention grow with the length n: the equation holds n² weights, flash attention none.

Everything is measured by ``benchmark/``, as ``tfm bench`` does; the figures are the machine's, not the seed's.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from transformer_cli.benchmark.attention import KERNELS, PASSES, Kernel, Shape
from transformer_cli.benchmark.products import product_rates
from transformer_cli.benchmark.report import Growth, Row, growth, measure
from transformer_cli.benchmark.sparse import meaning
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.runtime import Runtime

LENGTHS = (256, 512, 1024, 2048)
_HEADS, _HEAD_DIM = 4, 32
#: The equation, the kernel that keeps no weights, and those that look at a window only, where there are any.
_SHOWN: tuple[Kernel, ...] = tuple(kernel for kernel in KERNELS if kernel in ("naive", "flash") or "window" in kernel)
_PANELS = (("seconds", "seconds"), ("peak_bytes", "bytes beyond the inputs"))


def demonstrate(wish: Wish, *, lengths: Sequence[int] = LENGTHS, repeats: int = 3) -> DemoReport:
    """Measure the kernels at several lengths, and fit how they grow."""
    runtime = Runtime.resolve("cpu")
    shape = Shape(_HEADS, _HEAD_DIM, device=str(runtime.device), threads=runtime.threads)
    peak = product_rates(runtime.device, runtime.threads, (512,), repeats=2)[512]
    rows = list(measure(shape, lengths, kernels=_SHOWN, repeats=repeats, peak=peak, note=wish.note))
    grown = growth(rows)
    tables = [
        Table(
            f"Attention, {_HEADS} heads of {_HEAD_DIM}, {shape.dtype}",
            ("length", "pass", "kernel", "milliseconds", "MiB beyond the inputs"),
            [_figures(row) for row in rows],
        ),
        Table(
            "Fitted exponents p of n^p",
            ("pass", "kernel", "time", "memory"),
            [(part.direction, part.kernel, part.time, part.memory) for part in grown],
        ),
    ]
    return DemoReport(
        "cost",
        "Attention takes n² time; the equation takes n² memory too, and flash attention does not. "
        "A window of keys takes about n of both.",
        "Vaswani et al. 2017, table 1; Dao et al. 2022, FlashAttention; Beltagy et al. 2020, Longformer",
        tables,
        [*(_sentence(part) for part in grown if part.direction == PASSES[-1]), *_unsteady(rows), *_meanings(shape)],
        partial(_draw, rows),
        settings={"threads": runtime.threads, "torch": torch.__version__, "repeats": repeats},
    )


def _figures(row: Row) -> tuple[int, str, str, float | None, float | None]:
    milliseconds = None if row.seconds is None else 1e3 * row.seconds
    return (
        row.seq_len,
        row.direction,
        row.kernel,
        milliseconds,
        None if row.peak_bytes is None else row.peak_bytes / 2**20,
    )


def _sentence(part: Growth) -> str:
    memory = "" if part.memory is None else f", its memory as n^{part.memory:.2f}"
    return f"{part.kernel}, {part.direction}: time grows as n^{part.time:.2f}{memory}"


def _unsteady(rows: Sequence[Row]) -> list[str]:
    """Say what was not fitted, or only to some of the lengths, because something else ran meanwhile."""
    shaken: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.unsteady:
            shaken.setdefault((row.kernel, row.direction), []).append(str(row.seq_len))
    return [
        f"{kernel}, {direction}: unsteady and left out of the fit: length {', '.join(lengths)}; run again"
        for (kernel, direction), lengths in shaken.items()
    ]


def _meanings(shape: Shape) -> list[str]:
    """Say how wide a window is: up to that length it hides nothing, and costs what the equation does."""
    told = [(kernel, meaning(kernel, shape.window, shape.rank)) for kernel in _SHOWN]
    return [f"{kernel}: {what}; tfm bench --kernels all measures the others" for kernel, what in told if what]


def _draw(rows: Sequence[Row], figure: Any) -> None:
    lengths = sorted({row.seq_len for row in rows})
    for axes, (value, label) in zip(figure.subplots(1, 2), _PANELS, strict=True):
        for kernel in dict.fromkeys(row.kernel for row in rows):
            own = [r for r in rows if r.kernel == kernel and r.direction == PASSES[-1] and getattr(r, value)]
            axes.plot([r.seq_len for r in own], [getattr(r, value) for r in own], "o-", label=kernel)
        first = next((r for r in rows if r.kernel == "naive" and r.direction == PASSES[-1] and getattr(r, value)), None)
        if first is not None:
            start = getattr(first, value)
            axes.plot(lengths, [start * (n / first.seq_len) ** 2 for n in lengths], "k:", linewidth=1, label="n²")
        axes.set(xscale="log", yscale="log", xlabel="length n", ylabel=label, title=PASSES[-1])
        axes.set_xticks(lengths, map(str, lengths))
        axes.set_xticks([], minor=True)
        axes.legend(fontsize=7)
