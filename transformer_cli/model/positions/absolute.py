"""Positional encodings: what tells the model the order of the words.

Legend: B batch, T length, D d_model.

Attention by itself is blind to order (Vaswani et al. 2017, section 3.5); both modules here add one vector per position
to the embeddings. Sinusoids reach any length, learned positions end at the length they were made for.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """Compute sinusoidal positional encodings.

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D))  (Vaswani et al. 2017, section 3.5).

    Returns:
        Table ``[T, D]`` in float64: rounding comes once, at the end, so a row never depends on the table's length.
    """
    pos = torch.arange(length, dtype=torch.float64)[:, None]  # [T, 1]
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # [D/2]
    angle = pos / 10000.0 ** (two_i / d_model)  # [T, D/2]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # [T, D]: sin and cos take turns


class SinusoidalPositions(nn.Module):
    """Add sinusoidal encodings; the table grows on demand, to any length."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {d_model}")
        # Not a buffer: nothing to save, and moving the model to another dtype must round afresh, not round the rounded.
        self._table = torch.empty(0, d_model)

    def forward(self, x: Tensor, at: np.ndarray | None = None) -> Tensor:
        """Add the encodings of positions 0, 1, … to x ``[B, T, D]``, or those of one position ``[B]`` to each row."""
        end = x.size(1) if at is None else int(at.max()) + 1
        table = self._table  # read once: another thread may put a shorter one in its place
        if len(table) < end or table.dtype != x.dtype or table.device != x.device:
            size = 2 ** math.ceil(math.log2(max(end, 128)))
            self._table = table = sinusoidal_table(size, x.size(2)).to(x)
        return x + _rows(table, end, at)  # [B, T, D]


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


def _rows(table: Tensor, end: int, at: np.ndarray | None) -> Tensor:
    """Return the first rows ``[T, D]``, or one for each sentence ``[B, 1, D]``; ``at`` is on the host."""
    return table[:end] if at is None else table[torch.from_numpy(at).to(table.device)][:, None]
