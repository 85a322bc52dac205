"""Options that several commands share."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.errors import UserError
from transformer_cli.wording import shortened, whole_number

#: What the search takes at most (``DecodeSettings``), known here so that a message names the option that was typed.
WIDEST, LARGEST = 1000, 2**63 - 1

#: Panels of the help. Switches stand apart: the column of their --no- would cut long names in 80 columns.
search_option = partial(typer.Option, rich_help_panel="Search")
switch = partial(typer.Option, rich_help_panel="Search: yes or no")
running_option = partial(typer.Option, rich_help_panel="Running")


def up_to(most: int) -> Callable[[typer.CallbackParam, int | None], int | None]:
    """Return the check of an option whose upper bound is only technical: nobody means more, and no help names it."""

    def check(param: typer.CallbackParam, value: int | None) -> int | None:
        if value is not None and value > most:
            digits = f"a whole number of at most {len(str(most)) - 1} digits"
            raise UserError(f"{param.opts[0]} is not valid", got=value, expected=digits)
        return value

    return check


class Normalization(StrEnum):
    """What makes hypotheses of different lengths comparable."""

    gnmt = "gnmt"
    plain = "plain"


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Override a key, e.g. train.lr=3e-4. Repeatable."),
]


def run_path(text: str | Path) -> Path:
    """Return the path of a run; of an empty name ``Path`` would make the folder that the user is in.

    Raises:
        UserError: the name is empty.
    """
    if text == "":
        raise UserError("an empty run name was given", expected="a run folder, or one of its checkpoints/step-N")
    return Path(text)


Run = Annotated[
    Path | None,
    typer.Option(
        "--run",
        parser=run_path,
        metavar="<path>",
        help="Run folder, or one of its checkpoints/step-N. (default: the newest run)",
    ),
]
#: For commands that take the run as an argument: the same by the name that it has elsewhere.
SameRun = Annotated[Path | None, typer.Option("--run", parser=run_path, metavar="<path>", help="The same.")]
Runs = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        parser=run_path,
        metavar="<path>",
        help="Run folder (default: the newest run); repeated: an ensemble, of runs with one tokenizer.",
    ),
]
Device = Annotated[str, running_option("--device", help="auto, cpu, cuda or cuda:N.")]
AsJson = Annotated[bool, running_option("--json", help="Print exactly one JSON document on stdout.")]
Quiet = Annotated[bool, running_option("--quiet", "-q", help="Only results and errors, no progress or notes.")]
Debug = Annotated[bool, running_option("--debug", help="Show the traceback of a user error too.")]
To = Annotated[str | None, typer.Option("--to", help="Target language, if the run has data.more_targets.")]
BeamSize = Annotated[
    int | None, search_option("--beam-size", "-b", min=1, max=WIDEST, help="Hypotheses kept per step; 1 is greedy.")
]
LengthPenalty = Annotated[
    float | None, search_option("--length-penalty", min=0, max=100, help="Alpha of the length normalisation; 0: none.")
]
LengthNormalization = Annotated[
    Normalization | None,
    search_option(
        "--length-normalization",
        help="Score: log P / ((5 + length) / 6)^alpha (gnmt), or log P / length^alpha (plain); length counts </s>.",
    ),
]
EarlyStopping = Annotated[
    bool | None,
    switch(
        "--early-stopping/--no-early-stopping",
        help="Stop when a beam of hypotheses has ended, not when no other can win.",
    ),
]
Shortlist = Annotated[
    bool | None,
    switch("--shortlist/--no-shortlist", help="Choose among likely pieces only (tfm shortlist), or among all."),
]
BatchSize = Annotated[
    int | None, running_option("--batch-size", min=1, callback=up_to(LARGEST), help="Most sentences in a batch.")
]


def told_once(run: Path | None, same: Path | None) -> Path | None:
    """Return the run that was told as an argument or as ``--run``.

    Raises:
        UserError: it was told as both.
    """
    if run is not None and same is not None:
        raise UserError("the run is told twice", got=f"{run} and --run {same}")
    return same if run is None else run


def _tokens_or_auto(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if (number := whole_number(text, 1, LARGEST)) is None:
        expected = "auto, or a whole number of at least 1, of at most 18 digits"
        raise UserError("--batch-tokens is not valid", got=shortened(text), expected=expected)
    return number


BatchTokens = Annotated[
    str | None,
    running_option(
        "--batch-tokens",
        metavar="N|auto",
        callback=_tokens_or_auto,
        help="Most source tokens in a batch, padding included; auto: it and --batch-size as device and model suggest.",
    ),
]


def search_options(
    beam_size: int | None, length_penalty: float | None, batch_size: int | None, batch_tokens: str | None
) -> dict[str, float | str | None]:
    """Return overrides of the run's ``decode`` section by name."""
    search = {"beam_size": beam_size, "length_penalty": length_penalty}
    return search | {"batch_size": batch_size, "batch_tokens": batch_tokens}
