"""What the stacks are made of: feed-forward, the residual wrapper, encoder and decoder layers.

Legend: B batch, S source length, T target length, D d_model, F d_ff, H heads, K head width.

The wrapper holds the only choice between Pre- and Post-Norm. Embeddings and the stacks are in ``transformer.py``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.kernels import Linformer, SparseAttention, pattern_of
from transformer_cli.model.linear import Linear
from transformer_cli.model.norms import norm_of
from transformer_cli.model.positions import SelfAttentionPositions, positions_of_self_attention

if TYPE_CHECKING:
    from transformer_cli.config import Implementation, ModelConfig


class FeedForward(nn.Module):
    """The position-wise feed-forward network.

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2  (Vaswani et al. 2017, eq. 2); ``gelu`` replaces the maximum
    (Hendrycks & Gimpel 2016, exact form); ``swiglu`` is (SiLU(x W_g) ⊙ x W_1) W_2 (Shazeer 2020), a third matrix of
    the same width d_ff.
    """

    def __init__(self, config: "ModelConfig") -> None:
        super().__init__()
        self.activation = config.activation
        self.w_1 = Linear(config.d_model, config.d_ff, bias=config.bias)
        self.w_2 = Linear(config.d_ff, config.d_model, bias=config.bias)
        if config.activation == "swiglu":
            self.w_g = Linear(config.d_model, config.d_ff, bias=config.bias)
        self.dropout = Dropout(config.dropout_at("feed_forward"))

    def forward(self, x: Tensor) -> Tensor:
        """Return FFN(x), ``[B, T, D]`` as x."""
        y: Tensor = self.w_2(self.dropout(self._inner(x)))  # [B, T, D]
        return y

    def _inner(self, x: Tensor) -> Tensor:
        h: Tensor = self.w_1(x)  # [B, T, F]
        if self.activation == "swiglu":
            return F.silu(self.w_g(x)) * h
        return F.relu(h) if self.activation == "relu" else F.gelu(h)


class Residual(nn.Module):
    """The wrapper of every sub-layer: residual connection, dropout and norm.

    Post-Norm: LayerNorm(x + Sublayer(x)) (Vaswani et al. 2017, section 3.1);
    Pre-Norm: x + Sublayer(LayerNorm(x)) (Xiong et al. 2020), whose stack needs one more norm at its end.
    """

    def __init__(self, config: "ModelConfig") -> None:
        super().__init__()
        self.pre = config.norm_placement == "pre"
        self.norm = norm_of(config)
        self.dropout = Dropout(config.dropout_at("residual"))

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x ``[B, T, D]`` after the wrapped sub-layer."""
        if self.pre:
            return self.dropout.add(x, sublayer(self.norm(x)))
        y: Tensor = self.norm(self.dropout.add(x, sublayer(x)))
        return y


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: "ModelConfig", max_length: int | None = None) -> None:
        """Make the layer; ``max_length`` is the longest source, which ``linformer`` must know."""
        super().__init__()
        positions = positions_of_self_attention(config, causal=False)
        self.self_attn = _attention(config, config.attention.encoder, positions, max_length)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return x ``[B, S, D]`` after the layer; mask ``[B, 1, 1, S]`` hides the padding."""
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, x, mask)[0])
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, config: "ModelConfig") -> None:
        super().__init__()
        positions = positions_of_self_attention(config, causal=True)
        self.self_attn = _attention(config, config.attention.decoder, positions)
        self.cross_attn = _attention(config, config.attention.cross)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.cross_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Return x after the layer, for all positions at once.

        No padding mask for the target: padding stands at the end, so causality hides it from every real token already,
        and what the padding itself computes is read by nobody.

        Args:
            x: ``[B, T, D]``, padded at the end only.
            memory: the encoder's output ``[B, S, D]``.
            memory_mask: ``[B, 1, 1, S]``, hides the source's padding.
        """
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, x, causal=True)[0])
        x = self.cross_attn_residual(x, lambda x: self.cross_attn(x, memory, memory, memory_mask)[0])
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


def _attention(
    config: "ModelConfig",
    implementation: "Implementation",
    positions: SelfAttentionPositions | None = None,
    max_length: int | None = None,
) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.d_k,
        config.d_v,
        dropout=config.attention_dropout,
        bias=config.bias,
        scale=config.attention_scale,
        qk_norm=config.qk_norm,
        norm=config.norm,
        positions=positions,
        implementation=implementation,
        kernel=_kernel(config, implementation, max_length),
    )


def _kernel(
    config: "ModelConfig", implementation: "Implementation", max_length: int | None
) -> SparseAttention | Linformer | None:
    if implementation == "sparse":
        return SparseAttention(pattern_of(config.sparse))
    if implementation == "linformer":
        if max_length is None:
            raise ValueError("linformer needs a longest length, and is for the encoder only")
        return Linformer(config.linformer_rank, max_length)
    return None
