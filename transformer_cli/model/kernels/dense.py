"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1): its equation, and faster ways to the same numbers.

Legend: B batch, S source (key) length, T target (query) length, H heads, K head width of queries and keys (the paper's
d_k), Kv head width of values (d_v).

``naive_attention`` is the paper's equation, and returns the weights; ``sdpa_attention`` calls torch's fused kernels,
``flash_attention`` one of them; ``cached_attention`` is for the few queries of a decoding step. Masks are boolean,
True = may attend (``masks.py``). A query that may attend to nothing gets a zero vector. Heads and projections are in
``attention.py``.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_cli.model.dropout import dropout as drop
from transformer_cli.model.masks import causal_mask, combined_mask

#: A way to compute attention; called like ``naive_attention``.
Core = Callable[..., tuple[Tensor, Tensor | None]]


def at_least_float32(x: Tensor) -> Tensor:
    """Return x in float32 (float64 stays): sums of exponentials and variances are not safe in 16 bits."""
    return x if x.dtype is torch.float32 else x.to(torch.promote_types(x.dtype, torch.float32))


def naive_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute attention by its equation.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V  (Vaswani et al. 2017, eq. 1).

    Args:
        query: ``[B, H, T, K]``.
        key: ``[B, H, S, K]``.
        value: ``[B, H, S, Kv]``.
        mask: boolean, True = may attend, broadcastable to ``[B, H, T, S]``; None allows everything.
        causal: besides, hide what comes after each query (the queries are the last T positions).
        dropout: probability of dropping a weight; the caller passes 0 in evaluation.
        scale: factor of the scores; None: 1 / √d_k.
        bias: added to the scaled scores, broadcastable to ``[B, H, T, S]``: what relative positions say.

    Returns:
        The output ``[B, H, T, Kv]`` and the weights ``[B, H, T, S]`` before dropout,
        in float32 whatever the dtype of the rest (float64 stays).
    """
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = at_least_float32((query * scale) @ key.transpose(-2, -1))  # [B, H, T, S], far more numbers than queries
    if bias is not None:
        scores = scores + bias
    seeing = mask is None and query.size(-2) <= key.size(-2)  # each query at least itself
    if causal:
        mask = combined_mask(mask, causal_mask(query.size(-2), key.size(-2), device=query.device))
    weights = masked_softmax(scores, mask, seeing=seeing)  # [B, H, T, S]
    return drop(weights, dropout).to(value.dtype) @ value, weights  # [B, H, T, Kv]


def masked_softmax(scores: Tensor, mask: Tensor | None, *, seeing: bool = False) -> Tensor:
    """Return the softmax over the keys that the mask allows; a row without any is zero, not NaN.

    The lowest finite number instead of -inf keeps such a row, and its gradient, finite; zeroing the weights afterwards
    changes no other row, because there exp(lowest - maximum) is exactly 0 already.

    Args:
        scores: ``[B, H, T, S]``.
        mask: boolean, True = may attend, broadcastable to the scores.
        seeing: every row is known to have a key: nothing needs zeroing, which costs a fifth of causal attention.
    """
    if mask is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min
    hidden = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, lowest)
    weights = (scores + hidden).softmax(-1)  # a sum, because it costs nothing in the backward pass
    return weights if seeing else weights.masked_fill(~mask, 0.0)


def sdpa_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, None]:
    """Compute the same as ``naive_attention`` with torch's fused kernels, which keep no weights.

    ``is_causal`` serves only the plain square case: with a mask beside it, torch's math kernel raises, and with T ≠ S
    it counts from the first position. Both other cases get a written-out mask; a bias and a mask are one mask of
    numbers, in which -∞ hides.

    Returns:
        The output ``[B, H, T, Kv]``, and None.
    """
    square = causal and mask is None and bias is None and query.size(-2) == key.size(-2)
    if causal and not square:
        mask = combined_mask(mask, causal_mask(query.size(-2), key.size(-2), device=query.device))
    if bias is not None:
        bias = bias.to(query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    out = F.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal=square, scale=scale)
    return out, None  # [B, H, T, Kv]


def fastest_dense(query: Tensor, dropout: float) -> Core:
    """Return what computes attention fastest: ``sdpa_attention``, but for dropout on a CPU ``naive_attention``.

    There torch would draw the dropout, slowly, from a generator that all threads share.
    """
    return naive_attention if dropout > 0 and query.device.type == "cpu" else sdpa_attention


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Tensor, None]:
    """Compute the same as ``sdpa_attention`` with torch's flash kernel (Dao et al. 2022) and no other; no bias.

    Raises:
        ValueError: that kernel does not take this; torch itself would name several kernels in as many warnings.
    """
    square = query.size(-2) == key.size(-2)
    masked = mask is not None or (causal and not square)
    if reason := _flash_limit(query, value, masked=masked, dropout=dropout):
        raise ValueError(f"torch's flash kernel cannot compute this attention: {reason}")
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return sdpa_attention(query, key, value, mask, causal=causal, dropout=dropout, scale=scale)


def _flash_limit(query: Tensor, value: Tensor, *, masked: bool, dropout: float) -> str | None:
    device, d_k, d_v = query.device.type, query.size(-1), value.size(-1)
    if d_k != d_v:
        return f"it needs one head width, got d_k {d_k} and d_v {d_v}"
    if device == "cpu":
        return f"on a CPU it knows no dropout, got {dropout}" if dropout else None
    if device != "cuda":
        return f"there is none for the device {device}"
    if masked:
        return "on a GPU it takes no mask but a square causal one"
    if query.dtype not in (torch.float16, torch.bfloat16):
        return f"on a GPU it computes in 16 bits, got {query.dtype}"
    return None


#: Values that are summed in one product. MKL cuts longer sums (seen from 400 on) where the number of all values says,
#: those of hidden keys too.
KEYS_AT_ONCE = 256


def cached_attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *, scale: float | None = None) -> Tensor:
    """Compute the same for one to a few queries and keys that lie transposed, as a decoder's step has them.

    For one query to each of 256 times 16 keys, torch's fused kernel takes twice as long.

    Args:
        query: ``[N, T, K]``, N sentences times heads.
        key: ``[N, K, S]``.
        value: ``[N, S, Kv]``.
        bias: ``[N, T, S]``, added to the scaled scores: 0 or what positions add, and the lowest number there is where
            a key may not be attended to.
        scale: factor of the scores; None: 1 / √d_k.

    Returns:
        ``[N, T, Kv]``.
    """
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    weights = torch.baddbmm(bias, query, key, alpha=scale).softmax(-1)  # [N, T, S]
    first, *others = zip(torch.split(weights, KEYS_AT_ONCE, -1), torch.split(value, KEYS_AT_ONCE, 1), strict=True)
    found = torch.bmm(*first)
    for part in others:
        found.baddbmm_(*part)
    return found


IMPLEMENTATIONS: dict[str, Core] = {"naive": naive_attention, "sdpa": sdpa_attention, "flash": flash_attention}
