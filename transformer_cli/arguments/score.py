"""``tfm score``: what can be asked for."""

from enum import StrEnum
from typing import Annotated

import typer

from transformer_cli.arguments.shared import (
    BatchSize,
    BatchTokens,
    Debug,
    Device,
    LengthNormalization,
    LengthPenalty,
    Quiet,
    Runs,
    To,
)


class ScoreFormat(StrEnum):
    """How the results are written."""

    text = "text"
    jsonl = "jsonl"


Sources = Annotated[str, typer.Argument(metavar="SRC", help="File of sources (.gz too); - is stdin.")]
Targets = Annotated[str, typer.Argument(metavar="TGT", help="File of their translations, line by line.")]
Output = Annotated[str, typer.Option("--output", "-o", help="File to write (.gz too); - is stdout.")]
Format = Annotated[ScoreFormat, typer.Option("--format", help="Scores alone, or JSON lines with that of each token.")]


def score(
    src: Sources,
    tgt: Targets,
    runs: Runs = None,
    output: Output = "-",
    output_format: Format = ScoreFormat.text,
    to: To = None,
    length_penalty: LengthPenalty = None,
    length_normalization: LengthNormalization = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say how probable given translations are: the score that a search would give them, a line each."""
    from transformer_cli.commands import score as command

    search = {"length_penalty": length_penalty, "length_normalization": length_normalization}
    request = command.ScoreRequest(
        src=src,
        tgt=tgt,
        runs=tuple(runs or ()),
        output=output,
        output_format=output_format.value,
        search=search | {"batch_size": batch_size, "batch_tokens": batch_tokens},
        to=to,
        device=device,
        quiet=quiet,
    )
    command.run_score(request)
