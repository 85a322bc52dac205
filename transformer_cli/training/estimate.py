"""How long a training will take, from a few timed steps that change nothing on disk."""

import math
import time
from dataclasses import dataclass

from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import collate
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime
from transformer_cli.training.budget import StepTimer, last_step
from transformer_cli.training.data_order import DataOrder, Position
from transformer_cli.training.update import Updater

_TIMED_STEPS = 3


@dataclass(frozen=True)
class Estimate:
    """What a run will cost, validations not counted."""

    steps: int
    epochs: float
    seconds_per_step: float
    target_tokens_per_second: float
    minutes: float


def estimate(model: Transformer, pairs: EpochPairs, settings: TrainConfig, runtime: Runtime) -> Estimate:
    """Time one step to warm up and three more on the first batches, at the learning rate 0: the weights stay.

    Args:
        model: moved to the runtime's device.
        pairs: the training data, epoch by epoch.
        settings: limits, batch size and accumulation are used.
        runtime: device and precision.

    Raises:
        TrainingFailed: memory ran out.
    """
    order = DataOrder(pairs, settings.batch_tokens, settings.accumulate, settings.seed)
    updater = Updater(model.to(runtime.device).train(), settings, runtime)
    timer, tokens, position = StepTimer(), 0, Position()
    for step in range(1 + _TIMED_STEPS):
        window = order.window(position)
        began = time.monotonic()
        batches = [collate(window.pairs, rows).to(runtime.device) for rows in window.batches]
        n_tokens = window.target_tokens()
        updater.accumulate(batches, range(len(batches)), n_tokens)
        norm = updater.unscale_and_clip().item()  # waits for the device
        if math.isfinite(norm):
            updater.step(0.0, step + 1)
        else:
            updater.skip()  # as fp16's first step often is, and 0 · inf would be no number in all later ones
        if step:
            timer.add(time.monotonic() - began, window.padded_tokens())
            tokens += n_tokens
        position = order.after(position)
    seconds = order.mean_step_seconds(0, timer.seconds_per_token())
    return _estimate(order, settings, seconds, tokens / timer.spent)


def _estimate(order: DataOrder, settings: TrainConfig, seconds: float, speed: float) -> Estimate:
    in_budget = None if settings.max_minutes is None else max(1, int(60 * settings.max_minutes / seconds))
    steps = last_step(settings, order.steps_per_epoch, in_budget) or 1
    epochs = min(_epochs_in(steps, order, settings.bidirectional_epochs), settings.max_epochs or math.inf)
    return Estimate(steps, epochs, seconds, speed, steps * seconds / 60)


def _epochs_in(steps: int, order: DataOrder, bidirectional_epochs: int) -> float:
    """Return the epochs that some steps read; epochs of a kind differ by a few steps, which is let pass."""
    in_long_ones = bidirectional_epochs * order.steps_per_epoch(0)
    if steps <= in_long_ones:
        return steps / order.steps_per_epoch(0)
    return bidirectional_epochs + (steps - in_long_ones) / order.steps_per_epoch(bidirectional_epochs)
