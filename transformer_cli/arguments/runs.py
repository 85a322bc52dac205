"""``tfm runs``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug

Root = Annotated[Path, typer.Argument(help="Folder of run folders.")]


def runs(root: Root = Path("runs"), as_json: AsJson = False, debug: Debug = False) -> None:
    """List the runs: date, languages, steps, dev BLEU, size, finished or not."""
    from transformer_cli.commands import runs as command

    command.print_runs(command.list_runs(root), root, as_json)
