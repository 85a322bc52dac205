"""How exact a kernel is: the largest difference from attention in float64.

The reference is a third implementation, for one head: heads do not see each other, so a head of the inputs is a whole
problem, and its float64 reference stays affordable at lengths where all heads would not fit.

Legend: S length, K head width.
"""

import math

import torch
from torch import Tensor

from transformer_cli.benchmark.attention import Inputs
from transformer_cli.model.kernels import Pattern

#: Said in the report.
SCOPE = (
    "largest difference from float64 attention to the same keys, of output and gradients; all positions, "
    "but the first head of the first sentence alone: heads do not see each other, and float64 takes long"
)
_SCORES_AT_ONCE = 2**22  # numbers in a block of scores: 32 MiB of float64


def reference(inputs: Inputs, *, causal: bool, pattern: Pattern | None = None) -> tuple[Tensor, ...]:
    """Return output and gradients of query, key and value of one head, ``[S, K]`` each, in float64.

    Vaswani et al. 2017, eq. 1, computed for a block of queries at a time, over all keys: where a pattern says which
    of them are seen, the others are masked.
    """
    query, key, value = (_one_head(t).requires_grad_() for t in (inputs.query, inputs.key, inputs.value))
    real = None if inputs.mask is None else inputs.mask[0, 0]  # [1, S]
    grad_out, positions = _one_head(inputs.grad_out), torch.arange(len(key), device=key.device)
    blocks = []
    for queries in torch.split(positions, max(1, _SCORES_AT_ONCE // len(key))):
        seen = real
        if causal:
            seen = _both(seen, positions <= queries[:, None])
        if pattern is not None:
            of_heads = pattern.visible(queries, positions, causal=causal, n_heads=inputs.query.size(1))
            seen = _both(seen, of_heads[0])
        out = _attend(query[queries], key, value, seen)
        out.backward(grad_out[queries])  # type: ignore[no-untyped-call]
        blocks.append(out.detach())
    grads = [tensor.grad for tensor in (query, key, value) if tensor.grad is not None]
    return (torch.cat(blocks), *grads)


def max_error(results: tuple[Tensor, ...], truth: tuple[Tensor, ...]) -> float:
    """Return the largest absolute difference over the results that were computed.

    Args:
        results: the output, or it and the gradients of query, key and value, ``[B, H, S, K]`` each.
        truth: what ``reference`` returns for the first head of the first sentence.
    """
    differences = (_one_head(got) - want for got, want in zip(results, truth, strict=False))
    return max(float(difference.abs().max()) for difference in differences)


def _attend(query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None) -> Tensor:
    scores = query @ key.T / math.sqrt(key.shape[-1])
    if seen is None:
        return scores.softmax(-1) @ value
    lowest = torch.finfo(scores.dtype).min  # not -inf: a query that sees nothing gets zeros
    return scores.masked_fill(~seen, lowest).softmax(-1).masked_fill(~seen, 0.0) @ value


def _both(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one & other


def _one_head(tensor: Tensor) -> Tensor:
    return tensor.detach()[0, 0].double()  # of ``blocks`` the one that sees something in a text of any length
