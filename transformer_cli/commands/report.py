"""``tfm report``: a run as one HTML file that can be sent to others."""

from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.files.output_file import output_file, refuse_unwritable
from transformer_cli.commands.shared.notes import note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run, folder_of
from transformer_cli.errors import UserError
from transformer_cli.report.contents import gather
from transformer_cli.report.page import page


@dataclass(frozen=True)
class ReportRequest:
    """What the command line asked for."""

    run: Path | None
    output: Path
    lines: int
    to: str | None
    device: str
    quiet: bool


def run_report(request: ReportRequest) -> None:
    """Write the report and print its place; what it lacks is noted.

    Raises:
        UserError: there is no run, device or language, or the file cannot be written.
    """
    if str(request.output) == "-":
        raise UserError("a report is a file to be opened, and goes not to stdout", hint="give --output a file name")
    refuse_unwritable(request.output)
    note = note_on_stderr(request.quiet)
    run = chosen_run(request.run, note)
    contents = gather(run, folder_of(run), request.device, request.to, request.lines, note)
    for reason in dict.fromkeys(contents.missing.values()):
        parts = [part for part, why in contents.missing.items() if why == reason]
        note(f"not in the report: {', '.join(parts)}: {reason}")
    with output_file(request.output) as file:
        file.write(page(contents))
    print(written(request.output))
