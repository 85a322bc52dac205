"""``tfm export``: what can be asked for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Quiet, Run
from transformer_cli.commands.shared.notes import note_on_stderr
from transformer_cli.export.extra import Quantization


class ExportFormat(StrEnum):
    """Engines that a run can be exported for."""

    ctranslate2 = "ctranslate2"


Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder to make. (default: ctranslate2 inside the run)")
]
Format = Annotated[ExportFormat, typer.Option("--format", help="Engine to export for.")]
Stored = Annotated[Quantization, typer.Option("--quantization", help="Type of the stored weights.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an export that is there.")]


def export(
    run: Run = None,
    output: Output = None,
    export_format: Format = ExportFormat.ctranslate2,
    quantization: Stored = "float32",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Export a run for CTranslate2, and compare it with the run."""
    from transformer_cli.commands import export as command

    report = command.run_export(run, output, quantization, overwrite, note_on_stderr(quiet))
    command.print_report(report, as_json)
