"""Rotary positions: queries and keys are turned by an angle that grows with their position.

Legend: B batch, T length, H heads, K head width.

The product of two turned vectors depends on the difference of their angles alone, so scores know distances, and
attention itself is left as it is: every kernel can compute it.
"""

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer_cli.model.positions.absolute import angles
from transformer_cli.model.positions.self_attention import Placed, SelfAttentionPositions, StepPositions, wide
from transformer_cli.model.positions.table import Table

if TYPE_CHECKING:
    from transformer_cli.model.cache import Step


def rotation_table(length: int, d_k: int) -> Tensor:
    """Return cosine and sine of each position's angles, one for each element of a head: ``[T, 2, K]`` in float64."""
    angle = angles(length, d_k).repeat_interleave(2, dim=1)  # [T, K]: both elements of a pair turn together
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Turn every pair of neighbours (x_2i, x_2i+1) by its angle.

    (x cos θ - y sin θ, y cos θ + x sin θ)  (Su et al. 2021, eqs. 15 and 34), computed in the dtype of the rotation,
    which is no narrower than float32.

    Args:
        x: ``[..., K]``, its elements side by side in memory.
        rotation: rows of ``rotation_table``, broadcastable to ``[..., 2, K]``.

    Returns:
        ``[..., K]``, in the dtype of x.
    """
    cos, sin = rotation.unbind(-2)
    wide_x = x.to(rotation.dtype)
    # i · x takes 0.6 times as long as picking every second element, forward and backward. The whole turn as a complex
    # product would take 0.1 times, but it rounds x cos θ - y sin θ once or twice, by where in memory a pair lies:
    # then a translation would depend on its neighbours in the batch. i · x is exact.
    pairs = torch.view_as_complex(wide_x.view(*x.shape[:-1], -1, 2))  # [..., K / 2]
    quarter = torch.view_as_real(pairs * 1j).flatten(-2)  # [..., K]
    return (wide_x * cos + quarter * sin).to(x.dtype)


class RotaryPositions(SelfAttentionPositions):
    """Turn queries and keys (Su et al. 2021)."""

    def __init__(self, d_k: int) -> None:
        """Make an empty table.

        Raises:
            ValueError: d_k is odd.
        """
        super().__init__()
        if d_k % 2:
            raise ValueError(f"rotary positions turn pairs of numbers and need an even d_k, got {d_k}")
        self._table = Table(partial(rotation_table, d_k=d_k))

    def forward(self, query: Tensor, key: Tensor, scale: float | None) -> Placed:
        """Turn query and key ``[B, H, T, K]``; nothing is added to the scores."""
        rotation = self._rotation(query, query.size(-2))[: query.size(-2)]  # [T, 2, K]
        return rotate(query, rotation), rotate(key, rotation), None

    def stepwise(self) -> StepPositions:
        """Return itself."""
        return self

    def step(self, query: Tensor, key: Tensor, scale: float | None, step: "Step") -> Placed:
        """Turn query and key ``[N, K', H, K]`` of the newest positions; those before were turned in their own step."""
        rotation = self._rotation(query, int(step.positions.max()) + 1)[step.at][:, None, None]  # [N, 1, 1, 2, K]
        return rotate(query, rotation), rotate(key, rotation), None

    def _rotation(self, x: Tensor, end: int) -> Tensor:
        return self._table.rows(end, wide(x.dtype), x.device)
