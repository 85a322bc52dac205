"""The decoder as one step of a translation computes it: the same sums as ``layers.py``, in fewer and larger calls.

Legend: N places (a sentence each), K hypotheses of a place, R rows (N * K), I inputs, O outputs, D d_model, F d_ff, H
heads, dk and dv head widths, C columns of a cache.

A step has one position of each hypothesis, so few numbers that half of its time went into calling torch: 271 calls in
four layers. Here no module is called, projections with one input are one product, and their outputs lie head by head,
so that queries, keys and values are views of them; weights are copied once for each cache. The tests compare every
variant with the layers. What a step remembers is in ``cache.py``; gradients, dropout and masks are not here.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.model.linear import product_dtype

if TYPE_CHECKING:
    from transformer_cli.model.attention import MultiHeadAttention
    from transformer_cli.model.cache import AttentionCache, Step
    from transformer_cli.model.layers import DecoderLayer, FeedForward
    from transformer_cli.model.positions.self_attention import StepPositions

#: Up to this inner width (measured: 640) products with a matrix ``[I, O]`` are equal to the last bit for every multiple
#: of 8 rows from 16 on, and a tenth faster than with ``[O, I]``. Wider ones differ, and keep the layer's own layout.
_WIDEST = 512


class Affine(NamedTuple):
    """x W + b, of one or several layers."""

    weight: Tensor  # [I, O]
    bias: Tensor | None  # [O]

    @classmethod
    def of(cls, *layers: nn.Linear, n_heads: int = 1) -> "Affine":
        """Copy layers with the same input, in the dtype of products; outputs of a head stand together."""
        weight = _head_by_head([layer.weight for layer in layers], n_heads)
        weight = weight.to(product_dtype(weight)).t()
        if weight.size(0) <= _WIDEST:
            weight = weight.contiguous()
        if layers[0].bias is None:
            return cls(weight, None)
        return cls(weight, _head_by_head([layer.bias for layer in layers], n_heads).to(weight.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``[R, O]`` for x ``[R, I]``."""
        x = x.to(self.weight.dtype)
        return torch.mm(x, self.weight) if self.bias is None else torch.addmm(self.bias, x, self.weight)


def _head_by_head(parameters: Sequence[Tensor], n_heads: int) -> Tensor:
    parts = [parameter.detach().view(n_heads, -1, *parameter.shape[1:]) for parameter in parameters]
    return torch.cat(parts, dim=1).flatten(0, 1)  # [O, ...]


class PackedAttention:
    """One attention of a layer, from the hidden states to those that are added to them."""

    def __init__(self, attention: "MultiHeadAttention", *, own: bool) -> None:
        """Copy the weights that a step needs: with ``own`` those of keys and values too."""
        self._n_heads, self._scale = attention.n_heads, attention.scale
        self._q_norm, self._k_norm = attention.q_norm, attention.k_norm
        self._positions = None if attention.positions is None else attention.positions.stepwise()
        self._widths = [attention.d_k, attention.d_k, attention.d_v] if own else [attention.d_k]
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)[: len(self._widths)]
        self._into = Affine.of(*projections, n_heads=attention.n_heads)
        self._out = Affine.of(attention.out_proj)

    def to_own(self, x: Tensor, cache: "AttentionCache", step: "Step") -> Tensor:
        """Attend from x ``[R, D]`` to all positions so far, this one included; ``[R, D]``."""
        q, k, v = self._project(x, cache)
        if self._k_norm is not None:
            k = self._k_norm.forward(k)
        bias = step.own_bias
        if self._positions is not None:
            q, k, bias = self._placed(self._positions, q, k, step)
        cache.append(k, v, step)
        return self._attend(q, cache, bias)

    def to_memory(self, x: Tensor, cache: "AttentionCache", step: "Step") -> Tensor:
        """Attend from x ``[R, D]`` to the memory; ``[R, D]``."""
        return self._attend(self._project(x, cache)[0], cache, step.cross_bias)

    def _project(self, x: Tensor, cache: "AttentionCache") -> Sequence[Tensor]:
        heads = self._into(x).view(x.size(0) * self._n_heads, -1).to(cache.values.dtype)  # [R * H, dk or dk + dk + dv]
        q, *others = torch.split_with_sizes(heads, self._widths, dim=1)
        return q if self._q_norm is None else self._q_norm.forward(q), *others

    def _placed(self, positions: "StepPositions", q: Tensor, k: Tensor, step: "Step") -> tuple[Tensor, Tensor, Tensor]:
        """Give q and k ``[R * H, dk]`` their position; the bias ``[N * H, K, C]`` is that of the step and the keys'."""
        by_place = (*step.columns.shape, self._n_heads, -1)  # [N, K, H, dk]
        q, k, more = positions.step(q.reshape(by_place), k.reshape(by_place), self._scale, step)
        q, k, bias = q.flatten(0, 2), k.flatten(0, 2), step.own_bias
        if more is not None:
            bias = (bias.view(*more.shape[:2], *bias.shape[1:]) + more.to(bias.dtype)).flatten(0, 1)
        return q, k, bias

    def _attend(self, q: Tensor, cache: "AttentionCache", bias: Tensor) -> Tensor:
        """Attend from queries ``[R * H, dk]`` to kept keys and values, and join the heads: ``[R, D]``."""
        n_heads, n_hypotheses = self._n_heads, q.size(0) // bias.size(0)
        if n_hypotheses == 1:
            heads = cache.attend(q[:, None], bias, self._scale)  # [N * H, 1, dv]
            return self._out(heads.view(q.size(0) // n_heads, -1))
        q = q.view(-1, n_hypotheses, n_heads, q.size(1)).transpose(1, 2)  # [N, H, K, dk]
        heads = cache.attend(q.flatten(0, 1), bias, self._scale)  # [N * H, K, dv]
        heads = heads.view(-1, n_heads, *heads.shape[1:]).transpose(1, 2)  # [N, K, H, dv]
        return self._out(heads.flatten(2).flatten(0, 1))


class PackedFeedForward:
    """The feed-forward network of a layer."""

    def __init__(self, feed_forward: "FeedForward") -> None:
        self._activation = feed_forward.activation
        self._w_1, self._w_2 = Affine.of(feed_forward.w_1), Affine.of(feed_forward.w_2)
        self._w_g = Affine.of(feed_forward.w_g) if self._activation == "swiglu" else None

    def __call__(self, x: Tensor) -> Tensor:
        """Return FFN(x), ``[R, D]`` as x."""
        h = self._w_1(x)  # [R, F]
        if self._w_g is not None:
            return self._w_2(F.silu(self._w_g(x)).mul_(h))
        return self._w_2(h.relu_() if self._activation == "relu" else F.gelu(h))


class PackedNorm:
    """A norm of hidden states: ``LayerNorm`` with what it looks up at every call looked up once."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        self._of = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        """Return x ``[R, D]`` normalised."""
        return torch.layer_norm(x, *self._of)


def _packed_norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    return PackedNorm(norm) if isinstance(norm, nn.LayerNorm) else norm.forward


class PackedLayer:
    """One decoder layer."""

    def __init__(self, layer: "DecoderLayer") -> None:
        self._own = PackedAttention(layer.self_attn, own=True)
        self._cross = PackedAttention(layer.cross_attn, own=False)
        self._feed_forward = PackedFeedForward(layer.feed_forward)
        residuals = (layer.self_attn_residual, layer.cross_attn_residual, layer.feed_forward_residual)
        self._pre, self._norms = residuals[0].pre, [_packed_norm(residual.norm) for residual in residuals]

    def step(self, x: Tensor, own: "AttentionCache", cross: "AttentionCache", step: "Step") -> Tensor:
        """Return x ``[R, D]`` after the layer, for the one position that follows those in the caches."""
        x = self._wrapped(0, x, lambda x: self._own.to_own(x, own, step))
        x = self._wrapped(1, x, lambda x: self._cross.to_memory(x, cross, step))
        return self._wrapped(2, x, self._feed_forward)

    def _wrapped(self, number: int, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        norm = self._norms[number]
        return x + sublayer(norm(x)) if self._pre else norm(x + sublayer(x))
