"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

Legend: B batch, S source (key) length, T target (query) length, D d_model, H heads, K head width of queries and keys
(the paper's d_k), Kv head width of values (d_v).

Attention itself, between the projections, is in ``kernels/``; what wraps this module (residual, norm, dropout of its
output) is in ``layers.py``.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from transformer_cli.model.head_norm import HeadNorm
from transformer_cli.model.kernels import (
    IMPLEMENTATIONS,
    Core,
    Linformer,
    SparseAttention,
    at_least_float32,
    fastest_dense,
    naive_attention,
    sdpa_attention,
)
from transformer_cli.model.linear import Linear, linear_together, product_dtype
from transformer_cli.model.positions import SelfAttentionPositions
from transformer_cli.model.recompute import recomputing

if TYPE_CHECKING:
    from transformer_cli.config import Implementation, ModelConfig


class MultiHeadAttention(nn.Module):
    """Multi-head attention for all three places of the Transformer.

    MultiHead(Q, K, V) = Concat(head_1, …, head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
    (Vaswani et al. 2017, section 3.2.2). Where key and value come from, and the mask, make it encoder self-attention,
    masked decoder self-attention or encoder-decoder attention.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        scale: bool | float = True,
        qk_norm: bool = False,
        norm: Literal["layer", "rms"] = "layer",
        positions: SelfAttentionPositions | None = None,
        implementation: "Implementation" = "sdpa",
        kernel: SparseAttention | Linformer | None = None,
    ) -> None:
        """Make the four projections.

        Args:
            d_model: width of queries, keys, values and output outside.
            n_heads: number of heads.
            d_k: width of a head's queries and keys; None: d_model / n_heads.
            d_v: width of a head's values; the same.
            dropout: probability of dropping an attention weight in training.
            bias: of the projections.
            scale: divide the scores by √d_k, or multiply them by a number; False: leave them.
            qk_norm: normalise each head's queries and keys (``head_norm.py``).
            norm: how: LayerNorm or RMSNorm.
            positions: what self-attention knows of the order.
            implementation: its name in the configuration.
            kernel: what computes it, where that has settings or parameters (``sparse``, ``linformer``).

        Raises:
            ValueError: see ``head_widths``.
        """
        super().__init__()
        d_k, d_v = head_widths(d_model, n_heads, d_k, d_v)
        self.d_k, self.d_v = d_k, d_v
        self.n_heads, self.dropout = n_heads, dropout
        self.implementation, self.kernel = implementation, kernel
        self.scale = None if scale is True else float(scale or 1)  # None: the implementation divides by √d_k
        self.q_proj = Linear(d_model, n_heads * d_k, bias=bias)
        self.k_proj = Linear(d_model, n_heads * d_k, bias=bias)
        self.v_proj = Linear(d_model, n_heads * d_v, bias=bias)
        self.out_proj = Linear(n_heads * d_v, d_model, bias=bias)
        self.q_norm = HeadNorm(d_k, norm) if qk_norm else None
        self.k_norm = HeadNorm(d_k, norm) if qk_norm else None
        self.positions = positions
        self.recompute = False  # train.checkpointing: attention

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from query to key and value.

        Args:
            query: ``[B, T, D]``.
            key: ``[B, S, D]``.
            value: ``[B, S, D]``.
            mask: boolean, True = may attend, broadcastable to ``[B, H, T, S]``.
            causal: hide what comes after each query.
            return_weights: return the weights too; they are computed by the equation then.

        Returns:
            The output ``[B, T, D]``, and None or the weights before dropout, ``[B, H, T, S]`` in float32 (float64
            stays); of ``linformer`` ``[B, H, T, R]``, R its rank.

        Raises:
            ValueError: the kernel cannot compute this: ``flash``, ``sparse`` and ``linformer`` do not take everything.
        """
        if query is key is value:
            q, k, v = linear_together(query, (self.q_proj, self.k_proj, self.v_proj))
            q, k, v = self._split(q, self.q_norm), self._split(k, self.k_norm), self._split(v)
        else:
            q, (k, v) = self._split(self.q_proj(query), self.q_norm), self.keys_values(key, value)
        return self._attend(q, k, v, mask, causal=causal, return_weights=return_weights)

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Project key and value ``[B, S, D]`` to the heads: ``[B, H, S, K]`` and ``[B, H, S, Kv]``; worth caching."""
        if key is value:
            k, v = linear_together(key, (self.k_proj, self.v_proj))
        else:
            k, v = self.k_proj(key), self.v_proj(value)
        return self._split(k, self.k_norm), self._split(v)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, causal: bool, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from queries ``[B, H, T, K]`` to keys and values, and join the heads."""
        dropout = self.dropout if self.training else 0.0
        attention = self._core(q, dropout, return_weights=return_weights)
        with _float32_on_cpu(q):
            biases = {}
            if self.positions is not None:
                q, k, bias = self.positions(q, k, self.scale)
                biases = {} if bias is None else {"bias": bias}
            heads, weights = attention(q, k, v, mask, causal=causal, dropout=dropout, scale=self.scale, **biases)
        concat = heads.transpose(1, 2).flatten(2)  # [B, T, H * Kv]
        out: Tensor = self.out_proj(concat)  # [B, T, D]
        return out, weights if return_weights else None

    def _core(self, q: Tensor, dropout: float, *, return_weights: bool) -> Core:
        """Return what computes softmax(Q Kᵀ / √d_k) V here, one of ``kernels/``."""
        core: Core = self.kernel or IMPLEMENTATIONS[self.implementation]
        if return_weights:
            core = self.kernel.naive if self.kernel else naive_attention
        elif core is sdpa_attention:
            core = fastest_dense(q, dropout)
        return recomputing(core) if self.recompute else core

    def _split(self, x: Tensor, norm: HeadNorm | None = None) -> Tensor:
        if x.device.type == "cpu":  # torch's bfloat16 kernel took 42 ms for a backward pass that takes 2.4 in float32
            x = at_least_float32(x)
        heads = x.view(*x.shape[:2], self.n_heads, -1)  # [B, T, H, K]
        if norm is not None:
            heads = norm(heads)  # before the transposition, where a head is contiguous
        return heads.transpose(1, 2)  # [B, H, T, K]


def head_widths(d_model: int, n_heads: int, d_k: int | None, d_v: int | None) -> tuple[int, int]:
    """Return d_k and d_v, of which each that is None becomes d_model / n_heads.

    Raises:
        ValueError: one does, and that is not whole.
    """
    if d_model % n_heads and (d_k is None or d_v is None):
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}: give d_k and d_v")
    return d_k or d_model // n_heads, d_v or d_model // n_heads


def kept_as(weight: Tensor) -> Tensor:
    """Return an example of the dtype and device in which this model's keys and values come out of ``_split``."""
    empty = weight.new_empty(0)
    return at_least_float32(empty) if weight.device.type == "cpu" else empty.to(product_dtype(empty))


def _float32_on_cpu(x: Tensor) -> AbstractContextManager[object]:
    """Keep autocast away on a CPU, whose bfloat16 kernels are slow (see ``_split``)."""
    on_cpu = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    return torch.autocast("cpu", enabled=False) if on_cpu else nullcontext()


@contextmanager
def recorded_weights(attentions: Iterable[MultiHeadAttention]) -> Iterator[dict[MultiHeadAttention, Tensor]]:
    """Collect the weights ``[B, H, T, S]`` of each attention while the context is open, whatever its implementation.

    Hooks, so that the layers in between need not pass weights through for the rare caller who wants them.
    """
    weights: dict[MultiHeadAttention, Tensor] = {}
    handles = []
    for attention in attentions:
        handles.append(attention.register_forward_pre_hook(_ask_for_weights, with_kwargs=True))
        handles.append(attention.register_forward_hook(lambda module, _, output: weights.update({module: output[1]})))
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


def _ask_for_weights(
    _: nn.Module, args: tuple[object, ...], settings: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    return args, settings | {"return_weights": True}


def forced_flash_refusal(config: "ModelConfig", device_type: str, *, sixteen_bits: bool) -> str | None:
    """Say why a model with ``flash`` in its configuration cannot be computed on a device.

    On a CPU it can: what its kernel does not know there is refused with the configuration.

    Args:
        config: the ``model`` section.
        device_type: ``cpu``, ``cuda``, ...
        sixteen_bits: whether products are computed in 16 bits there.

    Returns:
        The reason, or None.
    """
    places = [place for place, chosen in config.attention.model_dump().items() if chosen == "flash"]
    if not places or device_type == "cpu":
        return None
    if device_type != "cuda":
        return f"torch has no flash kernel for the device {device_type}"
    if padded := [place for place in places if place != "decoder"]:
        return f"torch's flash kernel on a GPU takes no padding mask, which attention.{padded[0]} needs"
    return None if sixteen_bits else "torch's flash kernel on a GPU computes in 16 bits only"


def flash_refusal(config: "ModelConfig", device_type: str = "cpu") -> str | None:
    """Say why torch's flash kernel will not compute this model's ``sdpa`` attention in training on a CPU.

    Args:
        config: the ``model`` section.
        device_type: ``cpu``, ``cuda``, ...

    Returns:
        The reason, or None if flash is used (or no place asks for ``sdpa``, or the device is no CPU: on a GPU torch
        has fused kernels for all of these settings).
    """
    places = config.attention
    if device_type != "cpu" or "sdpa" not in (places.encoder, places.decoder, places.cross):
        return None
    if config.positions in ("t5", "transformer_xl") and "sdpa" in (places.encoder, places.decoder):
        return f"positions {config.positions} learn what they add to the scores: its CPU kernel has no gradient for it"
    if config.attention_dropout > 0:
        return f"attention_dropout is {config.attention_dropout}: torch's flash kernel on a CPU knows no dropout"
    d_k, d_v = head_widths(config.d_model, config.n_heads, config.d_k, config.d_v)
    if d_k != d_v:
        return f"d_k {d_k} differs from d_v {d_v}: torch's flash kernel on a CPU needs one head width"
    return None
