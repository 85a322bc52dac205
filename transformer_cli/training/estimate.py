"""How long a training will take, from a few timed steps that change nothing on disk."""

import math
import time
from dataclasses import dataclass

from torch import nn

from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import TokenizedPairs, collate
from transformer_cli.runtime import Runtime
from transformer_cli.training.budget import StepTimer, steps_within
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


def estimate(model: nn.Module, pairs: TokenizedPairs, settings: TrainConfig, runtime: Runtime) -> Estimate:
    """Time one step to warm up and three more on the first batches; the model's weights move by them.

    Args:
        model: moved to the runtime's device.
        pairs: the training data.
        settings: limits, batch size and accumulation are used.
        runtime: device and precision.
    """
    order = DataOrder(pairs, settings.batch_tokens, settings.accumulate, settings.seed)
    updater = Updater(model.to(runtime.device).train(), settings, runtime)
    timer, tokens, position = StepTimer(), 0, Position()
    for step in range(1 + _TIMED_STEPS):
        window = order.window(position)
        began = time.monotonic()
        n_tokens = order.target_tokens(window)
        batches = [collate(pairs, rows).to(runtime.device) for rows in window]
        updater.accumulate(batches, seeds=range(len(batches)))
        updater.unscale_and_clip().item()  # waits for the device
        updater.step(0.0, step + 1)
        if step:
            timer.add(time.monotonic() - began, order.padded_tokens(window))
            tokens += n_tokens
        position = order.after(position)
    seconds = timer.seconds_per_token() * order.mean_padded_tokens(0)
    return _estimate(order, settings, seconds, tokens / timer.spent)


def _estimate(order: DataOrder, settings: TrainConfig, seconds: float, speed: float) -> Estimate:
    in_budget = None if settings.max_minutes is None else max(1, int(60 * settings.max_minutes / seconds))
    steps = steps_within(settings, order.steps_per_epoch, in_budget) or 1
    epochs = min(steps / order.steps_per_epoch(0), settings.max_epochs or math.inf)  # epochs differ by a few steps
    return Estimate(steps, epochs, seconds, speed, steps * seconds / 60)
