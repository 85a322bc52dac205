"""Normalised queries and keys, so that attention scores cannot grow without bound.

Legend: B batch, T length, H heads, K head width.

Without it the largest score grows with the norms of the projections, softmax saturates and its gradient vanishes; with
it a score is a correlation times learned gains. Henry et al. 2020 normalise to length one and learn a single factor in
place of 1 / √K; here, as in Dehghani et al. 2023, it is LayerNorm, and the division by √K stays.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class HeadNorm(nn.Module):
    """LayerNorm over the width of a head, with one learned gain per element and no bias; all heads share the gain.

    y = g ⊙ (x - mean(x)) / √(var(x) + ε)  (Ba et al. 2016; Dehghani et al. 2023, section 2). The root mean square in
    place of the deviation would do as well, but torch has no fused kernel for it on a CPU: twice the time.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x ``[B, T, H, K]`` in float32 (float64 stays); the result has the dtype of x."""
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.layer_norm(x.to(wide), (x.size(-1),), self.weight.to(wide)).to(x.dtype)

    def reset_parameters(self) -> None:
        """Set the gain to one."""
        nn.init.ones_(self.weight)
