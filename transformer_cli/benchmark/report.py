"""The measurements of one benchmark, as rows.

It needs torch and numpy only, so that it also runs where nothing else is installed. The command draws the table.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from torch import Tensor

from transformer_cli.benchmark import accuracy, memory
from transformer_cli.benchmark.attention import (
    PASSES,
    Case,
    Inputs,
    Kernel,
    Shape,
    Unsupported,
    attempt,
    backend,
    chosen_backend,
    make_inputs,
    prepare,
    useful_flops,
)
from transformer_cli.benchmark.sparse import PATTERNS, pattern_named
from transformer_cli.benchmark.timing import Stopwatch
from transformer_cli.errors import UserError
from transformer_cli.wording import counted, spelled

UNSTEADY = 0.5  # interquartile range / median
FITTED = 3  # lengths at least, for a growth
#: Output and gradients in float64, or why there are none to compare with.
Truth = tuple[Tensor, ...] | str


@dataclass(frozen=True)
class Row:
    """One kernel at one length; None where a value does not exist."""

    kernel: str
    seq_len: int
    direction: str  # "pass" in JSON
    seconds: float | None = None  # median
    peak_bytes: int | None = None  # beyond the inputs
    max_error: float | None = None  # largest difference from float64
    ratio_to_naive: float | None = None  # seconds / seconds of naive
    unsupported: str | None = None  # the reason
    spread: float | None = None  # interquartile range, seconds
    measurements: int = 0
    backend: str | None = None  # what computed it: for sdpa torch's own choice
    flops_per_second: float | None = None  # of the products that the case asks for, ``useful_flops``
    share_of_peak: float | None = None  # of the best square product in this dtype
    no_error: str | None = None  # why there is no max_error although the kernel ran

    @property
    def unsteady(self) -> bool:
        """Whether the measurements lie so far apart that their median says little."""
        return self.seconds is not None and self.spread is not None and self.spread > UNSTEADY * self.seconds

    def document(self) -> dict[str, object]:
        """Return the row as JSON has it."""
        return {"pass" if name == "direction" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Growth:
    """How time and memory of a kernel grow with the length n: fitted exponents p of n^p."""

    kernel: str
    direction: str  # "pass" in JSON
    time: float
    memory: float | None  # None: there is no peak of every length

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {"pass" if name == "direction" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class BenchReport:
    """What was measured, where and how."""

    device: str
    torch: str
    settings: dict[str, object]
    rows: list[Row]
    growth: list[Growth] = field(default_factory=list)
    interrupted: bool = False  # the rows are those that were finished

    def document(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        parts = {name: [part.document() for part in getattr(self, name)] for name in ("rows", "growth")}
        return {**asdict(self), **parts}


def measure(
    shape: Shape,
    seq_lens: Sequence[int],
    *,
    kernels: Sequence[Kernel],
    repeats: int,
    peak: float,
    note: Callable[[str], None],
) -> Iterator[Row]:
    """Measure every kernel at every length, forward and forward+backward; each row comes when it is done.

    Args:
        shape: what all cases share.
        seq_lens: lengths of queries and keys, in tokens.
        kernels: those to compare.
        repeats: rounds of timing, in which all kernels take turns.
        peak: floating-point operations per second of the best square product.
        note: told what is being measured, a line each.

    Raises:
        UserError: a length or the number of repeats is below 1.
    """
    if not seq_lens or min(*seq_lens, repeats) < 1:
        raise UserError("lengths and repeats start at 1", got=f"lengths {spelled(seq_lens)}, repeats {repeats}")
    for seq_len in dict.fromkeys(seq_lens):
        cases = [Case(kernel, way, seq_len, shape) for way in PASSES for kernel in kernels]
        note(f"measuring the memory of {counted(len(cases), 'case')}, length {seq_len}")
        peaks = dict(zip(cases, memory.peak_bytes(cases), strict=True))
        possible = any(isinstance(found, int) for found in peaks.values())
        inputs = _inputs(shape, seq_len) if possible else None
        truths: dict[str, Truth] = {}
        for way in PASSES:
            note(f"timing {', '.join(kernels)} in turn, {way}, length {seq_len}")
            rows = {case: _first_run(case, peaks[case], inputs, truths) for case in cases if case.direction == way}
            yield from _compared(_timed(rows, inputs, repeats), peak)


def growth(rows: Sequence[Row]) -> list[Growth]:
    """Fit the exponents of each kernel and pass that was measured, and steadily, at three lengths or more."""
    found = []
    for kernel, direction in dict.fromkeys((row.kernel, row.direction) for row in rows):
        own = [row for row in rows if (row.kernel, row.direction) == (kernel, direction)]
        own = [row for row in own if row.seconds is not None and not row.unsteady]
        if len(own) >= FITTED:
            found.append(Growth(kernel, direction, _exponent(own, "seconds"), _exponent_of_memory(own)))
    return found


def _exponent(rows: Sequence[Row], what: str) -> float:
    """Return the slope of the least-squares line through the logarithms."""
    lengths, values = ([getattr(row, name) for row in rows] for name in ("seq_len", what))
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def _exponent_of_memory(rows: Sequence[Row]) -> float | None:
    return _exponent(rows, "peak_bytes") if all(row.peak_bytes for row in rows) else None


def _compared(rows: Iterator[tuple[Case, Row]], peak: float) -> Iterator[Row]:
    naive: float | None = None
    for case, row in rows:
        if row.seconds is None:
            yield row
            continue
        naive = row.seconds if row.kernel == "naive" else naive
        rate = useful_flops(case) / row.seconds
        ratio = row.seconds / naive if naive is not None else None
        yield replace(row, ratio_to_naive=ratio, flops_per_second=rate, share_of_peak=rate / peak)


def describe(shape: Shape, seq_lens: Sequence[int], repeats: int) -> dict[str, object]:
    """Return the settings, with the way each figure is measured."""
    return {
        **asdict(shape),
        "seq_lens": list(seq_lens),
        "repeats": repeats,
        "seconds": "median after warm-up; spread is the interquartile range",
        "peak_bytes": memory.method(shape.device),
        "max_error": accuracy.SCOPE,
        "ratio_to_naive": "seconds divided by the seconds of naive in the same pass",
        "flops_per_second": "of two products forward, six forward+backward; hidden pairs are not counted",
        "share_of_peak": "flops_per_second divided by product_flops_per_second, that of the best square product",
        "growth": "fitted exponents p of length^p, for kernels measured at three lengths or more",
    }


def _inputs(shape: Shape, seq_len: int) -> Inputs | None:
    try:
        return attempt(lambda: make_inputs(shape, seq_len))
    except Unsupported:
        return None


def _truth(case: Case, inputs: Inputs) -> Truth:
    """Return what a kernel must compute, or the reason why there is nothing to compare with."""
    if case.shape.dropout:
        return "with dropout every kernel draws its own mask"
    if case.kernel == "linformer":
        return "it computes other numbers by design: mixtures of the keys, learned"
    pattern = pattern_named(case.kernel, case.shape.window)
    try:
        return attempt(lambda: accuracy.reference(inputs, causal=case.shape.causal, pattern=pattern))
    except Unsupported as reason:
        return str(reason)


def _first_run(case: Case, peak: int | str, inputs: Inputs | None, truths: dict[str, Truth]) -> Row:
    """Compare one run with the truth; ``truths`` keeps what it is compared with, by the name of the pattern."""
    row = Row(case.kernel, case.seq_len, case.direction)
    if inputs is None or isinstance(peak, str):  # what does not fit is not tried in this process
        return replace(row, unsupported=peak if isinstance(peak, str) else "out of memory for the inputs alone")
    same = case.kernel if case.kernel in (*PATTERNS, "linformer") else "dense"
    if same not in truths:
        truths[same] = _truth(case, inputs)
    truth = truths[same]
    try:
        error = attempt(lambda: _error(case, inputs, truth))
    except Unsupported as reason:
        return replace(row, unsupported=str(reason))
    why = truth if isinstance(truth, str) else "it is not finite" if error is None else None
    return replace(row, backend=chosen_backend(case, inputs), peak_bytes=peak, max_error=error, no_error=why)


def _error(case: Case, inputs: Inputs, truth: Truth) -> float | None:
    with backend(case.kernel):
        results = prepare(case, inputs)()
    error = math.inf if isinstance(truth, str) else accuracy.max_error(results, truth)
    return error if math.isfinite(error) else None


def _timed(rows: dict[Case, Row], inputs: Inputs | None, repeats: int) -> Iterator[tuple[Case, Row]]:
    """Time what ran, in turn: what slows the machine down for a while then slows all kernels down.

    After Ctrl-C the rounds that were finished count.
    """
    ran = [case for case, row in rows.items() if row.unsupported is None]
    watches = {case: _watch(case, inputs, repeats) for case in ran if inputs is not None}
    interrupted = False
    try:
        for case in ran * repeats:
            rows[case] = _measured(case, rows[case], watches[case])
    except KeyboardInterrupt:
        interrupted = True
    yield from ((case, row) for case, row in rows.items() if row.unsupported or row.seconds is not None)
    if interrupted:
        raise KeyboardInterrupt


def _watch(case: Case, inputs: Inputs, repeats: int) -> Stopwatch:
    return Stopwatch(prepare(case, inputs), threads=case.shape.threads, rounds=repeats)


def _measured(case: Case, row: Row, watch: Stopwatch) -> Row:
    """Add one round's measurements, unless memory did not suffice in one before."""
    if row.unsupported:
        return row
    try:
        with backend(case.kernel):
            attempt(watch.measure)
    except Unsupported as reason:
        return Row(case.kernel, case.seq_len, case.direction, unsupported=str(reason))
    return replace(row, **asdict(watch.timing()))
