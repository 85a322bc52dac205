"""Attention masks: the one place where it is decided who may look at whom.

Legend: B batch, S source (key) length, T target (query) length, H heads.

One convention everywhere: boolean, True = may attend, broadcastable to ``[B, H, T, S]``. A query that may attend to
nothing gets a zero vector and passes no gradient. What attention does with a mask is in ``kernels/``.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Let every query see the real tokens of its sentence.

    Args:
        ids: token ids ``[B, S]``.
        pad_id: the id that fills up short sentences.

    Returns:
        Mask ``[B, 1, 1, S]``.
    """
    return (ids != pad_id)[:, None, None, :]  # [B, 1, 1, S]


def causal_mask(length: int, key_length: int | None = None, *, device: torch.device | None = None) -> Tensor:
    """Let every query see itself and what came before (Vaswani et al. 2017, section 3.2.3).

    The queries are the *last* ``length`` of ``key_length`` positions: with cached keys, one new query sees them all.
    (``is_causal`` of torch counts from the first position instead, and would show that query key 0 alone.)

    Args:
        length: number of queries T.
        key_length: number of keys S; None: as many as queries.
        device: where the mask lives.

    Returns:
        Mask ``[1, 1, T, S]``.
    """
    keys = length if key_length is None else key_length
    lower = torch.ones(length, keys, dtype=torch.bool, device=device).tril(keys - length)
    return lower[None, None]  # [1, 1, T, S]


def combined_mask(mask: Tensor | None, causal: Tensor) -> Tensor:
    """Allow what both masks, which broadcast to ``[B, H, T, S]``, allow; None allows everything."""
    return causal if mask is None else mask & causal  # [B, 1, T, S]
