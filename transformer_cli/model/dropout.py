"""Dropout that does not slow a CPU down.

torch draws the mask with ``bernoulli_``, which is serial on a CPU: two fifths of a base model's training step on two
cores, against a seventh this way. numpy's SFC64 fills the mask with random bytes instead. Its seed comes from
``dropout_stream`` or, outside of one, from torch's default generator. On other devices torch's own dropout is used.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p) (Srivastava et al. 2014).

    On a CPU a byte decides, so p is rounded to a multiple of 1/256 (but never to 0 or 1), and the scale with it.
    """
    if p == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    if x.dtype is not torch.bfloat16:
        return x * _factors(x, p)
    kept, scale = _drop(x, p)
    return kept * scale


def add_dropped(residual: Tensor, x: Tensor, p: float) -> Tensor:
    """Return ``residual + dropout(x, p)``, of one shape, in the dtype of the residual."""
    if p == 0.0 or x.device.type != "cpu":
        return residual + dropout(x, p)
    if x.dtype is not torch.bfloat16:
        return torch.addcmul(residual, x, _factors(residual, p))
    kept, scale = _drop(x, p)
    return torch.add(residual, kept.to(residual.dtype), alpha=scale)


def _factors(x: Tensor, p: float) -> Tensor:
    """Draw for each element of x whether it becomes 0 or is scaled."""
    kept, scale = _draw(x, p)
    return torch.from_numpy(np.multiply(kept, np.float32(scale), dtype=np.float32)).view(x.shape).to(x.dtype)


def _draw(x: Tensor, p: float) -> "tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], float]":
    """Draw for each element of x whether it is kept; return the scale of those too."""
    dropped = min(max(round(p * 256), 1), 255)
    return random_bytes(x.numel()) >= dropped, 256 / (256 - dropped)


def _drop(x: Tensor, p: float) -> tuple[Tensor, float]:
    """Zero elements of x, in bfloat16, and return by how much the others are to be scaled."""
    kept, scale = _draw(x, p)
    bits = torch.from_numpy(np.negative(kept.view(np.int8), dtype=np.int16)).view(x.shape)  # 0 or -1
    y: Tensor = _And.apply(x, bits)  # type: ignore[no-untyped-call]
    return y, scale


class _And(torch.autograd.Function):
    """The bits of x and those of a mask: a sixth of the time of a product; in float32 a step is 10 % slower with it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bits: Tensor) -> Tensor:
        ctx.save_for_backward(bits)
        return (x.contiguous().view(bits.dtype) & bits).view(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (bits,) = ctx.saved_tensors
        return (grad.contiguous().view(bits.dtype) & bits).view(grad.dtype), None


class _Stream(threading.local):
    """The generator of the thread: batches that are computed side by side must not draw from each other's."""

    generator: np.random.SFC64 | None = None


_stream = _Stream()


@contextmanager
def dropout_stream(seed: int) -> Iterator[None]:
    """Draw all masks of this thread, while the context is open, from one seed (on a CPU)."""
    before, _stream.generator = _stream.generator, np.random.SFC64(seed)
    try:
        yield
    finally:
        _stream.generator = before


def random_bytes(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the next bytes of the thread's stream, or of one that torch's default generator seeds."""
    generator = _stream.generator or np.random.SFC64(int(torch.randint(2**63 - 1, ())))
    words = generator.random_raw(-(-count // 8))  # eight bytes each; the fastest of numpy's ways, measured
    return words.view(np.uint8)[:count]


StreamState = Any  # numpy's dict, or torch's tensor outside of a ``dropout_stream``


def stream_state() -> StreamState:
    """Return where the stream that ``dropout`` draws from on a CPU stands."""
    return torch.get_rng_state() if _stream.generator is None else _stream.generator.state


def set_stream_state(state: StreamState) -> None:
    """Let the stream continue from a state of ``stream_state``, so that the same masks are drawn again."""
    if isinstance(state, Tensor):
        torch.set_rng_state(state)
    elif _stream.generator is not None:
        _stream.generator.state = state


class Dropout(nn.Module):
    """Drop elements in training, do nothing in evaluation."""

    def __init__(self, p: float) -> None:
        """Take the probability.

        Raises:
            ValueError: it is not in [0, 1).
        """
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"a dropout probability lies in [0, 1), got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x of any shape with dropout applied."""
        return dropout(x, self.p) if self.training else x

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return the residual plus x, of its shape, with dropout applied."""
        return add_dropped(residual, x, self.p if self.training else 0.0)

    def extra_repr(self) -> str:
        """Show the probability in the printed model."""
        return f"p={self.p}"
