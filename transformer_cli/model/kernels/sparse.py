"""Attention to some of the keys, in blocks: time and memory grow with the length, not with its square.

Legend: B batch, T length of queries and keys, H heads, K head width, P residues of the dilation, N blocks of queries,
b queries of a block, M keys of a block, G global tokens.

The queries are cut into blocks. The keys that a block's queries may see are laid side by side (those of the band, the
first tokens, the chosen blocks), and one softmax goes over them, as if each block were a sentence of its own: the
dense kernels do the rest. A dilated band is a band without dilation among the positions of the same residue.

Measured for length 4,096, window 256, 8 heads of 64, forward and backward on one core: this way 0.33 s with blocks as
long as the window and 0.54 s with blocks of 64, whose keys are copied nine times instead of three; overlapping views
with a backward pass of our own 0.30 s; a loop over the blocks 0.39 s; products and softmax instead of torch's fused
kernel 1.05 s; dense naive attention 3.10 s. The tenth that views save was not worth a second backward pass to read.

Which keys are seen is decided in ``patterns.py``.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.model.kernels.dense import fastest_dense, naive_attention
from transformer_cli.model.kernels.patterns import Pattern
from transformer_cli.model.masks import combined_mask

_SHORTEST_BLOCK = 64  # of a band: shorter ones are many small products


@dataclass(frozen=True)
class SparseAttention:
    """Compute what ``naive_attention`` computes under the pattern's mask, without ever holding ``[T, T]`` numbers."""

    pattern: Pattern

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> tuple[Tensor, None]:
        """Attend within one text.

        Args:
            query: ``[B, H, T, K]``.
            key: ``[B, H, T, K]``.
            value: ``[B, H, T, Kv]``.
            mask: boolean ``[B, 1, 1, T]``, False for padding; None allows everything.
            causal: hide what comes after each query.
            dropout: probability of dropping a weight.
            scale: factor of the scores; None: 1 / √d_k.

        Returns:
            The output ``[B, H, T, Kv]``, zero where a query sees nothing, and None.

        Raises:
            ValueError: there are not as many keys as queries, or the mask is more than one of keys.
        """
        _refuse_other_shapes(query, key, mask)
        tiling = _Tiling.of(self.pattern, query, causal=causal)
        core = fastest_dense(query, dropout)
        allowed = tiling.allowed(query.device)  # [1, P, N, 1 or H, b, M]
        if mask is not None:
            allowed = allowed & tiling.keys(mask.transpose(-2, -1)).transpose(-2, -1)
        tiles = (tiling.queries(query), tiling.keys(key), tiling.keys(value), allowed)
        together = [tile.expand(len(query), *tile.shape[1:]).flatten(0, 2) for tile in tiles]
        heads, _ = core(*together, dropout=dropout, scale=scale)  # [B * P * N, H, b, Kv]
        out = tiling.joined(heads.view(len(query), tiling.dilation, tiling.n_blocks, *heads.shape[1:]))
        n_global = 0 if causal else self.pattern.global_tokens  # causal ones see each other only, as the tiles do
        if n_global:
            rows, _ = core(query[:, :, :n_global], key, value, mask, dropout=dropout, scale=scale)
            out = torch.cat([rows, out[:, :, n_global:]], dim=2)
        return out, None

    def naive(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the same from all pairs, with the weights ``[B, H, T, T]``; arguments as of the call."""
        seen = self.pattern.dense_mask(query.size(2), causal=causal, n_heads=query.size(1)).to(query.device)
        return naive_attention(query, key, value, combined_mask(mask, seen), dropout=dropout, scale=scale)


def _refuse_other_shapes(query: Tensor, key: Tensor, mask: Tensor | None) -> None:
    if query.size(2) != key.size(2):
        raise ValueError(f"sparse attention is within one text: got {query.size(2)} queries and {key.size(2)} keys")
    if mask is not None and mask.shape[1:] != (1, 1, key.size(2)):
        raise ValueError(f"sparse attention takes a mask of keys [B, 1, 1, {key.size(2)}], got {list(mask.shape)}")


@dataclass(frozen=True)
class _Tiling:
    """How a text of some length is cut for a pattern."""

    pattern: Pattern
    length: int
    n_heads: int
    causal: bool
    block: int  # b
    n_blocks: int  # N

    @classmethod
    def of(cls, pattern: Pattern, query: Tensor, *, causal: bool) -> "_Tiling":
        n_heads, length = query.shape[1:3]
        of_a_residue = -(-length // pattern.dilation)
        wanted = pattern.block if pattern.chooses_blocks else max(_SHORTEST_BLOCK, pattern.window or 0)
        block = max(1, min(wanted, of_a_residue))
        return cls(pattern, length, n_heads, causal, block, max(1, -(-of_a_residue // block)))

    @property
    def dilation(self) -> int:
        """P."""
        return self.pattern.dilation

    @property
    def n_global(self) -> int:
        """G that the text has."""
        return min(self.pattern.global_tokens, self.length)

    @property
    def reach(self) -> tuple[int, int]:
        """Blocks before and after a block of queries that its band touches."""
        blocks = min(-(-(self.pattern.window or 0) // self.block), self.n_blocks - 1)
        return blocks, 0 if self.causal else blocks

    def queries(self, x: Tensor) -> Tensor:
        """Cut x ``[B, H, T, K]`` into blocks ``[B, P, N, H, b, K]``, filled up with zeros."""
        return self._cut(x)

    def keys(self, x: Tensor) -> Tensor:
        """Lay what the queries of a block may see, of x ``[B, H, T, K]``, side by side: ``[B, P, N, H, M, K]``.

        Zeros stand wherever there is nothing.
        """
        parts = []
        if self.n_global:
            first = x[:, None, None, :, : self.n_global]
            parts.append(first.expand(-1, self.dilation, self.n_blocks, -1, -1, -1))
        if self.pattern.window is not None:
            before, after = self.reach
            around = self._cut(x, before, after)
            parts += [around[:, :, i : i + self.n_blocks] for i in range(before + 1 + after)]
        if self.pattern.chooses_blocks:
            parts.append(self._chosen(x))
        return torch.cat(parts, dim=-2)

    def allowed(self, device: torch.device) -> Tensor:
        """Tell which of the keys side by side each query sees, each key once: ``[1, P, N, 1 or H, b, M]``."""
        positions = torch.arange(1, self.length + 1, dtype=torch.int32, device=device).view(1, 1, -1, 1)
        i = self.queries(positions) - 1  # [1, P, N, 1, b, 1]
        j = self.keys(positions).transpose(-2, -1) - 1  # [1, P, N, 1 or H, 1, M], -1 where there is nothing
        before, after = self.reach
        n_band = (before + 1 + after) * self.block if self.pattern.window is not None else 0
        widths = [self.n_global, n_band, j.size(-1) - self.n_global - n_band]
        first, band, chosen = torch.split(j, widths, dim=-1)
        n_global, whole = self.pattern.global_tokens, (*j.shape[:-2], self.block, -1)
        near = self.pattern.in_band(i, band) & (band >= n_global)
        far = chosen >= n_global  # chosen blocks are none that the band touches
        seen = torch.cat([(first >= 0).expand(whole), near, far.expand(whole)], dim=-1)
        return seen & (j <= i) if self.causal else seen

    def joined(self, tiles: Tensor) -> Tensor:
        """Put blocks ``[B, P, N, H, b, K]`` back into the order of the text: ``[B, H, T, K]``."""
        return tiles.permute(0, 3, 2, 4, 1, 5).flatten(2, 4)[:, :, : self.length]

    def _cut(self, x: Tensor, before: int = 0, after: int = 0) -> Tensor:
        """Cut x ``[B, H, T, K]`` into blocks, with empty ones before and after: ``[B, P, N + ..., H, b, K]``."""
        span = self.block * self.dilation
        missing = self.n_blocks * span - self.length
        x = F.pad(x, (0, 0, before * span, missing + after * span))
        return x.reshape(*x.shape[:2], -1, self.block, self.dilation, x.size(3)).permute(0, 4, 2, 1, 3, 5)

    def _chosen(self, x: Tensor) -> Tensor:
        """Return the chosen blocks of x ``[B, H, T, K]``: ``[B, 1, N, H, R * b, K]``."""
        table = self.pattern.chosen_blocks(self.n_blocks, causal=self.causal, n_heads=self.n_heads)  # [1 or H, N, R]
        n_heads, with_empty = max(x.size(1), len(table)), self.n_blocks + 1
        x = self._cut(x, 0, 1).squeeze(1).transpose(1, 2)  # [B, H, N + 1, b, K], the last one is empty
        rows = x.expand(-1, n_heads, -1, -1, -1).flatten(1, 2)  # [B, H * (N + 1), b, K]
        numbers = table.where(table >= 0, self.n_blocks) + torch.arange(n_heads)[:, None, None] * with_empty
        chosen = rows.index_select(1, numbers.flatten().to(x.device)).view(len(x), *numbers.shape, *rows.shape[2:])
        return chosen.flatten(3, 4).transpose(1, 2)[:, None]
