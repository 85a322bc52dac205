"""The order of hypotheses: log-probabilities on a grid, ties broken by index.

Legend: R rows (hypotheses), V vocabulary, N candidates.

Two hypotheses that are equally good must come out in the same order in every batch, on every machine. Log-probabilities
are therefore counted in whole steps of 2^-13 (about 0.0001 nats): sums of them are exact, noise in the last bits of a
matrix product seldom reaches them, and of two equal ones the lower index wins (``torch.topk`` promises no order).
"""

import torch
from torch import Tensor

STEPS_PER_NAT = 2.0**13
DEAD = -(2**40)  # log-probability, in steps, of what must not be chosen; sums and keys of it stay within 64 bits

_BLOCK = 32  # tokens looked at together


def to_grid(log_probs: Tensor) -> Tensor:
    """Return log-probabilities, in nats and of any shape, as whole steps (int64); -inf and NaN become ``DEAD``."""
    return torch.nan_to_num(log_probs * STEPS_PER_NAT, nan=DEAD, neginf=DEAD).round().long()


def best(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of integers ``[..., N]`` and their indices, best first; of equals the lower index first."""
    n = values.size(-1)
    keys = values * n + torch.arange(
        n - 1, -1, -1, device=values.device
    )  # all different: one order, not torch's choice
    keys = keys.topk(k, dim=-1).values  # [..., k]
    return keys.div(n, rounding_mode="floor"), n - 1 - keys.remainder(n)


def best_tokens(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return grid values and ids ``[R, min(k, V)]`` of each row's best tokens, best first, lower id first among equals.

    The k best tokens lie in the k blocks of neighbours with the best maxima, so only those are ranked: with V = 4000
    and k = 5 several times faster than ``topk`` over the whole row.

    Args:
        log_probs: ``[R, V]``.
        k: number of tokens wanted.
    """
    size = log_probs.size(1)
    n_blocks = -(-size // _BLOCK)
    if n_blocks <= 2 * k:
        return best(to_grid(log_probs), min(k, size))
    chosen = best(to_grid(_block_maxima(log_probs)), k)[1].sort(dim=-1).values  # [R, k]
    ids = chosen[..., None] * _BLOCK + torch.arange(_BLOCK, device=log_probs.device)
    ids = ids.flatten(1)  # [R, k * block], ascending: a lower index is a lower id
    values = to_grid(log_probs.gather(1, ids.clamp(max=size - 1))).masked_fill(ids >= size, DEAD)
    values, at = best(values, k)
    return values, ids.gather(1, at)


def _block_maxima(log_probs: Tensor) -> Tensor:
    whole = log_probs.size(1) // _BLOCK * _BLOCK
    maxima = log_probs[:, :whole].view(len(log_probs), -1, _BLOCK).amax(-1)  # [R, blocks]
    if whole == log_probs.size(1):
        return maxima
    return torch.cat([maxima, log_probs[:, whole:].amax(-1, keepdim=True)], dim=1)
