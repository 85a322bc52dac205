"""The relative positions of Transformer-XL: a query looks for content and, separately, for distances.

Legend: B batch, T length, D d_model, H heads, K head width, R relative positions; in a decoding step N places, K'
hypotheses, C columns of a cache.
"""

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from transformer_cli.model.linear import Linear
from transformer_cli.model.positions.absolute import sinusoidal_table
from transformer_cli.model.positions.self_attention import Placed, SelfAttentionPositions, StepPositions
from transformer_cli.model.positions.table import Table

if TYPE_CHECKING:
    from transformer_cli.model.cache import Step

_BLOCK = 128


class TransformerXLPositions(SelfAttentionPositions):
    """Score query i and key j by (q_i + u)·k_j + (q_i + v)·W r_{i-j}  (Dai et al. 2019, section 3.3).

    r are sinusoids of the distance, which is negative for keys that come after the query; W, u and v are learned, here
    by each layer for itself.
    """

    def __init__(self, d_model: int, n_heads: int, d_k: int, *, causal: bool) -> None:
        """Make the parameters.

        Args:
            d_model: width of r.
            n_heads: H.
            d_k: K.
            causal: no query sees what comes after it, so half of the distances are enough.

        Raises:
            ValueError: d_model is odd.
        """
        super().__init__()
        if d_model % 2:
            raise ValueError(f"transformer_xl positions need an even d_model, got {d_model}")
        self.n_heads, self._causal = n_heads, causal
        self.r_proj = Linear(d_model, n_heads * d_k, bias=False)
        self.u = nn.Parameter(torch.zeros(n_heads * d_k))  # flat, as the biases of q_proj that they are
        self.v = nn.Parameter(torch.zeros(n_heads * d_k))
        self._sinusoids = Table(partial(sinusoidal_table, d_model=d_model))

    def reset_parameters(self) -> None:
        """Set u and v to zero; W is a linear layer like others."""
        nn.init.zeros_(self.u)
        nn.init.zeros_(self.v)

    def forward(self, query: Tensor, key: Tensor, scale: float | None) -> Placed:
        """Add u to the query ``[B, H, T, K]``, and what it finds at each distance ``[B, H, T, T]`` to the scores."""
        n = query.size(-2)
        distances = self.projected(n).to(query.dtype)  # [R, H, K]
        found = (query + self.of_heads(self.v, query)) @ distances.permute(1, 2, 0)  # [B, H, T, R]
        return query + self.of_heads(self.u, query), key, shifted(found * _factor(scale, query))

    def stepwise(self) -> StepPositions:
        """Return what projects every distance once."""
        return _Steps(self)

    def project(self, start: int, end: int) -> Tensor:
        """Return W r of distances to the past, from start to end - 1: ``[end - start, H, K]``."""
        return self._heads(self._rows(end)[start:end])

    def projected(self, n: int) -> Tensor:
        """Return W r ``[R, H, K]`` of distances n - 1, …, 0, …: down to -n, or to -1 if the future is hidden anyway."""
        rows = self._rows(n + 1)
        future = rows[1 : 2 if self._causal else n + 1]
        signs = future.new_tensor([-1.0, 1.0]).repeat(future.size(1) // 2)  # sin(-x) = -sin x, cos(-x) = cos x
        return self._heads(torch.cat([rows[:n].flip(0), future * signs]))

    def _rows(self, n: int) -> Tensor:
        weight = self.r_proj.weight
        return self._sinusoids.rows(n, weight.dtype, weight.device)

    def _heads(self, rows: Tensor) -> Tensor:
        projected: Tensor = self.r_proj(rows)
        return projected.view(len(rows), self.n_heads, -1)  # [R, H, K]

    def of_heads(self, parameter: Tensor, like: Tensor) -> Tensor:
        """Return u or v as ``[H, 1, K]``, in the dtype of another tensor."""
        return parameter.view(self.n_heads, 1, -1).to(like.dtype)  # [H, 1, K]


def shifted(by_distance: Tensor) -> Tensor:
    """Put what stands at a distance where its key stands, without gathering (Dai et al. 2019, appendix B).

    Column c of query i belongs to key j = c - (T - 1) + i. Read on without line breaks, the numbers of one key after
    the other stand R - 1 apart, so cutting off the first T - 1 and breaking lines one number earlier lines them up.

    Args:
        by_distance: ``[..., T, R]``, R > T: distances T - 1, T - 2, … from left to right.

    Returns:
        ``[..., T, T]``; where R < 2T, numbers of keys after the query mean nothing.
    """
    n, r = by_distance.shape[-2:]
    lines = by_distance.flatten(-2)[..., n - 1 : n - 1 + n * (r - 1)]
    return lines.view(*lines.shape[:-1], n, r - 1)[..., :n]


class _Steps:
    """A decoder's steps: every distance is projected once, in blocks of one size, so that no bit depends on when."""

    def __init__(self, positions: TransformerXLPositions) -> None:
        self._positions = positions
        self._distances = positions.project(0, _BLOCK)  # [n, H, K]

    def step(self, query: Tensor, key: Tensor, scale: float | None, step: "Step") -> Placed:
        """Add u to the query ``[N, K', H, K]``, and what it finds at each distance ``[N, H, K', C]`` to the scores.

        One product for each place and head, as attention itself does it: there the bits depend on no other place.
        """
        u, v = (self._positions.of_heads(bias, query).squeeze(1) for bias in (self._positions.u, self._positions.v))
        far = self._up_to(int(step.positions.max()) + 1).to(query.dtype)[step.distances]  # [N, C, H, K]
        looking = (query + v).transpose(1, 2)  # [N, H, K', K]
        found = torch.bmm(looking.flatten(0, 1), far.permute(0, 2, 3, 1).flatten(0, 1))  # [N * H, K', C]
        return query + u, key, found.view(*looking.shape[:3], -1) * _factor(scale, query)

    def _up_to(self, n: int) -> Tensor:
        while (known := len(self._distances)) < n:
            block = self._positions.project(known, known + _BLOCK)
            self._distances = torch.cat([self._distances, block])
        return self._distances


def _factor(scale: float | None, query: Tensor) -> float:
    return query.size(-1) ** -0.5 if scale is None else scale
