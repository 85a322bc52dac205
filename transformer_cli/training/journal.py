"""Everything that a run says, sent to all who listen: the display, ``metrics.jsonl``, ``samples.jsonl``, ``train.log``.

Here are the only clocks of a training run besides the time budget; nothing they show comes back into the training.
"""

import time
from collections.abc import Callable
from dataclasses import asdict

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.training.progress import PlainProgress, Progress, TrainRecord, ValidationRecord
from transformer_cli.training.validation import Validation

#: Above this share of repeated translations a warning is given: the model has learned to ignore its source.
REPEATED_LIMIT = 0.5


class Journal:
    """Tells what happens, and how fast."""

    def __init__(self, run: RunFolder, progress: Progress, note: Callable[[str], None]) -> None:
        self._run, self._user_note = run, note
        self._listeners: list[Progress] = [progress, PlainProgress(run.append_log)]
        self._interval_tokens, self._interval_seconds = 0, 0.0
        self._began, self._steps = time.monotonic(), 0

    @property
    def steps(self) -> int:
        """Steps since the run began, or continued."""
        return self._steps

    @property
    def elapsed(self) -> float:
        """Seconds since the run began, or continued."""
        return time.monotonic() - self._began

    def note(self, *texts: str) -> None:
        """Pass on warnings."""
        for text in texts:
            self._user_note(text)
            self._run.append_log(text)

    def started(self, step: int, total_steps: int | None, budget: float | None) -> None:
        """The run begins, or continues after ``step``; the budget as for ``seconds_left``."""
        self._began = time.monotonic()
        for listener in self._listeners:
            listener.start(step, total_steps, is_timed=budget is not None)

    def stepped(self, step: int, total_steps: int | None, tokens: int, seconds: float) -> None:
        """A step took so long."""
        self._steps += 1
        self._interval_tokens += tokens
        self._interval_seconds += seconds
        for listener in self._listeners:
            listener.stepped(step, total_steps)

    def speed(self) -> float:
        """Return target tokens per second since the last call; validating and saving do not count."""
        tokens, seconds = self._interval_tokens, self._interval_seconds
        self._interval_tokens, self._interval_seconds = 0, 0.0
        return tokens / seconds if seconds > 0 else 0.0

    def seconds_left(self, step: int, total_steps: int | None, budget: float | None) -> float | None:
        """Return the time that the rest of the run will take, validating and saving included.

        Args:
            step: that is done.
            total_steps: the last step, if it is known.
            budget: seconds that the run may take, as long as they have not become steps.
        """
        left = [] if budget is None else [max(0.0, budget - self.elapsed)]
        if total_steps is not None and self._steps:
            left.append((total_steps - step) * self.elapsed / self._steps)
        return min(left, default=None)

    def logged(self, record: TrainRecord) -> None:
        """A log interval is over."""
        self._run.append_metrics({"kind": "train", **asdict(record)})
        for listener in self._listeners:
            listener.logged(record)

    def validated(self, record: ValidationRecord) -> None:
        """The dev set was looked at."""
        found = asdict(record.validation)
        samples = found.pop("samples")
        average = {"average": list(record.average)} if record.average else {}
        metrics = {"kind": "average" if average else "validation", "step": record.step, **average, **found}
        self._run.append_metrics(metrics | {"decoding": record.decoding, "is_best": record.is_best})
        self._run.append_samples({"step": record.step, **average, "samples": samples})
        for listener in self._listeners:
            listener.validated(record)
        self._warn_of_sameness(record.validation)

    def stopped(self) -> None:
        """The run is over, in whatever way."""
        for listener in self._listeners:
            listener.stop()

    def _warn_of_sameness(self, validation: Validation) -> None:
        if validation.repeated_share > REPEATED_LIMIT:
            share = f"{validation.repeated_share:.0%}"
            self.note(
                f"warning: {share} of the translations are the same sentence: the model ignores its source so far"
            )
