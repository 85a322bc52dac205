"""``tfm demo``: what can be asked for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Quiet, Run, up_to
from transformer_cli.demos.catalogue import DEMOS

Name = StrEnum("Name", {name: name for name in DEMOS})  # type: ignore[misc]

Which = Annotated[Name | None, typer.Argument(help="Which claim. (default: list them)")]
Picture = Annotated[Path | None, typer.Option("--output", "-o", help="Draw it: FILE.png or .svg.", dir_okay=False)]
Seed = Annotated[int, typer.Option("--seed", min=0, callback=up_to(2**31 - 1), help="Of everything random in it.")]


def demo(
    name: Which = None,
    picture: Picture = None,
    seed: Seed = 0,
    run: Run = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show a claim about attention and its training, by a number and a picture."""
    if name is None:
        for known, line in DEMOS.items():
            typer.echo(f"{known:8}  {line}")
        return
    from transformer_cli.commands.demo import DemoRequest, run_demo

    run_demo(DemoRequest(name.value, picture, seed, run, as_json, quiet))
