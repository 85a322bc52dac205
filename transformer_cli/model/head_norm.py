"""Normalised queries and keys, so that attention scores cannot grow without bound.

Legend: B batch, T length, H heads, K head width.

Without it the largest score grows with the norms of the projections, softmax saturates and its gradient vanishes; with
it a score is a correlation times learned gains. Henry et al. 2020 normalise to length one and learn a single factor in
place of 1 / √K; here, as in Dehghani et al. 2023, it is LayerNorm (RMSNorm where the whole model has that), and the
division by √K stays.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.model.norms import rms_norm


class HeadNorm(nn.Module):
    """A norm over the width of a head, with one learned gain per element and no bias; all heads share the gain.

    ``layer``: y = g ⊙ (x - mean(x)) / √(var(x) + ε)  (Ba et al. 2016; Dehghani et al. 2023, section 2); ``rms``: as
    ``RMSNorm`` of the residual stream (Zhang & Sennrich 2019), which on a CPU takes longer.
    """

    def __init__(self, width: int, kind: Literal["layer", "rms"] = "layer") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.kind = kind
        self._normalise = F.layer_norm if kind == "layer" else rms_norm

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x ``[B, T, H, K]`` in float32 (float64 stays); the result has the dtype of x."""
        wide = torch.promote_types(x.dtype, torch.float32)
        y: Tensor = self._normalise(x.to(wide), (x.size(-1),), self.weight.to(wide))
        return y.to(x.dtype)

    def reset_parameters(self) -> None:
        """Set the gain to one."""
        nn.init.ones_(self.weight)
