"""The command line: which commands there are, and how one of them is run.

Nothing heavy is imported here: torch, datasets, sacrebleu, numpy and the configuration are loaded by the command
that needs them, so that ``tfm --help`` answers at once. Results go to stdout, everything else to stderr.
Not here: the options of a command (``arguments/``) and what it does (``commands/``).
"""

import os
import sys
from typing import Annotated

import typer

from transformer_cli import __version__
from transformer_cli.arguments.augment import augment
from transformer_cli.arguments.bench import bench
from transformer_cli.arguments.check import check
from transformer_cli.arguments.demo import demo
from transformer_cli.arguments.evaluate import evaluate
from transformer_cli.arguments.export import export
from transformer_cli.arguments.init import init
from transformer_cli.arguments.inspect import inspect
from transformer_cli.arguments.report import report
from transformer_cli.arguments.runs import runs
from transformer_cli.arguments.score import score
from transformer_cli.arguments.shortlist import shortlist
from transformer_cli.arguments.text_arguments import TextCommand
from transformer_cli.arguments.train import train
from transformer_cli.arguments.translate import translate
from transformer_cli.commands.shared.boundary import run_guarded

app = typer.Typer(
    name="tfm",
    help="Train, run, score and measure a Transformer translator.",
    epilog="Start here: tfm train --config base.yaml, then tfm translate 'Where is the station?'",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train)
app.command("translate", cls=TextCommand)(translate)
app.command("eval")(evaluate)
app.command("score")(score)
app.command("augment")(augment)
app.command("shortlist")(shortlist)
app.command("export")(export)
app.command("bench")(bench)
app.command("check")(check)
app.command("inspect", cls=TextCommand)(inspect)
app.command("demo")(demo)
app.command("report")(report)
app.command("runs")(runs)
app.command("init")(init)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"tfm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main(argv: list[str] | None = None) -> None:
    """Run ``tfm``; exit with 0, 1 (the run failed), 2 (the user's mistake) or 128 + a signal's number."""
    if argv is None and sys.getfilesystemencoding() != "utf-8":
        # LC_ALL=C: start anew in UTF-8 mode, or file names with other letters could not even be opened.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "transformer_cli", *sys.argv[1:]])
    arguments = _utf8_arguments() if argv is None else argv
    command = typer.main.get_command(app)
    debug = "--debug" in arguments
    sys.exit(run_guarded(lambda: command(arguments or ["--help"], prog_name="tfm", standalone_mode=False), debug=debug))


def _utf8_arguments() -> list[str]:
    """Return the arguments as text; bytes that are no UTF-8 arrive as surrogates and become U+FFFD."""
    return [os.fsencode(argument).decode("utf-8", "replace") for argument in sys.argv[1:]]


if __name__ == "__main__":
    main()
