"""Normalisation of the residual stream.

Legend: D d_model.

Norms of the queries and keys of a head are in ``head_norm.py``; where a norm stands is decided in ``layers.py``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.model.kernels import at_least_float32

if TYPE_CHECKING:
    from transformer_cli.config import ModelConfig

EPS = 1e-5  # as that of LayerNorm; torch's own choice would be that of the dtype


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016) in float32, also under autocast (which leaves it in bfloat16 on a CPU)."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x ``[..., D]`` over its last dimension; the result has the dtype of the parameters."""
        weight, bias = at_least_float32(self.weight), at_least_float32(self.bias)
        y: Tensor = F.layer_norm(at_least_float32(x), self.normalized_shape, weight, bias, self.eps)
        return y.to(self.weight.dtype)


class RMSNorm(nn.Module):
    """Root mean square normalisation: a gain, no centre and no bias, in float32 as ``LayerNorm``.

    On a CPU torch puts it together from single operations: forward and backward take 5 to 7 times as long as its fused
    LayerNorm (width 128 to 512, measured); by hand it was up to a third faster or a fifth slower, by width.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x ``[..., D]`` over its last dimension; the result has the dtype of the parameters."""
        y = rms_norm(at_least_float32(x), self.weight.shape, at_least_float32(self.weight))
        return y.to(self.weight.dtype)

    def reset_parameters(self) -> None:
        """Set the gain to one."""
        nn.init.ones_(self.weight)


def rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor) -> Tensor:
    """Return weight ⊙ x / √(mean(x²) + ε) over the last dimensions, ``shape`` (Zhang & Sennrich 2019, eq. 4)."""
    return F.rms_norm(x, list(shape), weight, EPS)


def norm_of(config: "ModelConfig") -> LayerNorm | RMSNorm:
    """Return a new norm of the residual stream."""
    return RMSNorm(config.d_model) if config.norm == "rms" else LayerNorm(config.d_model)
