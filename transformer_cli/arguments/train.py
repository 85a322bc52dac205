"""``tfm train``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Device, Overrides, Quiet, run_path
from transformer_cli.errors import UserError

Recipe = Annotated[
    str | None, typer.Option("--config", "-c", help="Recipe: a YAML file, or the name of a shipped one.")
]
NewRun = Annotated[
    Path | None,
    typer.Option(
        "--run",
        parser=run_path,
        metavar="<path>",
        help="Run folder to write. (default: runs/<recipe>-<UTC time>)",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run (--run, or the newest one).")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print configuration, data, parameters and a time estimate; train nothing.")
]


def train(
    config: Recipe = None,
    overrides: Overrides = None,
    run: NewRun = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a translator from a recipe, or continue a run."""
    from transformer_cli.commands import plan
    from transformer_cli.commands import train as command

    request = command.TrainRequest(config, tuple(overrides or ()), run, resume, overwrite, device, quiet)
    if dry_run and resume:
        raise UserError("--dry-run plans a new run, so it does not go with --resume", hint="leave one of them away")
    if dry_run:
        plan.print_plan(plan.plan_training(request), as_json)
    else:
        command.print_report(command.run_training(request), as_json)
