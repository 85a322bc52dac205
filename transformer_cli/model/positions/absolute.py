"""Positions as vectors that are added to the embeddings.

Legend: B batch, T length, D d_model.

Sinusoids reach any length, learned positions end at the length they were made for. Positions that act inside
attention are in the other files of this folder; with them, and with none at all, nothing is added here.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from transformer_cli.model.positions.table import Table


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """Compute sinusoidal positional encodings.

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D))  (Vaswani et al. 2017, section 3.5).

    Returns:
        Table ``[T, D]`` in float64.
    """
    angle = angles(length, d_model)  # [T, D/2]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # [T, D]: sin and cos take turns


def angles(length: int, width: int) -> Tensor:
    """Return pos / 10000^(2i/width) for positions 0, 1, … and i = 0, 1, …: ``[T, width/2]`` in float64."""
    pos = torch.arange(length, dtype=torch.float64)[:, None]  # [T, 1]
    two_i = torch.arange(0, width, 2, dtype=torch.float64)  # [width/2]
    return pos / 10000.0 ** (two_i / width)


class SinusoidalPositions(nn.Module):
    """Add sinusoidal encodings, of any length."""

    def __init__(self, d_model: int) -> None:
        """Make an empty table.

        Raises:
            ValueError: d_model is odd.
        """
        super().__init__()
        if d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {d_model}")
        self._table = Table(partial(sinusoidal_table, d_model=d_model))

    def forward(self, x: Tensor, at: np.ndarray | None = None) -> Tensor:
        """Add the encodings of positions 0, 1, … to x ``[B, T, D]``, or those of one position ``[B]`` to each row."""
        end = x.size(1) if at is None else int(at.max()) + 1
        return x + _rows(self._table.rows(end, x.dtype, x.device), end, at)  # [B, T, D]


class LearnedPositions(nn.Module):
    """Add one learned vector per position, up to ``max_length`` positions."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, x: Tensor, at: np.ndarray | None = None) -> Tensor:
        """Add the vectors of positions 0, 1, … to x ``[B, T, D]``, or that of one position ``[B]`` to each row.

        Raises:
            ValueError: a position lies beyond ``max_length``.
        """
        end, limit = x.size(1) if at is None else int(at.max()) + 1, self.table.num_embeddings
        if end > limit:
            raise ValueError(
                f"learned positions end at {limit} tokens, got a sequence of {end}: cut it, or use sinusoidal"
            )
        return x + _rows(self.table.weight, end, at)  # [B, T, D]


class NoPositions(nn.Module):
    """Add nothing: the order is told inside attention, or not at all."""

    def forward(self, x: Tensor, at: np.ndarray | None = None) -> Tensor:
        """Return x ``[B, T, D]``."""
        return x


def _rows(table: Tensor, end: int, at: np.ndarray | None) -> Tensor:
    """Return the first rows ``[T, D]``, or one for each sentence ``[B, 1, D]``; ``at`` is on the host."""
    return table[:end] if at is None else table[torch.from_numpy(at).to(table.device, non_blocking=True)][:, None]
