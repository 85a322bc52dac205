"""Exponential moving average of the weights: validated and saved instead of the weights themselves."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """Shadow weights, ``shadow = decay * shadow + (1 - decay) * weight`` after every step.

    The decay of step t is ``min(decay, (1 + t) / (10 + t))``: with a constant one the random initial weights would
    stay visible for a few times ``1 / (1 - decay)`` steps (the ramp is that of TensorFlow's
    ``ExponentialMovingAverage``).
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move the shadow towards the weights that ``step`` (from 1) has made."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.shadow.values()), [p.detach() for p in model.parameters()], 1 - decay)

    def restore(self, shadow: dict[str, Tensor]) -> None:
        """Take over stored shadow weights."""
        for name, tensor in self.shadow.items():
            tensor.copy_(shadow[name])

    def applied(self, model: nn.Module) -> AbstractContextManager[None]:
        """Let the model compute with the shadow weights."""
        return exchanged(model, self.shadow)


@contextmanager
def exchanged(model: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """Let the model compute with other weights; its own are put back afterwards, bit by bit."""
    _swap(model, weights)
    try:
        yield
    finally:
        _swap(model, weights)


def _swap(model: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.data, weights[name] = weights[name], parameter.data
