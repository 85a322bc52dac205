"""Normalised queries and keys, so that attention scores cannot grow without bound.

Legend: B batch, H heads, T length, K head width.

Without it the largest score grows with the norms of the projections, softmax saturates and its gradient vanishes; with
it a score is a cosine times learned gains. Henry et al. 2020 normalise to length one and learn a single factor;
Dehghani et al. 2023 normalise each head's queries and keys and keep the division by √K. This is the latter, with the
root mean square in place of the variance (Zhang & Sennrich 2019).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class HeadNorm(nn.Module):
    """Root mean square normalisation over the width of a head, with one learned gain per element.

    y = g ⊙ x / √(mean(x²) + ε)  (Zhang & Sennrich 2019, eq. 4). All heads share the gain.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x ``[B, H, T, K]`` in float32 (float64 stays); the result has the dtype of x."""
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.rms_norm(x.to(wide), (x.size(-1),), self.weight.to(wide), eps=1e-6).to(x.dtype)

    def reset_parameters(self) -> None:
        """Set the gain to one."""
        nn.init.ones_(self.weight)
