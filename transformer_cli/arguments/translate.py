"""``tfm translate``: what can be asked for."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import (
    LARGEST,
    WIDEST,
    AsJson,
    BatchSize,
    BatchTokens,
    BeamSize,
    Debug,
    Device,
    EarlyStopping,
    LengthNormalization,
    LengthPenalty,
    Quiet,
    Runs,
    Shortlist,
    To,
    running_option,
    search_option,
    up_to,
)
from transformer_cli.errors import UserError
from transformer_cli.wording import shortened, whole_number

_sample_option = partial(typer.Option, rich_help_panel="Samples")
_wish = partial(typer.Option, rich_help_panel="Wishes")


def _above_0(param: typer.CallbackParam, value: float | None) -> float | None:
    if value == 0:
        raise UserError(f"{param.opts[0]} is not valid", got=f"{value:g}", expected="a number above 0")
    return value


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
    auto = "auto"


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
NBest = Annotated[
    int, search_option("--n-best", min=1, max=WIDEST, help="Translations per line: of the beam, or samples.")
]
MaxLengthRatio = Annotated[
    float | None,
    search_option("--max-length-ratio", min=0.01, max=100, help="Target tokens per source token (plus 10)."),
]
MinLength = Annotated[
    int | None,
    search_option("--min-length", min=0, callback=up_to(LARGEST), help="Least target tokens of a translation."),
]
NoRepeatNgram = Annotated[
    int | None,
    search_option(
        "--no-repeat-ngram",
        min=0,
        callback=up_to(LARGEST),
        help="No N tokens in a row may recur in a translation; 0: all may.",
    ),
]
Alignment = Annotated[
    bool, typer.Option("--alignment", help="In JSON, which source word each word comes from: 0-0 1-2.")
]
SearchEngine = Annotated[
    Engine,
    running_option("--engine", help="ctranslate2 needs an export (tfm export); auto: it, where it says the same."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="Lines of text, of tab-separated values, or of JSON.")]


Sample = Annotated[
    bool, _sample_option("--sample", help="Draw --n-best translations from the model, not the best ones.")
]
Temperature = Annotated[
    float | None,
    _sample_option("--temperature", min=0.01, max=100, help="Draw by P^(1/T): below 1 the probable more often."),
]
TopK = Annotated[
    int | None,
    _sample_option("--top-k", min=0, callback=up_to(LARGEST), help="Draw from the K most probable tokens; 0: all."),
]
TopP = Annotated[
    float | None,
    _sample_option(
        "--top-p", min=0, max=1, callback=_above_0, help="Draw from the least set of tokens that holds P; 1: all."
    ),
]
Seed = Annotated[
    int | None,
    _sample_option("--seed", min=0, callback=up_to(LARGEST), help="What is drawn depends on it and the line's number."),
]
Mbr = Annotated[
    int | None,
    _sample_option(
        "--mbr", metavar="N", min=2, max=WIDEST, help="Draw N translations, take the one most like the others (chrF)."
    ),
]

Prefix = Annotated[
    str | None,
    _wish("--prefix", help="Text with which every translation starts; JSON lines may have their own."),
]

GlossaryFile = Annotated[
    Path | None,
    _wish("--glossary", metavar="FILE", help="Terms, one a line, a tab and the translation that each must get."),
]
Forbid = Annotated[
    Path | None, _wish("--forbid", metavar="FILE", help="Phrases, one a line, that no translation may hold.")
]

Workers = Annotated[
    str, running_option("--workers", metavar="N|auto", help="Processes that share a long job; auto: if it is faster.")
]


def translate(
    texts: Texts = None,
    runs: Runs = None,
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
    length_normalization: LengthNormalization = None,
    early_stopping: EarlyStopping = None,
    shortlist: Shortlist = None,
    max_length_ratio: MaxLengthRatio = None,
    min_length: MinLength = None,
    no_repeat_ngram: NoRepeatNgram = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    mbr: Mbr = None,
    prefix: Prefix = None,
    glossary: GlossaryFile = None,
    forbid: Forbid = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    output_format: OutputFormat = Format.text,
    alignment: Alignment = False,
    engine: SearchEngine = Engine.torch,
    workers: Workers = "auto",
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate text, a file or stdin: one line in, one line out, in order."""
    options = locals()  # the request knows each by the name that it has here
    from transformer_cli.commands.translate import job as command

    if options.pop("as_json"):
        if output_format is not Format.text:
            raise UserError("--json prints one document, so it does not go with --format")
        options["output_format"] = "json"
    del options["debug"]
    options |= {"workers": _number_of_workers(workers), "texts": tuple(texts or ()), "runs": tuple(runs or ())}
    command.run_translate(command.TranslateRequest.of(options))


def _number_of_workers(text: str) -> int | None:
    if text == "auto":
        return None
    if (number := whole_number(text, 1, 1000)) is None:
        expected = "auto, or a whole number from 1 to 1000"
        raise UserError("--workers is not valid", got=shortened(text), expected=expected)
    return number
