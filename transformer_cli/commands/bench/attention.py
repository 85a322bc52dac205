"""``tfm bench``: measure attention kernels and show them as a table or as one JSON document."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from transformer_cli.benchmark.attention import BACKENDS, DTYPES, KERNELS, Kernel, Shape
from transformer_cli.benchmark.early_end import finished_kept
from transformer_cli.benchmark.products import product_rates
from transformer_cli.benchmark.report import FITTED, UNSTEADY, BenchReport, Growth, Row, describe, growth, measure
from transformer_cli.benchmark.sparse import PATTERNS, meaning
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.errors import UserError
from transformer_cli.runtime import Runtime
from transformer_cli.wording import counted, shortened, whole_number

DEFAULT_LENGTHS = (512, 1024)
#: Which kernels a size is for.
READERS: dict[str, Sequence[Kernel]] = {"window": PATTERNS, "rank": ("linformer",)}
_LONGEST = 2**20
#: Enough for the peak: the best rate is that of large products.
_PEAK_SIZES = (512, 1024, 2048)
_PASS = {"forward": "fwd", "forward+backward": "fwd+bwd"}


@dataclass(frozen=True)
class BenchRequest:
    """What the command line asked for."""

    seq_lens: Sequence[int] = DEFAULT_LENGTHS
    kernels: Sequence[Kernel] = ("naive", "sdpa")
    heads: int = 8
    head_dim: int = 64
    batch: int = 1
    dtype: str | None = None  # None: float32 on a CPU, bfloat16 on a GPU
    causal: bool = False
    padding: float = 0.0
    dropout: float = 0.0
    window: int = 256
    rank: int = 64
    device: str = "auto"
    repeats: int = 5  # measurements at least; each is a block of calls where a call is short


def chosen_kernels(named: str | None, flash: bool) -> list[Kernel]:
    """Return the kernels to measure, naive first: the others are compared with it.

    Args:
        named: names with commas between, or ``all``; None: naive attention and torch's default choice.
        flash: torch's flash kernel too.

    Raises:
        UserError: a name is unknown.
    """
    wanted = ["naive", "sdpa"] if named is None else [name.strip() for name in named.split(",")]
    if unknown := [name for name in wanted if name not in (*KERNELS, "all")]:
        raise UserError(f"unknown kernel {unknown[0]!r}", expected=f"all, or some of {', '.join(KERNELS)}")
    wanted += KERNELS if "all" in wanted else []
    wanted += ["flash"] if flash else []
    return [kernel for kernel in KERNELS if kernel in wanted]


def told_sizes(kernels: Sequence[Kernel], told: Mapping[str, int | None]) -> dict[str, Any]:
    """Return what ``--window`` and ``--rank`` say, if they say something.

    Raises:
        UserError: no kernel that was asked for reads it.
    """
    sizes = {name: size for name, size in told.items() if size is not None}
    for name, size in sizes.items():
        if not set(kernels) & set(READERS[name]):
            hint = f"add one to --kernels: {', '.join(READERS[name])}"
            raise UserError(f"--{name} {size}: none of {', '.join(kernels)} reads it", hint=hint)
    return sizes


def lengths(told: Sequence[str]) -> list[int]:
    """Return the lengths that were asked for: ``2048``, or ``256..8192``, which is 256, 512, ... up to 8,192.

    Several have commas between, or were told one by one.

    Raises:
        UserError: something else was.
    """
    found: list[int] = []
    for text in ",".join(told).split(","):
        text = text.strip()
        first, dots, last = text.partition("..")
        length, longest = (whole_number(side, 1, 10**30) for side in (first, last if dots else first))
        if length is None or longest is None or length > longest:
            expected = "--seq-len 512,1024, or a range such as 256..8192"
            raise UserError(f"no length: {shortened(text)!r}", expected=expected)
        if longest > _LONGEST:
            raise UserError("no machine holds so long a text", got=text, expected=f"at most {_LONGEST:,}")
        while length <= longest:
            found.append(length)
            length *= 2
    return found


def run_bench(request: BenchRequest, note: Callable[[str], None] = lambda _: None) -> BenchReport:
    """Measure attention kernels. Ctrl-C ends it early: the report then holds what was finished.

    Args:
        request: kernels, lengths and the rest.
        note: told what is being measured, a line each.

    Raises:
        UserError: a value is out of range, or the device does not exist.
    """
    runtime = Runtime.resolve(request.device)
    usual = "float32" if runtime.device.type == "cpu" else "bfloat16"
    name = usual if request.dtype is None else request.dtype
    if name not in DTYPES:
        raise UserError(f"unknown dtype {name!r}", expected=", ".join(DTYPES))
    sizes = (request.heads, request.head_dim, request.batch)
    masks = (request.causal, request.dropout, request.padding)
    shape = Shape(*sizes, name, *masks, str(runtime.device), runtime.threads, request.window, request.rank)
    note("timing square products")
    peak = max(product_rates(runtime.device, runtime.threads, _PEAK_SIZES, DTYPES[name], repeats=3).values())
    settings = {**describe(shape, request.seq_lens, request.repeats), "product_flops_per_second": peak}
    rows: list[Row] = []
    with finished_kept(rows) as end:
        for row in _measured(request, shape, peak, note):
            rows.append(row)  # noqa: PERF402 - what came before Ctrl-C is kept
    device = str(runtime.describe()["device"])
    return BenchReport(device, torch.__version__, settings, rows, growth(rows), end.cause is not None)


def _measured(request: BenchRequest, shape: Shape, peak: float, note: Callable[[str], None]) -> Iterator[Row]:
    return measure(shape, request.seq_lens, kernels=request.kernels, repeats=request.repeats, peak=peak, note=note)


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
    head = [
        f"{report.device}, {counted(int(str(what['threads'])), 'thread')}, torch {report.torch}",
        f"attention: {case_of(what)}\n",
    ]
    for part in (*head, _table(report.rows), "", *_legend(report)):
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


def case_of(what: dict[str, object]) -> str:
    """Return what was measured, in a line, from the settings of a report."""
    hidden = ["causal"] if what["causal"] else []
    hidden += [f"{what['padding']:.0%} padding"] if what["padding"] else []
    sizes = f"batch {what['batch']}, {what['heads']} heads of {what['head_dim']}, {what['dtype']}"
    return f"{sizes}, {' and '.join(hidden) or 'no mask'}, dropout {what['dropout']}"


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))  # 80 columns
    left = ("pass", "kernel")
    for name in ("length", "pass", "kernel", "time", "spread", "ratio", "speed", "MiB", "error"):
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
        f"{row.spread / row.seconds:.0%}{'!' * row.unsteady}",
        "-" if row.ratio_to_naive is None else f"{row.ratio_to_naive:.2f}",
        "-" if row.share_of_peak is None else f"{row.share_of_peak:.0%}",
        "-" if row.peak_bytes is None else f"{row.peak_bytes / 2**20:.1f}",
        "-" if row.max_error is None else f"{row.max_error:.0e}",
    ]


def _seconds(value: float) -> str:
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e3)) if value * s >= 1), ("us", 1e6))
    return f"{value * scale:#.3g} {unit}" if value * scale < 99.95 else f"{value * scale:.0f} {unit}"


def _legend(report: BenchReport) -> Iterator[str]:
    what: dict[str, Any] = report.settings
    yield "pass     fwd: forward, no graph kept; fwd+bwd: forward, then the gradients of query, key and value"
    yield f"time     median of {what['repeats']} measurements or more, kernels in turn"
    yield "spread   interquartile range, in percent of the time"
    if any(row.unsteady for row in report.rows):
        yield f"!        spread above {UNSTEADY:.0%}: something else ran; measure again, or with more --repeats"
    yield "ratio    time / time of naive in the same pass: 0.25 is four times as fast; -: naive was not measured"
    yield f"speed    share of the best square product here, {what['product_flops_per_second'] / 1e9:,.0f} GFLOP/s"
    yield "         hidden pairs of query and key are no work; above 100%: that product is measured, and no limit"
    yield f"MiB      peak beyond the inputs ({what['peak_bytes']})"
    yield f"error    {what['max_error']}"
    yield from _meanings(report)
    yield from _growth(report)
    if report.interrupted:
        yield "interrupted: the rows above are those that were finished"
    yield from _refusals(report.rows)


def _growth(report: BenchReport) -> Iterator[str]:
    """Say how time and memory grow, or that too many rows are unsteady to say so."""
    fitted = {(part.kernel, part.direction): part for part in report.growth}
    ran = Counter((row.kernel, row.direction) for row in report.rows if row.seconds is not None)
    for (kernel, direction), n_rows in ran.items():
        part = fitted.get((kernel, direction))
        if part is not None:
            grown = "" if part.memory is None else f", memory as n^{part.memory:.2f}"
            yield f"growth   {kernel}, {_PASS[direction]}: time as n^{part.time:.2f}{grown}{_left_out(report, part)}"
        elif n_rows >= FITTED:
            yield f"growth   {kernel}, {_PASS[direction]}: not told, for fewer than {FITTED} lengths are without !"


def _left_out(report: BenchReport, part: Growth) -> str:
    unsteady = [row for row in report.rows if (row.kernel, row.direction) == (part.kernel, part.direction)]
    lengths = [str(row.seq_len) for row in unsteady if row.unsteady]
    return f" (without length {', '.join(lengths)}, see !)" if lengths else ""


def _meanings(report: BenchReport) -> Iterator[str]:
    """Say which kernels are torch's, what those look at that do not look at all keys, and why some have no error."""
    ran = [row for row in report.rows if row.seconds is not None]
    if any(row.kernel == "sdpa" for row in ran):
        yield "sdpa     torch's own choice, with the kernel it chose in brackets"
    for named in dict.fromkeys(row.kernel for row in report.rows if row.kernel in BACKENDS):
        yield f"{named:<8} torch's kernel of that name, or nothing"
    for kernel in dict.fromkeys(row.kernel for row in ran):
        what = meaning(kernel, int(str(report.settings["window"])), int(str(report.settings["rank"])))
        if what is not None:
            yield f"{kernel:<9}{' ' if len(kernel) > 8 else ''}{what}"
    for reason in dict.fromkeys(row.no_error for row in ran if row.no_error):
        kernels = ", ".join(dict.fromkeys(row.kernel for row in ran if row.no_error == reason))
        yield f"no error {kernels}: {reason}"


def _refusals(rows: Sequence[Row]) -> Iterator[str]:
    """Say once why a kernel cannot run, with all cases in which it cannot for this reason."""
    refused: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.unsupported:
            refused.setdefault((row.kernel, row.unsupported), []).append(row)
    for (kernel, reason), cases in refused.items():
        ways = " and ".join(dict.fromkeys(_PASS[row.direction] for row in cases))
        lengths = ", ".join(dict.fromkeys(str(row.seq_len) for row in cases))
        yield f"cannot run: {kernel}, {ways}, length {lengths}: {reason}"
