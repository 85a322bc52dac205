"""``tfm inspect``: what can be asked for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Device, Quiet, Run, To


class Place(StrEnum):
    """The three places of attention."""

    encoder = "encoder"
    decoder = "decoder"
    cross = "cross"


Text = Annotated[str | None, typer.Argument(metavar="TEXT", help="The sentence to look at.")]
Target = Annotated[str | None, typer.Option("--target", help="Its translation, instead of the run's own.")]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Draw all maps, or those of --layer or --head: FILE.png or .svg.", dir_okay=False
    ),
]
Npz = Annotated[Path | None, typer.Option("--npz", help="Write all maps as arrays of numpy.", dir_okay=False)]
Which = Annotated[Place, typer.Option("--place", help="Which map the terminal shows, and the picture of a layer.")]
Layer = Annotated[int | None, typer.Option("--layer", min=1, help="Of this layer. (default: the last but one)")]
HeadNumber = Annotated[int | None, typer.Option("--head", min=1, help="Of this head. (default: the mean of all)")]
Heads = Annotated[bool, typer.Option("--heads", help="Measure what every head does over the dev set instead.")]


def inspect(
    text: Text = None,
    target: Target = None,
    run: Run = None,
    to: To = None,
    picture: Picture = None,
    npz: Npz = None,
    place: Which = Place.cross,
    layer: Layer = None,
    head: HeadNumber = None,
    heads: Heads = False,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what every head looks at in a sentence and its translation, or what the heads do over the dev set."""
    from transformer_cli.commands import inspect as command

    request = command.InspectRequest(
        text, target, run, to, picture, npz, place.value, layer, head, heads, device, as_json, quiet
    )
    command.run_inspect(request)
