"""Positions: what tells the model the order of the words, to which attention by itself is blind.

Vaswani et al. 2017, section 3.5. Either vectors are added to the embeddings, or self-attention knows the distances.
"""

from transformer_cli.model.positions.absolute import (
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    sinusoidal_table,
)
from transformer_cli.model.positions.choice import positions_of_embeddings, positions_of_self_attention
from transformer_cli.model.positions.relative import AlibiPositions, T5Positions
from transformer_cli.model.positions.rotary import RotaryPositions
from transformer_cli.model.positions.self_attention import SelfAttentionPositions
from transformer_cli.model.positions.transformer_xl import TransformerXLPositions

__all__ = [
    "AlibiPositions",
    "LearnedPositions",
    "NoPositions",
    "RotaryPositions",
    "SelfAttentionPositions",
    "SinusoidalPositions",
    "T5Positions",
    "TransformerXLPositions",
    "positions_of_embeddings",
    "positions_of_self_attention",
    "sinusoidal_table",
]
