"""``tfm bench``: measure attention kernels and show them as a table or as one JSON document."""

from collections.abc import Callable, Iterator, Sequence

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from transformer_cli.benchmark.attention import DTYPES, Kernel, Shape
from transformer_cli.benchmark.report import BenchReport, Row, describe, measure
from transformer_cli.commands.json_text import json_text
from transformer_cli.errors import UserError
from transformer_cli.runtime import Runtime

DEFAULT_LENGTHS = (512, 1024)
_PASS = {"forward": "fwd", "forward+backward": "fwd+bwd"}


def run_bench(
    *,
    seq_lens: Sequence[int] = DEFAULT_LENGTHS,
    flash: bool = False,
    heads: int = 8,
    head_dim: int = 64,
    batch: int = 1,
    dtype: str | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    device: str = "auto",
    repeats: int = 10,
    note: Callable[[str], None] = lambda _: None,
) -> BenchReport:
    """Measure naive attention, torch's default choice (``sdpa``) and, if asked for, its flash kernel alone.

    Args:
        dtype: float32, bfloat16 or float16; None is float32 on a CPU and bfloat16 on a GPU.
        repeats: measurements at least; each is a block of calls where a call is short.
        note: told what is being measured, a line each.

    Raises:
        UserError: a value is out of range, or the device does not exist.
    """
    runtime = Runtime.resolve(device)
    name = dtype or ("float32" if runtime.device.type == "cpu" else "bfloat16")
    if name not in DTYPES:
        raise UserError(f"unknown dtype {name!r}", expected=", ".join(DTYPES))
    shape = Shape(heads, head_dim, batch, name, causal, dropout, str(runtime.device), runtime.threads)
    kernels: list[Kernel] = ["naive", "sdpa", *(["flash"] if flash else [])]  # type: ignore[list-item]
    rows = measure(shape, seq_lens, kernels=kernels, repeats=repeats, note=note)
    return BenchReport(str(runtime.describe()["device"]), torch.__version__, describe(shape, seq_lens, repeats), rows)


def print_report(report: BenchReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(as_json(report))
    else:
        render(report, Console())


def as_json(report: BenchReport) -> str:
    """Return the report as one JSON document."""
    return json_text(report.document(), indent=1)


def render(report: BenchReport, console: Console) -> None:
    """Print the table with all that its figures must be read with."""
    what = report.settings
    mask = "causal" if what["causal"] else "no mask"
    sizes = f"batch {what['batch']}, {what['heads']} heads of {what['head_dim']}, {what['dtype']}"
    head = [
        f"{report.device}, {what['threads']} threads, torch {report.torch}",
        f"attention: {sizes}, {mask}, dropout {what['dropout']}\n",
    ]
    for part in (*head, _table(report.rows), "", *_legend(report)):
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    left = ("pass", "kernel")
    for name in ("length", "pass", "kernel", "time", "spread", "ratio", "memory", "error"):
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        last = after is None or (after.seq_len, after.direction) != (row.seq_len, row.direction)
        table.add_row(str(row.seq_len), _PASS[row.direction], _kernel(row), *_figures(row), end_section=last)
    return table


def _kernel(row: Row) -> str:
    return f"sdpa ({row.backend})" if row.kernel == "sdpa" and row.backend else row.kernel


def _figures(row: Row) -> list[str]:
    if row.seconds is None or row.spread is None:
        return ["cannot run"]
    return [
        _seconds(row.seconds),
        f"{row.spread / row.seconds:.0%}",
        "-" if row.ratio_to_naive is None else f"{row.ratio_to_naive:.2f}",
        "-" if row.peak_bytes is None else f"{row.peak_bytes / 2**20:.1f} MiB",
        "-" if row.max_error is None else f"{row.max_error:.0e}",
    ]


def _seconds(value: float) -> str:
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e3)) if value * s >= 1), ("us", 1e6))
    return f"{value * scale:.3g} {unit}" if value * scale < 100 else f"{value * scale:.0f} {unit}"


def _legend(report: BenchReport) -> Iterator[str]:
    what = report.settings
    yield "pass     fwd: forward, no graph kept; fwd+bwd: forward, then the gradients of query, key and value"
    yield f"time     median of at least {what['repeats']} measurements after warm-up; spread: their interquartile range"
    yield "ratio    time / time of naive in the same pass: 0.25 is four times as fast"
    yield "sdpa     torch's own choice, with the kernel it chose in brackets; flash: that kernel or nothing"
    yield f"memory   peak beyond the inputs ({what['peak_bytes']})"
    yield f"error    {what['max_error']}"
    for row in report.rows:
        if row.unsupported:
            yield f"cannot run: {row.kernel}, {_PASS[row.direction]}, length {row.seq_len}: {row.unsupported}"
