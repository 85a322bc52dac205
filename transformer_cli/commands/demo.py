"""``tfm demo``: run one of the demos, print what it shows, and draw it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from transformer_cli.commands.attention_picture import check_picture, fonts_for
from transformer_cli.commands.bench.plot import save_figure
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.shared.notes import Note, note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.demos.report import DemoReport, Wish
from transformer_cli.errors import UserError

_OF_A_RUN = "heads"  # the demo that looks at a run; all others make what they need
_TIMED = "cost"  # the demo that measures time


@dataclass(frozen=True)
class DemoRequest:
    """What the command line asked for."""

    name: str
    picture: Path | None
    seed: int
    run: Path | None
    as_json: bool
    quiet: bool


def run_demo(request: DemoRequest) -> None:
    """Run a demo and print what it shows.

    Raises:
        UserError: the request makes no sense, there is no run for the demo that needs one, or the picture cannot be
            written.
    """
    if request.run is not None and request.name != _OF_A_RUN:
        raise UserError(f"the demo {request.name} looks at no run", got="--run", expected=f"tfm demo {_OF_A_RUN} --run")
    note = note_on_stderr(request.quiet)
    if request.picture is not None:
        check_picture(request.picture)
    run = chosen_run(request.run, note) if request.name == _OF_A_RUN else None
    demo = import_module(f"transformer_cli.demos.{request.name}")
    with _threads(request.name):
        report: DemoReport = demo.demonstrate(Wish(request.seed, run, note))
    print(json_text(report.document(), indent=1) if request.as_json else report.text(), flush=True)
    if request.picture is not None:
        draw(report, request.picture, note)
        note(written(request.picture))


@contextmanager
def _threads(name: str) -> Iterator[None]:
    """Let one thread compute: two add numbers in another order, and after some hundred steps it shows."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if name == _TIMED else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def draw(report: DemoReport, path: Path, note: Note) -> None:
    """Draw a report into a PNG or SVG file.

    Raises:
        UserError: the file cannot be written.
        DiskFull: there is no room; what was there before is intact.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    fonts, missing = fonts_for(set(report.letters))
    figure = Figure(figsize=report.size, layout="constrained")
    with mpl.rc_context({"font.family": fonts, "svg.fonttype": "path"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # told once, below
        report.draw(figure)
        save_figure(figure, path, dpi=120)
    if missing:
        note(f"no font of this machine has {''.join(sorted(missing))}: drawn as boxes; Noto Sans CJK has most letters")
