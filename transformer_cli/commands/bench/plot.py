"""``tfm bench --plot``: time and memory against length, both axes logarithmic, where a power is a straight line.

matplotlib is an extra (``pip install 'transformer-cli[plot]'``) and is asked for before anything is measured.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_cli.benchmark.report import BenchReport, Row
from transformer_cli.commands.bench.attention import case_of
from transformer_cli.commands.files.output_file import output_bytes, refuse_unwritable
from transformer_cli.errors import UserError

FORMATS = (".png", ".svg")
_PANELS = (("seconds", 1e3, "milliseconds"), ("peak_bytes", 2.0**-20, "MiB beyond the inputs"))
_MARKERS = "os^vDP*X<>hd"  # more than colours, so that no two kernels look alike


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written in the end.

    Raises:
        UserError: the ending is unknown, matplotlib is missing, or the place cannot be written.
        DiskFull: there is no room.
    """
    if path.suffix.lower() not in FORMATS:
        raise UserError("a plot is a picture", where=str(path), expected=f"a name ending in {' or '.join(FORMATS)}")
    refuse_unwritable(path)
    try:
        import matplotlib.figure  # noqa: F401 - now, not after what takes minutes
    except ImportError as error:
        raise UserError("a plot needs matplotlib", got=str(error), hint="pip install 'transformer-cli[plot]'") from None


def write_plot(report: BenchReport, path: Path) -> None:
    """Draw the rows of a report into a file, one line for each kernel and pass.

    Raises:
        UserError: the file cannot be written.
        DiskFull: there is no room; what was there before is intact.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    for axes, (value, scale, label) in zip(figure.subplots(1, 2), _PANELS, strict=True):
        _draw(axes, report.rows, value, scale)
        axes.set(xscale="log", yscale="log", xlabel="length", ylabel=label)
        axes.set_xticks(sorted({row.seq_len for row in report.rows}), minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right center", fontsize="small")
    figure.suptitle(f"attention: {case_of(report.settings)}\n{report.device}")
    if missing := [kernel for kernel in _kernels(report.rows) if not _ran(report.rows, kernel)]:
        figure.supxlabel(f"not drawn, for they cannot run: {', '.join(missing)}", fontsize="small")
    save_figure(figure, path, dpi=150)


def save_figure(figure: Any, path: Path, dpi: int) -> None:
    """Write a figure of matplotlib whole, or not at all, in the format that the name ends in.

    Raises:
        UserError: the file cannot be written.
        DiskFull: there is no room; what was there before is intact.
    """
    with output_bytes(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=dpi)


def _kernels(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.kernel for row in rows))


def _ran(rows: Sequence[Row], kernel: str) -> bool:
    return any(row.kernel == kernel and row.seconds is not None for row in rows)


def _draw(axes: Any, rows: Sequence[Row], value: str, scale: float) -> None:
    """Draw a line for each kernel and pass: kernels differ in colour and marker, forward is hollow and dashed."""
    kernels = _kernels(rows)
    for kernel, direction in dict.fromkeys((row.kernel, row.direction) for row in rows):
        own = [row for row in rows if (row.kernel, row.direction) == (kernel, direction) and getattr(row, value)]
        if not own:
            continue
        number, forward = kernels.index(kernel), direction == "forward"
        axes.plot(
            [row.seq_len for row in own],
            [getattr(row, value) * scale for row in own],
            "--" if forward else "-",
            marker=_MARKERS[number % len(_MARKERS)],
            markerfacecolor="none" if forward else None,
            color=f"C{number % 10}",
            label=f"{kernel}, {direction}",
        )
