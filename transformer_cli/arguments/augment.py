"""``tfm augment``: what can be asked for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import (
    AsJson,
    BatchSize,
    BatchTokens,
    BeamSize,
    Debug,
    Device,
    LengthPenalty,
    Quiet,
    To,
    run_path,
    search_options,
)


class Choose(StrEnum):
    """Which candidate is kept."""

    score = "score"
    reference = "reference"


Runs = Annotated[
    list[Path],
    typer.Option(
        "--run",
        parser=run_path,
        metavar="<path>",
        help="Run that translates; repeatable: each proposes translations, or see --ensemble.",
    ),
]
Ensemble = Annotated[
    bool, typer.Option("--ensemble", help="The runs, of one tokenizer, translate together, as in tfm translate.")
]
PairsOutput = Annotated[str, typer.Option("--output", "-o", help="TSV to write: source, target; .gz is packed.")]
Mono = Annotated[
    str | None, typer.Option("--mono", help="Text of the target language, for back-translation; - is stdin.")
]
OwnPairs = Annotated[
    tuple[str, str] | None, typer.Option("--pairs", metavar="SRC TGT", help="Your own pairs, for distillation.")
]
Tag = Annotated[
    bool | None, typer.Option("--tag/--no-tag", help="Put <BT> before back-translated sources. (default: tag)")
]
Choice = Annotated[
    Choose, typer.Option("--choose", help="Keep the best score, or what is closest to the reference (chrF).")
]
MaxRatio = Annotated[
    float, typer.Option("--max-ratio", min=1, help="Drop pairs with a side so many times as long, in tokens.")
]


def augment(
    runs: Runs,
    output: PairsOutput,
    ensemble: Ensemble = False,
    mono: Mono = None,
    pairs: OwnPairs = None,
    tag: Tag = None,
    choose: Choice = Choose.score,
    to: To = None,
    max_ratio: MaxRatio = 2.0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make more training pairs: back-translate target text, or distil your own pairs."""
    from transformer_cli.commands import augment as command

    request = command.AugmentRequest(
        mono=mono,
        pairs=pairs,
        runs=tuple(runs),
        ensemble=ensemble,
        output=output,
        search=search_options(beam_size, length_penalty, batch_size, batch_tokens),
        tag=tag,
        choose=choose.value,
        max_ratio=max_ratio,
        to=to,
        device=device,
        quiet=quiet,
    )
    report = command.run_augment(request)
    if as_json:
        typer.echo(command.as_json(report))
