"""Dropout that does not slow a CPU down.

torch draws the mask with ``bernoulli_``, which is serial on a CPU: two fifths of a base model's training step on two
cores, against a seventh this way. One seed is taken from torch's default generator and numpy's SFC64 fills the mask
with random bytes from it: ``torch.manual_seed`` alone still decides everything, and no further state exists. On other
devices torch's own dropout is used.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p) (Srivastava et al. 2014).

    On a CPU a byte decides, so p is rounded to a multiple of 1/256 (but never to 0 or 1), and the scale with it.
    On two cores, forward and backward of [96, 20, 256] take 1.1 ms instead of the 5.0 ms of ``F.dropout``.
    """
    if p == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    dropped = min(max(round(p * 256), 1), 255)
    scale = np.float32(256 / (256 - dropped))
    factor = np.multiply(_random_bytes(x.numel()) >= dropped, scale, dtype=np.float32)  # 0 or the scale
    return x * torch.from_numpy(factor).view(x.shape).to(x.dtype)


def _random_bytes(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-count // 8))  # eight bytes each; the fastest of numpy's ways, measured
    return words.view(np.uint8)[:count]


StreamState = Tensor


def stream_state() -> StreamState:
    """Return where the stream that ``dropout`` draws from on a CPU stands."""
    return torch.get_rng_state()


def set_stream_state(state: StreamState) -> None:
    """Let the stream continue from a state of ``stream_state``, so that the same masks are drawn again."""
    torch.set_rng_state(state)


class Dropout(nn.Module):
    """Drop elements in training, do nothing in evaluation."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"a dropout probability lies in [0, 1), got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x of any shape with dropout applied."""
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        """Show the probability in the printed model."""
        return f"p={self.p}"
