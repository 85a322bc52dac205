"""``tfm bench --plot``: time and memory against length, both axes logarithmic, where a power is a straight line.

matplotlib is an extra (``pip install 'transformer-cli[plot]'``) and is asked for before anything is measured.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_cli.benchmark.report import BenchReport, Row
from transformer_cli.commands.output_file import refuse_file_of_run
from transformer_cli.errors import UserError

FORMATS = (".png", ".svg")
_DASHES = {"forward": "--", "forward+backward": "-"}
_PANELS = (("seconds", "seconds"), ("peak_bytes", "bytes beyond the inputs"))


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written in the end.

    Raises:
        UserError: the ending is unknown, the folder is missing, or matplotlib is.
    """
    if path.suffix.lower() not in FORMATS:
        raise UserError("a plot is a picture", where=str(path), expected=f"a name ending in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise UserError("the folder of the plot does not exist", where=str(path.parent))
    refuse_file_of_run(path)
    try:
        import matplotlib.figure  # noqa: F401 - now, not after what takes minutes
    except ImportError as error:
        raise UserError("a plot needs matplotlib", got=str(error), hint="pip install 'transformer-cli[plot]'") from None


def write_plot(report: BenchReport, path: Path) -> None:
    """Draw the rows of a report into a file, one line for each kernel and pass.

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, (value, label) in zip(figure.subplots(1, 2), _PANELS, strict=True):
        _draw(axes, report.rows, value)
        axes.set(xscale="log", yscale="log", xlabel="length", ylabel=label)
        axes.set_xticks(sorted({row.seq_len for row in report.rows}), minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.grid(alpha=0.3)
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right center", fontsize="small")
    what = report.settings
    sizes = f"batch {what['batch']}, {what['heads']} heads of {what['head_dim']}, {what['dtype']}"
    figure.suptitle(f"attention: {sizes}\n{report.device}")
    figure.savefig(path, dpi=150)


def _draw(axes: Any, rows: Sequence[Row], value: str) -> None:
    kernels = list(dict.fromkeys(row.kernel for row in rows))
    for kernel, direction in dict.fromkeys((row.kernel, row.direction) for row in rows):
        own = [row for row in rows if (row.kernel, row.direction) == (kernel, direction) and getattr(row, value)]
        if not own:
            continue
        axes.plot(
            [row.seq_len for row in own],
            [getattr(row, value) for row in own],
            _DASHES[direction],
            marker="o",
            color=f"C{kernels.index(kernel)}",
            label=f"{kernel}, {direction}",
        )
