"""Which keys a query of sparse attention sees.

Legend: T queries, S keys, H heads, N blocks, R blocks of keys that are chosen for each block of queries.

A pattern is a union of three kinds of keys: a band around the query, the first tokens of the text, and whole blocks
that are chosen for the query's block. ``window`` and ``dilated`` are bands (Longformer, Beltagy et al. 2020),
``bigbird`` has all three (Zaheer et al. 2020), ``blocks`` is one chosen block (BlockBERT, Qiu et al. 2020).

Whether query i sees key j never depends on how long the text is: else padding would change a sentence, and a decoder
that grows word by word would not compute what it was trained on. This is where two patterns differ from their papers;
each says how. How to compute with a pattern without looking at every pair is in ``sparse.py``.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformer_cli.config import SparseConfig


@dataclass(frozen=True)
class Pattern:
    """Which keys a query sees; made by ``window``, ``dilated``, ``bigbird`` or ``blocks``.

    Attributes:
        window: keys of the band on each side of a query; None: there is no band.
        dilation: distance between two keys of the band.
        global_tokens: first positions that all queries see, and that see all keys.
        block: tokens of a block.
        random_blocks: blocks that are drawn on each side.
        seed: of that draw.
        by_head: each head has one block to look at instead.
    """

    window: int | None = None
    dilation: int = 1
    global_tokens: int = 0
    block: int = 64
    random_blocks: int = 0
    seed: int = 0
    by_head: bool = False

    @property
    def chooses_blocks(self) -> bool:
        """Whether there are chosen blocks of keys."""
        return self.by_head or self.random_blocks > 0

    def in_band(self, i: Tensor, j: Tensor) -> Tensor:
        """Tell whether key j is in the band of query i, if it is at a multiple of the dilation; shapes broadcast."""
        return (i - j).abs_() <= (self.window or 0) * self.dilation

    def visible(self, queries: Tensor, keys: Tensor, *, causal: bool, n_heads: int = 1) -> Tensor:
        """Tell which keys each query sees, pair by pair.

        Args:
            queries: positions ``[..., T]``.
            keys: positions ``[..., S]``.
            causal: hide what comes after each query.
            n_heads: H.

        Returns:
            ``[..., H, T, S]``, or 1 instead of H if all heads see the same.
        """
        i, j = queries[..., None, :, None], keys[..., None, None, :]  # [..., 1, T, 1], [..., 1, 1, S]
        seen = (i < self.global_tokens) | (j < self.global_tokens)
        if self.window is not None:
            seen = seen | (self.in_band(i, j) & ((i - j) % self.dilation == 0))
        if self.chooses_blocks:
            n_blocks = int(torch.maximum(queries.max(), keys.max())) // self.block + 1
            table = self.chosen_blocks(n_blocks, causal=causal, n_heads=n_heads).to(queries.device)
            chosen = table.transpose(0, 1)[queries // self.block].transpose(-3, -2)  # [..., H, T, R]
            for of_one in chosen.unbind(-1):
                seen = seen | (of_one[..., None] == j // self.block)
        return seen & (j <= i) if causal else seen

    def dense_mask(
        self, length: int, key_length: int | None = None, *, causal: bool = False, n_heads: int = 1
    ) -> Tensor:
        """Return the whole pattern as a mask: quadratic in memory, for tests and for the weights of a few sentences.

        Args:
            length: T; the queries are the last T of S positions.
            key_length: S; None: as many keys as queries.
            causal: hide what comes after each query.
            n_heads: H.

        Returns:
            ``[1, 1 or H, T, S]``.
        """
        keys = torch.arange(length if key_length is None else key_length)
        return self.visible(keys[len(keys) - length :], keys, causal=causal, n_heads=n_heads)[None]

    def chosen_blocks(self, n_blocks: int, *, causal: bool, n_heads: int = 1) -> Tensor:
        """Return the numbers ``[1 or H, N, R]`` of the blocks that each block of queries sees; -1 for none.

        With ``by_head`` head h of H looks h blocks back, round in groups of H blocks (``blocks``). Otherwise they are
        drawn from those that the band does not reach (``bigbird``).
        """
        return _chosen_blocks(self, n_blocks, causal, n_heads)


@lru_cache(maxsize=256)
def _chosen_blocks(pattern: Pattern, n_blocks: int, causal: bool, n_heads: int) -> Tensor:
    if pattern.by_head:
        own, head = torch.arange(n_blocks), torch.arange(n_heads)[:, None]
        partner = own - own % n_heads + (own - head) % n_heads  # [H, N]
        if causal:
            partner = torch.where(partner > own, own, partner)
        return partner.where(partner < n_blocks, -1)[..., None]
    sides = ("before",) if causal else ("before", "after")
    rows = [[j for side in sides for j in _drawn(pattern, i, side)] for i in range(n_blocks)]
    table = torch.tensor(rows, dtype=torch.int64)[None]
    return table.where(table < n_blocks, -1)


def _drawn(pattern: Pattern, block: int, side: str) -> list[int]:
    """Draw blocks before or after one; -1 fills up where there are too few."""
    reach = -(-(pattern.window or 0) // pattern.block)  # blocks that the band touches
    candidates = range(block - reach) if side == "before" else range(block + reach + 1, 2 * block + reach + 2)
    stream = np.random.default_rng([pattern.seed, block, side == "after"])
    count = min(pattern.random_blocks, len(candidates))
    chosen = [candidates[number] for number in stream.choice(len(candidates), count, replace=False)] if count else []
    return chosen + [-1] * (pattern.random_blocks - count)


def window(window: int, *, global_tokens: int = 0) -> Pattern:
    """See ``window`` keys on each side, and the first ``global_tokens`` (Beltagy et al. 2020, section 3.1)."""
    return Pattern(window, global_tokens=global_tokens)


def dilated(window: int, dilation: int, *, global_tokens: int = 0) -> Pattern:
    """See ``window`` keys on each side, ``dilation`` apart (Beltagy et al. 2020, section 3.1)."""
    return Pattern(window, dilation, global_tokens)


def bigbird(window: int, *, global_tokens: int = 0, random_blocks: int = 1, block: int = 64, seed: int = 1) -> Pattern:
    """See a window, the first tokens, and drawn blocks of keys (Zaheer et al. 2020, section 2).

    The paper draws from the whole text. Here block i draws from the blocks before it and, without causality, from as
    many (and one more) behind it, on each side what the window does not reach; what lies behind the end is not seen.
    The draw is a function of seed, block and side alone. The window counts keys; the paper's code rounds it to blocks.
    """
    return Pattern(window, 1, global_tokens, block, random_blocks, seed)


def blocks(block: int = 64) -> Pattern:
    """See one block of keys, each head another (BlockBERT, Qiu et al. 2020, section 3).

    In the paper a head has a permutation of the text's n blocks, and a block sees its image. Here they are the shifts
    of the paper in groups of as many blocks as there are heads: with H blocks in the text, head h is its shift by h.
    With causality a block whose partner comes later sees itself; without, a partner behind the end leaves zeros.
    """
    return Pattern(block=block, by_head=True)


def pattern_remark(pattern: Pattern, longest: int) -> str | None:
    """Say why a pattern is a poor choice for texts of at most so many tokens; None if nothing is known."""
    if pattern.window is not None and pattern.dilation == 1 and pattern.window >= longest - 1:
        return (
            f"model.sparse.window {pattern.window} reaches across every text (at most {longest} tokens): "
            "each query sees all keys, as with sdpa but slower; choose a smaller window"
        )
    if pattern.by_head and pattern.block >= longest:
        return (
            f"model.sparse.block {pattern.block} is longer than every text (at most {longest} tokens): "
            "in the encoder only the first head sees any key; choose a block well below your lengths"
        )
    return None


def pattern_of(config: "SparseConfig") -> Pattern:
    """Return the pattern that ``model.sparse`` describes."""
    if config.pattern == "blocks":
        return blocks(config.block)
    if config.pattern == "bigbird":
        return bigbird(
            config.window,
            global_tokens=config.global_tokens,
            random_blocks=config.random_blocks,
            block=config.block,
            seed=config.seed,
        )
    dilation = config.dilation if config.pattern == "dilated" else 1
    return dilated(config.window, dilation, global_tokens=config.global_tokens)
