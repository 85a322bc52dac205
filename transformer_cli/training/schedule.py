"""Learning rate as a pure function of the step, so that a resumed run needs no schedule state.

Steps count from 1: ``learning_rate(1, ...)`` is the rate of the first update.
"""

import math
from dataclasses import dataclass
from typing import Literal

from transformer_cli.config import TrainConfig
from transformer_cli.training.budget import LAST_TIMED_STEP
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Schedule:
    """Warm-up to a peak, then a decay.

    ``inverse_sqrt`` falls as in Vaswani et al. 2017, eq. 3; ``linear`` and ``cosine`` (half a period, Loshchilov &
    Hutter 2017, eq. 5) reach zero one step after the last; ``trapezoidal`` does too, but begins to fall,
    linearly, near the end only.
    """

    kind: Literal["inverse_sqrt", "linear", "cosine", "trapezoidal"]
    peak: float
    warmup_steps: int
    hold_until: int = 0  # all but inverse_sqrt stay at the peak up to here; see ``budget.py``
    decay_share: float = 0.2  # of the steps; trapezoidal only

    @classmethod
    def of(cls, settings: TrainConfig) -> "Schedule":
        """Return the schedule of a run; one whose length is to be timed stays at the peak until it is."""
        hold = LAST_TIMED_STEP if settings.max_minutes is not None else 0
        return cls(settings.schedule, settings.lr, settings.warmup_steps, hold, settings.decay_share)

    def learning_rate(self, step: int, total_steps: int | None) -> float:
        """Return the rate of update number ``step``.

        Args:
            step: from 1.
            total_steps: last step of the run; ``None`` while it is not known yet: then the peak lasts.
                ``inverse_sqrt`` does not use it.
        """
        if self.kind == "inverse_sqrt":
            return self.peak * inverse_sqrt(step, self.warmup_steps)
        if step <= self.warmup_steps:
            return self.peak * step / self.warmup_steps
        left = remaining(step, self._decay_from(total_steps), total_steps)
        return self.peak * (0.5 - 0.5 * math.cos(math.pi * left) if self.kind == "cosine" else left)

    def warnings(self, total_steps: int | None, before: int | None = None, step: int = 0) -> list[str]:
        """Return what is odd about the schedule in a run of so many steps.

        Args:
            total_steps: last step of the run, as far as it is known.
            before: what the last step was to be until now, in a run that is continued.
            step: after which it is continued.
        """
        found = []
        if total_steps is not None and self.warmup_steps > total_steps:
            found.append(
                f"warning: train.warmup_steps {self.warmup_steps} exceeds the run's {counted(total_steps, 'step')}: "
                f"the learning rate never reaches train.lr {self.peak:g}; lower train.warmup_steps"
            )
        if step and self.learning_rate(step, total_steps) != self.learning_rate(step, before):
            end = "a step not known yet" if total_steps is None else f"step {total_steps}"
            found.append(
                f"the {self.kind} schedule now ends at {end} instead of {before}: "
                "the rate differs from that of a run which was so long from the start"
            )
        return found

    def _decay_from(self, total_steps: int | None) -> int:
        """Return the last step at the peak.

        A trapezoid (Hägele et al. 2024, "Scaling laws and compute-optimal training beyond fixed training durations";
        also called warmup-stable-decay) stays there until its last ``decay_share``. Up to that step its rates do not
        depend on the length of the run, so a run may still be made longer as if it had been meant so.
        """
        start = max(self.warmup_steps, self.hold_until)
        if self.kind != "trapezoidal" or total_steps is None:
            return start
        return max(start, total_steps - round(self.decay_share * total_steps))


def inverse_sqrt(step: int, warmup_steps: int) -> float:
    """Return the share of the peak: linear up to ``warmup_steps``, then falling with the square root of the step.

    Vaswani et al. 2017, eq. 3, divided by its own peak, so that ``train.lr`` is the highest rate that occurs rather
    than a factor in front of ``d_model ** -0.5``. Without warm-up it falls from the first step on.
    """
    warmup = max(1, warmup_steps)
    return min(step / warmup, math.sqrt(warmup / step))


def remaining(step: int, decay_from: int, total_steps: int | None) -> float:
    """Return how much of the decay is left, from 1 at ``decay_from`` to just above 0 at the last step.

    The zero lies one step after the last: a step with rate 0 would be wasted.
    """
    if step <= decay_from or total_steps is None:
        return 1.0
    return max(0.0, (total_steps + 1 - step) / (total_steps + 1 - decay_from))
