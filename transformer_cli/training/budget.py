"""How many steps a run has: the smallest of its limits, with minutes turned into steps exactly once.

A schedule that read the clock would make every run different and no resumed run exact. So the steps of the warm-up
are timed, in which no learning rate depends on where the run will end; the result becomes a number of steps that is
stored at once, and from then on nobody looks at the clock. Twenty steps alone would not do: a machine that is shared,
or cold, changed its speed by a third within a minute, and a run of 54 minutes was going to take 70.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_cli.config import TrainConfig

#: The first steps are slower (caches, allocator, compilation) and not timed; at least the next twenty are.
UNTIMED_STEPS, LAST_TIMED_STEP = 3, 23


def last_step(config: TrainConfig, steps_per_epoch: Callable[[int], int], budget_steps: int | None) -> int | None:
    """Return the last step of the run: the smallest limit that is known.

    Args:
        config: ``max_steps`` and ``max_epochs`` are used.
        steps_per_epoch: number of steps of an epoch (from 0); asked only as far as the other limits reach.
        budget_steps: what ``max_minutes`` came to; ``None`` if it is not set or not known yet.

    Returns:
        ``None`` if minutes are the only limit and have not been turned into steps yet.
    """
    limits = [limit for limit in (config.max_steps, budget_steps) if limit is not None]
    if config.max_epochs is not None:
        limits.append(_steps_of_epochs(config.max_epochs, steps_per_epoch, min(limits, default=None)))
    return min(limits, default=None)


def _steps_of_epochs(epochs: int, steps_per_epoch: Callable[[int], int], enough: int | None) -> int:
    steps = 0
    for epoch in range(epochs):
        steps += steps_per_epoch(epoch)
        if enough is not None and steps >= enough:
            break
    return steps


@dataclass
class StepTimer:
    """What the first steps cost, in seconds per padded token.

    Tokens and not steps are what is timed: the mean step of an epoch is known from its batches, while twenty steps
    may have drawn small ones.
    """

    seconds: float = 0.0
    tokens: int = 0
    spent: float = 0.0  # all steps, the untimed ones too
    _steps: int = field(default=0, repr=False)

    def add(self, seconds: float, padded_tokens: int) -> None:
        """Note one step."""
        self._steps += 1
        self.spent += seconds
        if self._steps == UNTIMED_STEPS + 1:
            self.seconds, self.tokens = 0.0, 0
        self.seconds += seconds
        self.tokens += padded_tokens

    def is_ready(self, warmup_is_over: bool, budget_seconds: float) -> bool:
        """Return whether it is time to settle: enough steps are timed, or a quarter of the budget is gone."""
        return (self._steps >= LAST_TIMED_STEP and warmup_is_over) or self.spent >= budget_seconds / 4

    def seconds_per_token(self) -> float:
        """Return the cost of a padded token."""
        return self.seconds / self.tokens


def steps_in_budget(
    step: int, seconds_left: float, step_seconds: float, validation_seconds: float, validate_every: int
) -> int:
    """Return the last step that fits into the seconds left, at least the present one.

    A validation is timed on a model so young that its search seldom ends before the cap; later ones are faster, and
    the run ends a little early rather than late. Saving is not counted: it takes thousandths of the time.

    Args:
        step: steps done.
        seconds_left: of the budget.
        step_seconds: of a mean step.
        validation_seconds: of one validation.
        validate_every: steps between two validations; the last step has one in any case.
    """
    cost = step_seconds + validation_seconds / validate_every
    return step + max(0, int((seconds_left - validation_seconds) / cost))


def stored_budget(info: Mapping[str, Any], minutes: float | None) -> int | None:
    """Return the last step that ``max_minutes`` came to, as ``run.json`` has it.

    For another number of minutes, in a continued run, the steps change in proportion; the clock is not asked again.
    """
    stored = info.get("time_budget")
    if minutes is None or stored is None:
        return None
    steps, for_minutes = int(stored["steps"]), float(stored["minutes"])
    return max(1, round(steps * minutes / for_minutes))
