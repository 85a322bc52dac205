"""Ways to compute scaled dot-product attention: what stands between the projections of ``attention.py``.

Each is a callable ``(query, key, value, mask=None, *, causal, dropout, scale) -> (output, weights or None)``; those
that hold scores or take a mask of numbers (naive, sdpa) also take a ``bias``. ``cached_attention`` is a step's alone.
"""

from transformer_cli.model.kernels.dense import (
    IMPLEMENTATIONS,
    KEYS_AT_ONCE,
    Core,
    at_least_float32,
    cached_attention,
    fastest_dense,
    flash_attention,
    masked_softmax,
    naive_attention,
    sdpa_attention,
)
from transformer_cli.model.kernels.low_rank import Linformer
from transformer_cli.model.kernels.patterns import Pattern, bigbird, blocks, dilated, pattern_of, pattern_remark, window
from transformer_cli.model.kernels.sparse import SparseAttention

__all__ = [
    "IMPLEMENTATIONS",
    "KEYS_AT_ONCE",
    "Core",
    "Linformer",
    "Pattern",
    "SparseAttention",
    "at_least_float32",
    "bigbird",
    "blocks",
    "cached_attention",
    "dilated",
    "fastest_dense",
    "flash_attention",
    "masked_softmax",
    "naive_attention",
    "pattern_of",
    "pattern_remark",
    "sdpa_attention",
    "window",
]
