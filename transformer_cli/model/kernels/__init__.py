"""Ways to compute scaled dot-product attention: what stands between the projections of ``attention.py``.

Each is a callable ``(query, key, value, mask=None, *, causal, dropout, scale) -> (output, weights or None)``.
"""

from transformer_cli.model.kernels.dense import (
    IMPLEMENTATIONS,
    at_least_float32,
    cached_attention,
    masked_softmax,
    naive_attention,
    sdpa_attention,
)

__all__ = [
    "IMPLEMENTATIONS",
    "at_least_float32",
    "cached_attention",
    "masked_softmax",
    "naive_attention",
    "sdpa_attention",
]
