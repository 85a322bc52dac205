"""Pairs to padded tensors: tokenising, grouping by length under a token budget, collating.

Batches are a pure function of (lengths, budget, seed, epoch): a resumed run finds its place by counting.
Letters: B batch, S source length, T target length.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_cli.data.pairs import SentencePairs
from transformer_cli.data.tokenizer import BOS, EOS, PAD, Tokenizer

Ids = np.ndarray[tuple[int], np.dtype[np.int32]]
Lengths = np.ndarray[tuple[int], np.dtype[np.int32]]
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
_CHUNK = 20_000  # lines tokenised at a time: Python lists of ids take 20 times the memory of the arrays they become


@dataclass(frozen=True)
class TokenizedPairs:
    """Ids of aligned sentences, int32; both sides end with EOS, the target has no BOS yet."""

    src: Sequence[Ids]
    tgt: Sequence[Ids]

    def __len__(self) -> int:
        return len(self.src)

    @property
    def src_lengths(self) -> Lengths:
        """Lengths of the sources, with EOS."""
        return np.array([len(ids) for ids in self.src], dtype=np.int32)

    @property
    def tgt_lengths(self) -> Lengths:
        """Lengths of the targets, with EOS."""
        return np.array([len(ids) for ids in self.tgt], dtype=np.int32)


@dataclass(frozen=True)
class Batch:
    """Padded ids of some pairs, int64, on one device."""

    src: Tensor  # [B, S]
    tgt_in: Tensor  # [B, T], starts with BOS
    tgt_out: Tensor  # [B, T], ends with EOS
    n_tokens: int  # target tokens without padding

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on another device."""
        src, tgt_in, tgt_out = (ids.to(device, non_blocking=True) for ids in (self.src, self.tgt_in, self.tgt_out))
        return Batch(src, tgt_in, tgt_out, self.n_tokens)


def tokenize_pairs(text: SentencePairs, tokenizer: Tokenizer, max_length: int | None) -> tuple[TokenizedPairs, int]:
    """Tokenise pairs and drop those that are too long; nothing is ever cut.

    Args:
        text: the pairs.
        tokenizer: of the run.
        max_length: longest side in tokens, with EOS; None keeps every pair.

    Returns:
        The pairs, and how many were dropped.
    """
    src: list[Ids] = []
    tgt: list[Ids] = []
    for start in range(0, len(text), _CHUNK):
        part = slice(start, start + _CHUNK)
        src += _with_eos(tokenizer.encode_src(text.src[part]))
        tgt += _with_eos(tokenizer.encode_tgt(text.tgt[part]))
    if max_length is None:
        return TokenizedPairs(src, tgt), 0
    kept = [i for i in range(len(src)) if len(src[i]) <= max_length and len(tgt[i]) <= max_length]
    return TokenizedPairs([src[i] for i in kept], [tgt[i] for i in kept]), len(src) - len(kept)


def _with_eos(ids: Sequence[list[int]]) -> list[Ids]:
    return [np.array([*line, EOS], dtype=np.int32) for line in ids]


def epoch_batches(
    src_lengths: Lengths, tgt_lengths: Lengths, batch_tokens: int, *, seed: int, epoch: int
) -> list[Indices]:
    """Group pairs of similar length into batches, in random order; each pair is in exactly one.

    Args:
        src_lengths: tokens of each source.
        tgt_lengths: tokens of each target.
        batch_tokens: most tokens of a batch, rows x max(longest source, longest target); a longer pair goes alone.
        seed: of the run.
        epoch: counted from 0; another epoch has other batches in another order.

    Returns:
        Indices of pairs, a batch each.
    """
    rng = np.random.default_rng([seed, epoch])
    order = _by_length(src_lengths, tgt_lengths, rng)
    batches = _cut(order, np.maximum(src_lengths, tgt_lengths)[order], batch_tokens, first=rng.random())
    return [batches[i] for i in np.argsort(rng.random(len(batches)))]


def _by_length(src_lengths: Lengths, tgt_lengths: Lengths, rng: np.random.Generator) -> Indices:
    """Sort by the longer side, then by the difference of the sides, up and down in turn.

    So neighbours are alike in both lengths: 97 % real tokens on Multi30k at 2048 tokens a batch, where sorting by
    (source, target) gives 96 % and at 4096 tokens 93 %. The noise mixes pairs of like length anew in each epoch;
    noise on the longer side as well would mix more and cost 3 to 6 % of the tokens.
    """
    longest = np.maximum(src_lengths, tgt_lengths)
    difference = src_lengths - tgt_lengths + rng.uniform(-1, 1, len(longest))
    return np.lexsort((np.where(longest % 2, difference, -difference), longest))


def _cut(order: Indices, longest: Lengths, batch_tokens: int, first: float) -> list[Indices]:
    """Cut a sorted order into batches; the first gets a share of the budget, so that cuts fall elsewhere each epoch."""
    batches = []
    start, width, budget = 0, 0, batch_tokens * first
    for i, length in enumerate(longest.tolist()):
        width = max(width, length)
        if i > start and (i - start + 1) * width > budget:
            batches.append(order[start:i])
            start, width, budget = i, length, batch_tokens
    return [*batches, order[start:]] if len(order) else []


def collate(pairs: TokenizedPairs, indices: Iterable[int]) -> Batch:
    """Build the padded batch of these pairs."""
    src = [pairs.src[i] for i in indices]
    tgt = [pairs.tgt[i] for i in indices]
    tgt_out = _padded(tgt)
    tgt_in = torch.full_like(tgt_out, PAD)
    for row, ids in enumerate(tgt):
        tgt_in[row, 0] = BOS
        tgt_in[row, 1 : len(ids)] = tgt_out[row, : len(ids) - 1]
    return Batch(_padded(src), tgt_in, tgt_out, sum(len(ids) for ids in tgt))


def _padded(rows: Sequence[Ids]) -> Tensor:
    """Return [rows, longest] ids, int64."""
    padded = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded)


def token_share(pairs: TokenizedPairs, batches: Sequence[Indices]) -> float:
    """Return real tokens / tokens with padding, source and target together."""
    padded = 0
    src_lengths, tgt_lengths = pairs.src_lengths, pairs.tgt_lengths
    for batch in batches:
        padded += len(batch) * int(src_lengths[batch].max() + tgt_lengths[batch].max())
    return int(src_lengths.sum() + tgt_lengths.sum()) / padded
