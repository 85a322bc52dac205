"""The measurements of one benchmark, as rows.

It needs torch and numpy only, so that it also runs where nothing else is installed. The command draws the table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import torch
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
)
from transformer_cli.benchmark.timing import Timing, time_call
from transformer_cli.errors import UserError
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Row:
    """One kernel at one length; None where a value does not exist."""

    kernel: str
    seq_len: int
    direction: str  # "pass" in JSON
    seconds: float | None = None  # median
    peak_bytes: int | None = None
    max_error: float | None = None
    ratio_to_naive: float | None = None  # seconds / seconds of naive
    unsupported: str | None = None  # the reason
    spread: float | None = None  # interquartile range, seconds
    measurements: int = 0
    backend: str | None = None  # what computed it: for sdpa torch's own choice

    def document(self) -> dict[str, object]:
        """Return the row as JSON has it."""
        return {"pass" if name == "direction" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class BenchReport:
    """What was measured, where and how."""

    device: str
    torch: str
    settings: dict[str, object]
    rows: list[Row]

    def document(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        return {**asdict(self), "rows": [row.document() for row in self.rows]}


def measure(
    shape: Shape, seq_lens: Sequence[int], *, kernels: Sequence[Kernel], repeats: int, note: Callable[[str], None]
) -> list[Row]:
    """Measure every kernel at every length, forward and forward+backward.

    Args:
        note: told what is being measured, a line each.

    Raises:
        UserError: a length or the number of repeats is below 1.
    """
    if not seq_lens or min(*seq_lens, repeats) < 1:
        raise UserError("lengths and repeats start at 1", got=f"lengths {list(seq_lens)}, repeats {repeats}")
    lengths = list(dict.fromkeys(seq_lens))
    cases = [Case(kernel, way, seq_len, shape) for seq_len in lengths for way in PASSES for kernel in kernels]
    note(f"measuring the memory of {counted(len(cases), 'case')}")
    peaks = dict(zip(cases, memory.peak_bytes(cases), strict=True))
    rows: list[Row] = []
    for seq_len in lengths:
        here = [case for case in cases if case.seq_len == seq_len]
        possible = any(isinstance(peaks[case], int) for case in here)
        inputs, truth = _inputs_and_truth(shape, seq_len) if possible else (None, None)
        for case in here:
            note(f"timing {case.kernel}, {case.direction}, length {seq_len}")
            rows.append(_row(case, peaks[case], inputs, truth, repeats))
    return [replace(row, ratio_to_naive=_ratio(row, rows)) for row in rows]


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
    }


def _inputs_and_truth(shape: Shape, seq_len: int) -> tuple[Inputs | None, tuple[Tensor, ...] | None]:
    try:
        inputs = attempt(lambda: make_inputs(shape, seq_len))
    except Unsupported:
        return None, None
    try:  # with dropout every kernel draws its own mask: there is nothing to compare with
        return inputs, attempt(lambda: accuracy.reference(inputs, causal=shape.causal)) if not shape.dropout else None
    except Unsupported:
        return inputs, None


def _row(case: Case, peak: int | str, inputs: Inputs | None, truth: tuple[Tensor, ...] | None, repeats: int) -> Row:
    row = Row(case.kernel, case.seq_len, case.direction)
    if inputs is None or isinstance(peak, str):  # what does not fit is not tried in this process
        return replace(row, unsupported=peak if isinstance(peak, str) else "out of memory for the inputs alone")
    try:
        timing, error = attempt(lambda: _run_here(case, inputs, truth, repeats))
    except Unsupported as reason:
        return replace(row, unsupported=str(reason))
    finally:
        if inputs.query.is_cuda:
            torch.cuda.empty_cache()
    return replace(row, backend=chosen_backend(case, inputs), peak_bytes=peak, max_error=error, **asdict(timing))


def _run_here(
    case: Case, inputs: Inputs, truth: tuple[Tensor, ...] | None, repeats: int
) -> tuple[Timing, float | None]:
    run = prepare(case, inputs)
    with backend(case.kernel):
        error = None if truth is None else accuracy.max_error(run(), truth)
        timing = time_call(run, repeats=repeats, threads=case.shape.threads)
    return timing, error if error is not None and math.isfinite(error) else None


def _ratio(row: Row, rows: Sequence[Row]) -> float | None:
    same = ((other.seq_len, other.direction, other.kernel, other.seconds) for other in rows)
    naive = next((took for *what, took in same if what == [row.seq_len, row.direction, "naive"]), None)
    return row.seconds / naive if row.seconds is not None and naive is not None else None
