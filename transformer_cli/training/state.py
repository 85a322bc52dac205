"""Where a run stands: every number that decides what happens next, and no time of day."""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from transformer_cli.training.data_order import Position

Ending = Literal["finished", "stopped early", "already finished"]


@dataclass
class TrainState:
    """The counters of a run; all of them are stored in every checkpoint."""

    step: int = 0  # optimizer steps done
    epoch: int = 0  # of the next batch
    batch: int = 0  # index of the next batch in its epoch
    skipped: int = 0  # steps whose loss or gradient was not finite
    bad_in_a_row: int = 0
    best: dict[str, float] | None = None  # step, loss and bleu of the best validation
    validation: dict[str, float] | None = None  # loss and bleu at this step, if it was validated
    without_gain: int = 0  # validations since the best one
    interval_loss: float = 0.0  # summed over the tokens since the last log record
    interval_tokens: int = 0

    @property
    def position(self) -> Position:
        """Where in the data the next step starts."""
        return Position(self.epoch, self.batch)

    @property
    def is_best(self) -> bool:
        """Whether the best validation so far is of this step."""
        return self.best is not None and self.best["step"] == self.step

    def move_to(self, position: Position) -> None:
        """Set where in the data the next step starts."""
        self.epoch, self.batch = position.epoch, position.batch

    def count(self, loss: float, tokens: int) -> None:
        """Count a step that was done, with its loss per token."""
        self.step, self.bad_in_a_row, self.validation = self.step + 1, 0, None
        self.interval_loss += loss * tokens
        self.interval_tokens += tokens

    def close_interval(self) -> float:
        """Return the mean loss per token since the last call, and begin anew."""
        mean = self.interval_loss / max(1, self.interval_tokens)
        self.interval_loss, self.interval_tokens = 0.0, 0
        return mean

    def judge(self, metrics: dict[str, float], is_best: bool) -> None:
        """Note a validation of this step."""
        self.validation = metrics
        self.without_gain = 0 if is_best else self.without_gain + 1
        if is_best:
            self.best = {"step": self.step, **metrics}

    def copy(self) -> "TrainState":
        """Return an independent copy."""
        return replace(self)

    def counters(self) -> dict[str, Any]:
        """Return everything as plain JSON; the checkpoint itself knows the step."""
        return {name: value for name, value in asdict(self).items() if name != "step"}

    @classmethod
    def restored(cls, step: int, counters: dict[str, Any]) -> "TrainState":
        """Return the state that a checkpoint holds."""
        return cls(step, **{field.name: counters[field.name] for field in fields(cls) if field.name != "step"})


@dataclass(frozen=True)
class TrainingReport:
    """How a run ended."""

    run: Path
    ended: Ending
    steps: int
    epochs: float
    best: dict[str, float] | None  # step, loss and bleu of the best validation
    average: dict[str, Any] | None  # of checkpoints, if one was tried: steps, loss, bleu, and is_model if it was better
    skipped: int
    seconds: float  # since it began, or was resumed
    resumed_at: int  # the step; 0: it was not
    validate_beam_size: int  # of the search that found the BLEU
