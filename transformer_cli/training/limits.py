"""When a run is over."""

from collections.abc import Mapping
from typing import Any

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import TrainConfig
from transformer_cli.errors import RunError, TrainingFailed
from transformer_cli.training.budget import last_step, stored_budget
from transformer_cli.training.data_order import DataOrder
from transformer_cli.training.state import TrainState
from transformer_cli.wording import counted

_SPENT = "time_budget_spent"  # entry of run.json, seconds


class Limits:
    """The end of a run, as a function of its settings and its state."""

    def __init__(self, settings: TrainConfig, order: DataOrder) -> None:
        self._settings, self._order = settings, order
        self._spent_before = 0.0  # seconds of train.max_minutes, by the commands before this one
        self.budget_steps: int | None = None  # what train.max_minutes came to
        self.total_steps: int | None = None

    def take_up(self, info: Mapping[str, Any]) -> None:
        """Go on with what ``run.json`` says of the time budget: the seconds spent, or the steps that it came to."""
        self._spent_before = float(info.get(_SPENT, 0.0))
        self.settle(stored_budget(info, self._settings.max_minutes))

    def spent(self, elapsed: float) -> dict[str, float]:
        """Return what ``run.json`` shall say of the time budget after so many seconds of this command.

        Nothing once the budget is a number of steps. A run that is killed loses the seconds since its last checkpoint.
        """
        return {} if self.budget_seconds is None else {_SPENT: self._spent_before + elapsed}

    def settle(self, budget_steps: int | None) -> None:
        """Work out the last step; again when ``max_minutes`` has become a number of steps."""
        self.budget_steps = budget_steps
        self.total_steps = last_step(self._settings, self._order.steps_per_epoch, budget_steps)

    @property
    def budget_seconds(self) -> float | None:
        """What this command may spend of ``max_minutes``, as long as they have not become a number of steps."""
        minutes = self._settings.max_minutes
        return None if minutes is None or self.budget_steps is not None else 60 * minutes - self._spent_before

    def is_over(self, state: TrainState) -> bool:
        """Return whether any limit is reached."""
        return self.is_complete(state) or self.stops_early(state)

    def is_complete(self, state: TrainState) -> bool:
        """Return whether all steps or epochs are done; a skipped step uses up data, but is none."""
        no_steps_left = self.total_steps is not None and state.step >= self.total_steps
        return no_steps_left or (self._settings.max_epochs is not None and state.epoch >= self._settings.max_epochs)

    def reached(self, state: TrainState) -> str:
        """Return the names of the limits that end the run, such as ``train.max_minutes (19 steps)``."""
        settings, steps = self._settings, state.step
        names = {
            f"train.max_steps {settings.max_steps}": settings.max_steps is not None and steps >= settings.max_steps,
            f"train.max_minutes ({counted(self.budget_steps or 0, 'step')})": self.budget_steps is not None
            and steps >= self.budget_steps,
            f"train.max_epochs {settings.max_epochs}": settings.max_epochs is not None
            and state.epoch >= settings.max_epochs,
            f"train.patience {settings.patience}": self.stops_early(state),
        }
        return " and ".join(name for name, is_reached in names.items() if is_reached)

    def refuse_cut(self, run: RunFolder, state: TrainState) -> None:
        """Refuse limits lowered below what is done, as steps cannot be taken back, and minutes that come too late.

        Args:
            run: with the settings that it had so far.
            state: where it stands.

        Raises:
            RunError: names the first such limit.
        """
        budget_steps = stored_budget(run.info, self._settings.max_minutes)
        before = run.config.train.model_dump() | run.info.get("settings", {}).get("train", {})  # the file may be edited
        passes = self._order.passes(state.position)
        done = {"max_steps": state.step, "max_epochs": passes, "max_minutes": state.step}
        for key, now in done.items():
            then, asked = before[key], getattr(self._settings, key)
            reach = budget_steps if key == "max_minutes" else asked
            if asked is not None and reach is not None and now > reach and (then is None or asked < then):
                raise RunError(
                    f"train.{key} is lower than what the run has done",
                    got=f"train.{key} {asked:g}" + (f", which comes to {reach}" if key == "max_minutes" else ""),
                    expected=f"at least {counted(state.step, 'step')}, {passes:.2f} epochs",
                    hint=f"keep train.{key} {'null' if then is None else then}; a checkpoint of an earlier step is a "
                    "model of its own: tfm translate --run RUN/checkpoints/step-N",
                )
        if before["max_minutes"] is None:
            self._refuse_late_minutes(state)

    def _refuse_late_minutes(self, state: TrainState) -> None:
        """Refuse minutes as the only limit of a rate that has begun to fall: it would rise until they are steps."""
        settings = self._settings
        falls = settings.schedule in ("linear", "cosine") and state.step > settings.warmup_steps
        is_only_limit = settings.max_steps is None and settings.max_epochs is None
        if falls and settings.max_minutes is not None and is_only_limit:
            raise RunError(
                "train.max_minutes cannot become the only limit of a run whose learning rate has begun to fall",
                got=f"train.max_minutes {settings.max_minutes:g} after {counted(state.step, 'step')}",
                expected=f"train.max_steps above {state.step}, or train.max_epochs",
                hint="or begin a new run from this one's weights: train.init_from",
            )

    def stops_early(self, state: TrainState) -> bool:
        """Return whether validations have not got better for too long."""
        return self._settings.patience is not None and state.without_gain >= self._settings.patience


def diverged(state: TrainState, loss: float, norm: float) -> TrainingFailed:
    """Return the error of a run that has met too many numbers which are none."""
    return TrainingFailed(
        f"loss or gradient was not finite {counted(state.bad_in_a_row, 'time')} in a row",
        where=f"step {state.step + 1}",
        got=f"loss {loss:g}, gradient norm {norm:g}",
        hint="lower train.lr, raise train.warmup_steps, set train.clip_norm, or turn train.amp off; "
        "the last checkpoint is intact",
    )
