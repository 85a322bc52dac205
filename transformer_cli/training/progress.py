"""What a run tells while it goes on: plain lines, or a live display.

Both go to where the caller says (stderr), never to stdout. Numbers for machines are in ``metrics.jsonl``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from transformer_cli.training.validation import Validation


@dataclass(frozen=True)
class TrainRecord:
    """One log interval."""

    step: int
    epoch: float  # passes over the data, with fraction
    loss: float  # nats per target token, with label smoothing, mean of the interval
    lr: float
    grad_norm: float | None  # before clipping, of the last step
    tokens_per_second: float  # target tokens without padding; validation and saving do not count
    skipped: int  # so far
    total_steps: int | None
    seconds_left: float | None


@dataclass(frozen=True)
class ValidationRecord:
    """One validation."""

    step: int
    validation: Validation
    decoding: str  # settings of the search, without which a BLEU says little
    is_best: bool
    average: Sequence[int] = ()  # the steps whose weights were averaged; none: the weights of ``step``


class Progress(Protocol):
    """Listens to a run."""

    def start(self, step: int, total_steps: int | None, *, is_timed: bool) -> None:
        """The run begins, or continues after ``step``; if it is timed, its minutes may end it before its last step."""

    def stepped(self, step: int, total_steps: int | None) -> None:
        """A step is done."""

    def logged(self, record: TrainRecord) -> None:
        """A log interval is over."""

    def validated(self, record: ValidationRecord) -> None:
        """The dev set was looked at."""

    def stop(self) -> None:
        """The run is over, in whatever way."""


class PlainProgress:
    """One line per interval, for logs and pipes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def start(self, step: int, total_steps: int | None, *, is_timed: bool) -> None:
        """Say how far it goes."""
        goals = [] if total_steps is None else [f"to step {total_steps:,}"]
        goals += ["until its time is up"] * is_timed
        self._write(f"training from step {step:,} {', or '.join(goals)}")

    def stepped(self, step: int, total_steps: int | None) -> None:
        """Say nothing: a line per step is too much."""

    def logged(self, record: TrainRecord) -> None:
        """Write the interval's line."""
        of = "" if record.total_steps is None else f"/{record.total_steps}"
        left = "" if record.seconds_left is None else f"  {clock(record.seconds_left)} left"
        self._write(f"step {record.step}{of}  {_figures(record)}{left}")

    def validated(self, record: ValidationRecord) -> None:
        """Write the scores and some translations."""
        for line in validation_lines(record):
            self._write(line)

    def stop(self) -> None:
        """Nothing to put back."""


class RichProgress:
    """A bar that moves with every step; validations scroll by above it."""

    def __init__(self, console: Console | None = None) -> None:
        columns = (
            BarColumn(),
            TextColumn("step {task.completed}/{task.fields[goal]}"),
            TextColumn("{task.description}"),
        )
        self._bar = Bar(*columns, console=console or Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None, goal="?")

    def start(self, step: int, total_steps: int | None, *, is_timed: bool) -> None:
        """Show the bar."""
        self.stepped(step, total_steps)
        self._bar.start()

    def stepped(self, step: int, total_steps: int | None) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=step, total=total_steps, goal=total_steps or "?")

    def logged(self, record: TrainRecord) -> None:
        """Renew the figures beside the bar."""
        left = "" if record.seconds_left is None else f"  {clock(record.seconds_left)} left"
        self._bar.update(self._task, description=f"{_figures(record)}{left}")

    def validated(self, record: ValidationRecord) -> None:
        """Print the scores and some translations above the bar."""
        for line in validation_lines(record):
            self._bar.console.print(Text(line))  # Text: brackets in a sentence are no markup

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def validation_lines(record: ValidationRecord) -> list[str]:
    """Return the text of a validation."""
    found, mark = record.validation, "  (best so far)" if record.is_best else ""
    steps = ", ".join(map(str, record.average))
    what = f"validation of the average of steps {steps}" if steps else f"validation at step {record.step}"
    scores = f"loss {found.loss:.3f}  perplexity {found.perplexity:.2f}  BLEU {found.bleu:.2f}{mark}"
    recipe = f"{found.signature}  {record.decoding}"
    samples = [
        line
        for src, ref, hyp in found.samples
        for line in (f"  source      {src}", f"  reference   {ref}", f"  translation {hyp}")
    ]
    return [f"{what}: {scores}", f"  {recipe}", *samples]


def clock(seconds: float) -> str:
    """Return a duration as ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _figures(record: TrainRecord) -> str:
    skipped = f"  {record.skipped} skipped" if record.skipped else ""
    return (
        f"epoch {record.epoch:.2f}  loss {record.loss:.3f}  lr {record.lr:.2e}  "
        f"{record.tokens_per_second:,.0f} tokens/s{skipped}"
    )
