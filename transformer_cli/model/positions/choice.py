"""Which positions a configuration asks for, on the embeddings and in self-attention."""

from typing import TYPE_CHECKING

from torch import nn

from transformer_cli.model.positions.absolute import LearnedPositions, NoPositions, SinusoidalPositions
from transformer_cli.model.positions.relative import AlibiPositions, T5Positions
from transformer_cli.model.positions.rotary import RotaryPositions
from transformer_cli.model.positions.self_attention import SelfAttentionPositions
from transformer_cli.model.positions.transformer_xl import TransformerXLPositions

if TYPE_CHECKING:
    from transformer_cli.config import ModelConfig


def positions_of_embeddings(config: "ModelConfig", max_length: int) -> nn.Module:
    """Return what is added to the embeddings."""
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model)
    return LearnedPositions(max_length, config.d_model) if config.positions == "learned" else NoPositions()


def positions_of_self_attention(config: "ModelConfig", *, causal: bool) -> SelfAttentionPositions | None:
    """Return what a layer's self-attention knows of the order, with its own parameters; None: nothing."""
    d_model, n_heads = config.d_model, config.n_heads
    d_k = config.d_k or d_model // n_heads
    if config.positions == "rotary":
        return RotaryPositions(d_k)
    if config.positions == "transformer_xl":
        return TransformerXLPositions(d_model, n_heads, d_k, causal=causal)
    if config.positions == "t5":
        return T5Positions(n_heads, d_model, causal=causal)
    return AlibiPositions(n_heads) if config.positions == "alibi" else None
