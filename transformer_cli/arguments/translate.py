"""``tfm translate``: what can be asked for."""

from enum import StrEnum
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
    Run,
    To,
)


class InputFormat(StrEnum):
    """What a line of the input is."""

    text = "text"
    jsonl = "jsonl"


class Format(StrEnum):
    """How the lines are written."""

    text = "text"
    tsv = "tsv"
    jsonl = "jsonl"


class Engine(StrEnum):
    """Who searches."""

    torch = "torch"
    ctranslate2 = "ctranslate2"


Texts = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="Sentences; without any, --input or stdin is read.")
]
InputPath = Annotated[
    str | None, typer.Option("--input", "-i", help="File to translate line by line (.gz too); - is stdin.")
]
InputKind = Annotated[
    InputFormat | None,
    typer.Option("--input-format", help="What a line of the input is. (default: jsonl if it is called .jsonl)"),
]
Field = Annotated[
    str | None, typer.Option("--field", help="Field of a JSON line with the text. (default: source, else text)")
]
OutputPath = Annotated[str, typer.Option("--output", "-o", help="File to write (.gz too); - is stdout.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from OUTPUT.part, left by an interrupted job.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Throw OUTPUT.part away and start anew.")]
NBest = Annotated[int, typer.Option("--n-best", min=1, help="Translations per line, at most the beam size.")]
MaxLengthRatio = Annotated[
    float | None, typer.Option("--max-length-ratio", min=0.01, help="Target tokens per source token (plus 10).")
]
MinLength = Annotated[int | None, typer.Option("--min-length", min=0, help="Least target tokens of a translation.")]
Alignment = Annotated[
    bool, typer.Option("--alignment", help="In JSON, which source word each word comes from: 0-0 1-2.")
]
SearchEngine = Annotated[Engine, typer.Option("--engine", help="ctranslate2 needs an export: tfm export.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="Lines of text, of tab-separated values, or of JSON.")]


def translate(
    text: Texts = None,
    run: Run = None,
    input_path: InputPath = None,
    input_format: InputKind = None,
    field: Field = None,
    output_path: OutputPath = "-",
    resume: Resume = False,
    overwrite: Overwrite = False,
    to: To = None,
    beam_size: BeamSize = None,
    n_best: NBest = 1,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    min_length: MinLength = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    output_format: OutputFormat = Format.text,
    alignment: Alignment = False,
    engine: SearchEngine = Engine.torch,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate text, a file or stdin: one line in, one line out, in order."""
    from transformer_cli.commands import translate as command

    if as_json and output_format is not Format.text:
        raise typer.BadParameter("--json prints one document; it does not go with --format")
    search = {"beam_size": beam_size, "length_penalty": length_penalty, "max_length_ratio": max_length_ratio}
    search |= {"min_length": min_length, "batch_size": batch_size, "batch_tokens": batch_tokens, "alignment": alignment}
    request = command.TranslateRequest(
        texts=tuple(text or ()),
        run=run,
        input_path=input_path,
        output_path=output_path,
        search=search,
        n_best=n_best,
        output_format="json" if as_json else output_format.value,
        device=device,
        quiet=quiet,
        to=to,
        input_format=None if input_format is None else input_format.value,
        field=field,
        resume=resume,
        overwrite=overwrite,
        engine=engine.value,
    )
    command.run_translate(request)
