"""What all positions have in common that act inside self-attention, not on the embeddings.

Legend: B batch, T length, H heads, K head width; in a decoding step N places, K' hypotheses, C columns of a cache.

Attention to a memory has none of them: between a target and a source token there is no distance.
"""

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformer_cli.model.cache import Step

#: Query, key, and what is added to the scaled scores, if anything.
Placed = tuple[Tensor, Tensor, Tensor | None]


class StepPositions(Protocol):
    """The same for the newest position of each hypothesis."""

    def step(self, query: Tensor, key: Tensor, scale: float | None, step: "Step") -> Placed:
        """Return query and key ``[N, K', H, K]``, and what is added to the scores ``[N, H, K' or 1, C]``."""


class SelfAttentionPositions(nn.Module):
    """Positions of one self-attention."""

    def forward(self, query: Tensor, key: Tensor, scale: float | None) -> Placed:
        """Give queries and keys their positions.

        Args:
            query: ``[B, H, T, K]``, at positions 0, 1, …
            key: ``[B, H, T, K]``.
            scale: factor of the scores; None: 1 / √K.

        Returns:
            Query and key ``[B, H, T, K]``, and what is added to the scaled scores, broadcastable to ``[B, H, T, T]``,
            or None.
        """
        raise NotImplementedError

    def stepwise(self) -> StepPositions:
        """Return what a decoder asks step by step; it may keep what it has computed, as the weights do not change."""
        raise NotImplementedError


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return float32 for narrower types: angles and distances do not fit into 16 bits."""
    return torch.promote_types(dtype, torch.float32)
