"""Attention of short sentences in training on a CPU: the equation, with its own gradient.

Legend: B batch, S source (key) length, T target (query) length, H heads, K head width of queries and keys,
Kv head width of values, N = B * H, S' = S filled up to a multiple of 16.

torch takes a softmax over fewer than 16 numbers one number at a time (2.2 ms for [136 * 4, 15, 15] on a processor with
512-bit vectors, 0.15 ms for rows of 16), and its flash kernel does so with the tail of every row. Here keys are filled
up; and what enters and leaves are the products beside attention as they lie in memory, so that no gradient has to be
put together from those of queries, keys and values. Not here: dropout of weights and the weights themselves.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Longest row of keys for which this is faster than the flash kernel, measured.
SHORT = 64
#: float32 numbers in a 512-bit vector.
_LANES = 16

#: Tensors ``[B, length, …]`` whose last dimensions, side by side, are all heads' queries, then keys, then values.
Packed = Sequence[Tensor]


def short_attention(*packed: Tensor, widths: Sequence[int], n_heads: int, mask: Tensor | None, scale: float) -> Tensor:
    """Compute softmax(scale · Q Kᵀ) V of all heads, joined (Vaswani et al. 2017, eq. 1).

    Args:
        packed: one tensor (self-attention), or two or three. Computed in float32 if they are bfloat16.
        widths: of the queries, keys and values of all heads: H * K, H * K and H * Kv.
        n_heads: number of heads.
        mask: boolean, True = may attend, ``[B or 1, 1, T or 1, S]``, the same for all heads; None allows everything.
            A query that may attend to nothing gets a zero vector.
        scale: factor of the scores.

    Returns:
        ``[B, T, H * Kv]``, in the dtype of ``packed``.
    """
    n_keys = packed[-1].size(1)
    if mask is None:
        mask = torch.ones(1, 1, 1, n_keys, dtype=torch.bool)
    dtype = torch.promote_types(packed[0].dtype, torch.float32)
    bias = torch.full((*mask.shape[:-1], _filled_length(n_keys)), torch.finfo(dtype).min, dtype=dtype)
    bias[..., :n_keys].masked_fill_(mask, 0.0)  # [B, 1, T or 1, S']
    out: Tensor = _ShortAttention.apply(bias, scale, n_heads, widths, *packed)  # type: ignore[no-untyped-call]
    some = mask.any(-1).squeeze(1).unsqueeze(-1)  # [B, T or 1, 1]
    return out if bool(some.all()) else out * some


def unpacked(packed: Packed, widths: Sequence[int]) -> Iterator[Tensor]:
    """Return views of queries, keys and values, ``[B, length, width]`` each."""
    remaining = list(widths)
    for tensor in packed:
        inside = [remaining.pop(0)]
        while sum(inside) < tensor.size(-1):
            inside.append(remaining.pop(0))
        yield from torch.split(tensor, inside, dim=-1)


class _ShortAttention(torch.autograd.Function):
    """O = P V with P = softmax(scale · Q Kᵀ + bias), and the gradients of Q, K and V."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, scale: float, heads: int, widths: Sequence[int], *packed: Tensor) -> Tensor:
        query, key, value = (_split(x, heads) for x in unpacked(packed, widths))
        batch, _, length, _ = query.shape
        q = bias.new_empty(query.shape).copy_(query).flatten(0, 1)  # [N, T, K]
        k, v = _filled(key, bias.dtype), _filled(value, bias.dtype)  # [N, S', K], [N, S', Kv]
        scores = bias.new_empty(batch, heads, length, k.size(1)).copy_(bias).flatten(0, 1)
        weights = scores.baddbmm_(q, k.mT, alpha=scale).softmax(-1)  # [N, T, S']
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale, ctx.heads, ctx.widths, ctx.packed = scale, heads, widths, [(x.shape, x.dtype) for x in packed]
        out = packed[0].new_empty(batch, length, widths[-1])
        _split(out, heads).copy_(weights.bmm(v).view(batch, heads, length, -1))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        grad_heads = _split(grad, ctx.heads)  # [B, H, T, Kv]
        g = q.new_empty(grad_heads.shape).copy_(grad_heads).flatten(0, 1)  # [N, T, Kv]
        grad_scores = torch._softmax_backward_data(g.bmm(v.mT), weights, -1, weights.dtype)  # [N, T, S']
        nothing = q.new_empty(1, 1, 1)
        grad_q = torch.baddbmm(nothing, grad_scores, k, beta=0, alpha=ctx.scale)
        grad_k = torch.baddbmm(nothing, grad_scores.mT, q, beta=0, alpha=ctx.scale)
        grads = [q.new_empty(shape, dtype=dtype) for shape, dtype in ctx.packed]
        for part, x in zip(unpacked(grads, ctx.widths), (grad_q, grad_k, weights.mT.bmm(g)), strict=True):
            into = _split(part, ctx.heads)
            into.copy_(x.view(-1, ctx.heads, *x.shape[1:])[:, :, : into.size(2)])
        return None, None, None, None, *grads


def _split(x: Tensor, heads: int) -> Tensor:
    """Return a view ``[B, H, length, width]`` of x ``[B, length, H * width]``."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _filled_length(n_keys: int) -> int:
    return -(-n_keys // _LANES) * _LANES


def _filled(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x ``[B, H, S, K]`` as ``[N, S', K]``, with zeros for the further keys."""
    n_keys = x.size(2)
    filled = x.new_empty(*x.shape[:2], _filled_length(n_keys), x.size(3), dtype=dtype)
    filled[:, :, :n_keys] = x
    filled[:, :, n_keys:] = 0
    return filled.flatten(0, 1)
