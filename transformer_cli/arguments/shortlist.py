"""``tfm shortlist``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Quiet, Run, To
from transformer_cli.commands.shared.notes import note_on_stderr

Source = Annotated[Path | None, typer.Option("--src", help="Source text to learn from. (default: the training pairs)")]
Target = Annotated[Path | None, typer.Option("--tgt", help="Its translation, line by line.")]
PerPiece = Annotated[
    int, typer.Option("--per-piece", min=1, max=10_000, help="Target pieces that each source piece adds to a list.")
]
Frequent = Annotated[
    int, typer.Option("--frequent", min=0, max=1_000_000, help="Most frequent target pieces, which every list holds.")
]


def shortlist(
    run: Run = None,
    src: Source = None,
    tgt: Target = None,
    to: To = None,
    per_piece: PerPiece = 100,
    frequent: Frequent = 200,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Learn which target pieces go with which source pieces, so that translating looks at few (--shortlist)."""
    from transformer_cli.commands import shortlist as command

    request = command.ShortlistRequest(run, src, tgt, to, per_piece, frequent)
    command.print_report(command.run_shortlist(request, note_on_stderr(quiet)), as_json)
