"""Positions as numbers that are added to the scores, one for each head and distance: T5's and ALiBi's.

Legend: B batch, T length, H heads, K head width; in a decoding step N places, K' hypotheses, C columns of a cache.

The numbers know nothing of what the tokens are; positions that do are in ``transformer_xl.py``.
"""

import math
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from transformer_cli.model.positions.self_attention import Placed, SelfAttentionPositions, StepPositions, wide
from transformer_cli.model.positions.table import Table

if TYPE_CHECKING:
    from transformer_cli.model.cache import Step


class BiasByDistance(SelfAttentionPositions):
    """Add a number to the score of each query and key that depends on head and distance only."""

    def past(self, n: int, like: Tensor) -> Tensor:
        """Return the numbers ``[H, n]`` for keys that stand 0, 1, …, n - 1 positions before their query."""
        raise NotImplementedError

    def future(self, n: int, like: Tensor) -> Tensor:
        """Return the same for keys that stand after it."""
        return self.past(n, like)

    def forward(self, query: Tensor, key: Tensor, scale: float | None) -> Placed:
        """Leave query and key ``[B, H, T, K]`` as they are, and add numbers ``[H, T, T]`` to the scores."""
        n = query.size(-2)
        by_offset = torch.cat([self.past(n, query).flip(-1), self.future(n, query)[:, 1:]], dim=-1)  # [H, 2T - 1]
        return query, key, by_offset.unfold(-1, n, 1).flip(-2)  # row i starts at the offset of key 0, -i

    def stepwise(self) -> StepPositions:
        """Return itself."""
        return self

    def step(self, query: Tensor, key: Tensor, scale: float | None, step: "Step") -> Placed:
        """Leave query and key ``[N, K', H, K]`` as they are, and add numbers ``[N, H, 1, C]`` to the scores."""
        past = self.past(int(step.positions.max()) + 1, query)
        return query, key, past[:, step.distances].transpose(0, 1)[:, :, None]


class T5Positions(BiasByDistance):
    """One learned number for each head and bucket of distances (Raffel et al. 2020, section 2.1).

    Half of the buckets are single distances, the other half grow with the logarithm up to ``max_distance``, and the
    last one takes everything beyond. Where a query sees both sides, each side has half of all buckets. T5 shares its
    table between the layers of a stack; here each layer has its own, a few numbers more.
    """

    def __init__(self, n_heads: int, d_model: int, *, causal: bool, buckets: int = 32, max_distance: int = 128) -> None:
        """Make the table.

        Args:
            n_heads: H.
            d_model: says how the table starts: N(0, 1/d_model), as embeddings do.
            causal: no query sees what comes after it: all buckets are for the past.
            buckets: their number.
            max_distance: from here on all distances are alike.
        """
        super().__init__()
        self.table = nn.Embedding(buckets, n_heads)
        self._std, self._causal = d_model**-0.5, causal
        self._side = buckets if causal else buckets // 2
        self._buckets = Table(partial(t5_buckets, buckets=self._side, max_distance=max_distance))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        nn.init.normal_(self.table.weight, std=self._std)

    def past(self, n: int, like: Tensor) -> Tensor:
        """Return the learned numbers ``[H, n]`` of the past."""
        return self._numbers(n, 0, like)

    def future(self, n: int, like: Tensor) -> Tensor:
        """Return those of the future; of nothing that is seen, if none is."""
        return self._numbers(n, 0 if self._causal else self._side, like)

    def _numbers(self, n: int, first: int, like: Tensor) -> Tensor:
        buckets = self._buckets.rows(n, torch.int64, like.device)[:n]  # [n]
        return self.table.weight.t()[:, buckets + first]


def t5_buckets(n: int, buckets: int, max_distance: int) -> Tensor:
    """Return the bucket ``[n]`` of distances 0, 1, …, n - 1 to one side (Raffel et al. 2020, section 2.1)."""
    distance = torch.arange(n, dtype=torch.float64)
    exact = buckets // 2
    share = (distance.clamp(min=exact) / exact).log() / math.log(max_distance / exact)  # 0 … 1 on the way to the last
    far = exact + (share * (buckets - exact)).floor()
    return torch.where(distance < exact, distance, far.clamp(max=buckets - 1)).long()


class AlibiPositions(BiasByDistance):
    """Take away from a score what grows linearly with the distance, in each head at another slope (Press et al. 2022).

    The paper knows only the past; here both sides are alike. In the encoder alone a token cannot tell left from right.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self._penalties = Table(partial(alibi_penalties, slopes=alibi_slopes(n_heads)))

    def past(self, n: int, like: Tensor) -> Tensor:
        """Return -slope * distance, ``[H, n]``."""
        return self._penalties.rows(n, wide(like.dtype), like.device)[:n].t()


def alibi_slopes(n_heads: int) -> Tensor:
    """Return the slopes ``[H]`` in float64 (Press et al. 2022, section 3).

    For H a power of two: 2^(-8/H), 2^(-16/H), …, 2^-8. For other H those of the next smaller power, and every second
    one of the next larger, as in the authors' code.
    """
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2.0 ** (-4 * (2 * i + 1) / power) for i in range(n_heads - power)]
    return torch.tensor(slopes + between, dtype=torch.float64)


def alibi_penalties(n: int, slopes: Tensor) -> Tensor:
    """Return -slope * distance for distances 0, 1, …, n - 1: ``[n, H]`` in float64."""
    return -torch.arange(n, dtype=torch.float64)[:, None] * slopes
