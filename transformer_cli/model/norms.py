"""Normalisation of the residual stream.

Legend: D d_model.

Norms of the queries and keys of a head are in ``head_norm.py``; where a norm stands is decided in ``layers.py``.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.model.kernels import at_least_float32


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016) in float32, also under autocast (which leaves it in bfloat16 on a CPU)."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension; the result has the dtype of the parameters."""
        weight, bias = at_least_float32(self.weight), at_least_float32(self.bias)
        y: Tensor = F.layer_norm(at_least_float32(x), self.normalized_shape, weight, bias, self.eps)
        return y.to(self.weight.dtype)
