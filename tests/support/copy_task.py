"""Sequences to copy or reverse, and the share of unseen ones that come out right."""

import numpy as np
import torch

from transformer_cli.data.batching import TokenizedPairs, collate
from transformer_cli.data.tokenizer import BOS, EOS

SYMBOLS = 20


def task(name: str, count: int, seed: int, longest: int = 10) -> TokenizedPairs:
    """Return pairs of 3 to ``longest`` symbols and their copy, or what they are backwards (``reverse``)."""
    rng = np.random.default_rng(seed)
    sources = [rng.integers(4, 4 + SYMBOLS, rng.integers(3, longest + 1)) for _ in range(count)]
    targets = [ids[::-1] for ids in sources] if name == "reverse" else sources
    return TokenizedPairs(*([np.append(ids, EOS).astype(np.int32) for ids in side] for side in (sources, targets)))


@torch.no_grad()
def exact_matches(model: torch.nn.Module, pairs: TokenizedPairs) -> float:
    """Decode greedily, without a cache: what the model itself knows."""
    batch = collate(pairs, range(len(pairs)))
    model.eval()
    memory = model.encode(batch.src)
    tokens = torch.full((len(pairs), 1), BOS)
    for _ in range(max(map(len, pairs.tgt)) + 1):
        hidden = model.decode(tokens, memory, batch.src)
        tokens = torch.cat([tokens, model.project(hidden[:, -1]).argmax(-1, keepdim=True)], dim=1)
    outputs = tokens[:, 1:].numpy()
    right = [list(row[: len(tgt)]) == list(tgt) for row, tgt in zip(outputs, pairs.tgt, strict=True)]
    return sum(right) / len(right)
