"""``tfm report``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import Debug, Device, Quiet, SameRun, To, run_path, told_once

ReportedRun = Annotated[
    Path | None,
    typer.Argument(
        parser=run_path,
        metavar="RUN",
        help="Run folder, or one of its checkpoints/step-N. (default: the newest run)",
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.", dir_okay=False)]
Lines = Annotated[int, typer.Option("--lines", min=0, help="Most dev sentences to translate for it; 0: none.")]


def report(
    run: ReportedRun = None,
    same_run: SameRun = None,
    output: Output = Path("report.html"),
    lines: Lines = 500,
    to: To = None,
    device: Device = "auto",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write one HTML file with all that a run has to tell: curves, scores, sentences, attention, configuration."""
    from transformer_cli.commands import report as command

    command.run_report(command.ReportRequest(told_once(run, same_run), output, lines, to, device, quiet))
