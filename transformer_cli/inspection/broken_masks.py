"""Wrong masks as people make them, to be planted in a model on purpose.

Legend: B batch, S source (key) length, T target (query) length.

The mask doctor's tests and ``tfm demo masks`` share them. A fault replaces what one attention is told: the mask of the
padding, ``[B, 1, 1, S]`` or None, and whether the future is hidden. Nothing outside the model is touched, and nothing
stays behind.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from transformer_cli.inspection.observation import places
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.masks import causal_mask
from transformer_cli.model.transformer import Transformer

#: Mask (True = may attend, broadcastable to ``[B, H, T, S]``, or None), causal, T and S to the mask and causal in use.
Fault = Callable[[Tensor | None, bool, int, int], tuple[Tensor | None, bool]]


def forgotten(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Hide no future at all."""
    return mask, False


def off_by_one(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Put the diagonal one too far to the right: every token sees the next one, which it shall predict."""
    return (torch.ones(t, s, dtype=torch.bool).tril(1), False) if causal else (mask, causal)


def too_strict(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Put the diagonal one too far to the left: no token sees itself, and the first one sees nothing."""
    return (torch.ones(t, s, dtype=torch.bool).tril(-1), False) if causal else (mask, causal)


def maximum(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Combine padding (0 and 1) and future (0 and -inf) by their maximum: it is the padding's, and no future is hidden.

    Written for masks of 0 and 1, where the maximum hides what either hides.
    """
    if not causal:
        return mask, causal
    padding = torch.zeros(1, 1, 1, s) if mask is None else (~mask).float()
    future = torch.zeros(t, s).masked_fill(~causal_mask(t, s), -math.inf)
    return torch.maximum(padding, future) == 0, False


def inverted(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Mistake True for "hide": real tokens are hidden, and the padding is seen."""
    return (None if mask is None else ~mask), causal


def no_padding_mask(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Let everything see the padding."""
    return None, causal


def wrong_axis(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Lay the mask of the keys over the queries, ``[B, 1, S, 1]``: it fits where both sides are equally long."""
    return (None if mask is None else mask.transpose(-2, -1)), causal


def sentences_as_queries(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Lay the sentences of the batch over the queries, ``[1, 1, B, S]``: it fits where there are as many."""
    return (None if mask is None else mask.transpose(0, -2)), causal


def nothing_seen(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Hide all keys from all queries."""
    return (None if mask is None else torch.zeros_like(mask)), causal


def of_another_sentence(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
    """Cut each sentence where its neighbour ends."""
    return (None if mask is None else mask.roll(1, 0)), causal


@contextmanager
def planted(model: Transformer, fault: Fault, where: str = "") -> Iterator[None]:
    """Let a fault into a model's attentions while the context is open.

    Args:
        model: any; it is whole again afterwards.
        fault: what becomes of masks.
        where: part of the names (``observation.places``) of the attentions that get it.
    """
    broken = [attention for name, attention in places(model).items() if where in name]
    for attention in broken:
        attention.forward = _with_fault(attention, fault)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for attention in broken:
            del attention.forward  # the method of the class is back


def _with_fault(attention: MultiHeadAttention, fault: Fault) -> Callable[..., tuple[Tensor, Tensor | None]]:
    whole = attention.forward

    def forward(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool = False, **rest: Any
    ) -> tuple[Tensor, Tensor | None]:
        mask, causal = fault(mask, causal, query.size(1), key.size(1))
        return whole(query, key, value, mask, causal=causal, **rest)

    return forward
