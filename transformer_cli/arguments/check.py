"""``tfm check``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Device, Quiet, SameRun, run_path, told_once

RunArgument = Annotated[
    Path | None,
    typer.Argument(parser=run_path, metavar="RUN", help="Run folder, or a checkpoint. (default: the newest run)"),
]


def check(
    run: RunArgument = None,
    same_run: SameRun = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Look for wrong masks, unstable settings, and heads that do nothing; exit code 1 if a mask is wrong."""
    from transformer_cli.commands import check as command

    report = command.check_run(told_once(run, same_run), device, quiet)
    command.print_check(report, as_json)
    if report.sees_too_much:
        raise typer.Exit(1)
