"""The kernels that look at some of the keys, or at mixtures of them, with the settings that a benchmark gives them.

What they compute, and the papers, are in ``model/kernels/``. Here: which pattern a kernel's name stands for, how many
pairs of a query and a key it sees, and in words what is in a row.

Legend: H heads, S length, K head width.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from transformer_cli.model.kernels import Pattern, bigbird, blocks, dilated, window

PATTERNS: tuple[Literal["window", "dilated", "bigbird", "blocks"], ...] = ("window", "dilated", "bigbird", "blocks")
_BLOCK = 64  # bigbird's drawn blocks, and its global tokens
_PAIRS_AT_ONCE = 2**22


def pattern_named(kernel: str, width: int) -> Pattern | None:
    """Return the pattern of a kernel with ``width`` keys on each side, or None if it has none."""
    if kernel == "window":
        return window(width)
    if kernel == "dilated":
        return dilated(width, 2)
    if kernel == "bigbird":
        return bigbird(width, global_tokens=_BLOCK, random_blocks=1, block=_BLOCK)
    return blocks(width) if kernel == "blocks" else None


def meaning(kernel: str, width: int, rank: int) -> str | None:
    """Say what a kernel looks at, for a reader of the report; None for those that look at all keys."""
    return {
        "window": f"{width:,} keys on each side of a query (Longformer): all of a text of {width + 1:,} tokens",
        "dilated": f"{width:,} keys on each side, every second one (Longformer)",
        "bigbird": f"{width:,} keys on each side, the first {_BLOCK} tokens, drawn blocks of {_BLOCK} (BigBird)",
        "blocks": f"one block of {width:,} keys, another for each head (BlockBERT)",
        "linformer": f"{rank:,} learned mixtures of all keys (Linformer)",
    }.get(kernel)


def masks(pattern: Pattern, seq_len: int, *, causal: bool, heads: int, device: str = "cpu") -> Iterator[Tensor]:
    """Yield the pattern as masks ``[1 or H, rows, S]``, some rows at a time: all of them would be quadratic."""
    keys = torch.arange(seq_len, device=device)
    rows = max(1, _PAIRS_AT_ONCE // (seq_len * (heads if pattern.by_head else 1)))
    for queries in torch.split(keys, rows):
        yield pattern.visible(queries, keys, causal=causal, n_heads=heads)


@lru_cache(maxsize=64)
def visible_pairs(pattern: Pattern, seq_len: int, real: int, *, causal: bool, heads: int) -> int:
    """Count the pairs of a query and a key, of all heads together, that may meet.

    Args:
        pattern: which keys are seen.
        seq_len: S.
        real: keys that are no padding.
        causal: hide what comes after each query.
        heads: H.
    """
    each = (seen[..., :real] for seen in masks(pattern, seq_len, causal=causal, heads=heads))
    return sum(int(seen.sum()) * (heads // seen.size(0)) for seen in each)
