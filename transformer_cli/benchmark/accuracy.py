"""How exact a kernel is: the largest difference from attention in float64.

The reference is a third implementation, for one head: heads do not see each other, so a head of the inputs is a whole
problem, and its float64 reference stays affordable at lengths where all heads would not fit.

Legend: S length, K head width.
"""

import math

import torch
from torch import Tensor

from transformer_cli.benchmark.attention import Inputs

#: Said in the report.
SCOPE = "largest difference from float64 in output and gradients; all positions, first head of the first sentence"
_SCORES_AT_ONCE = 2**22  # numbers in a block of scores: 32 MiB of float64


def reference(inputs: Inputs, *, causal: bool) -> tuple[Tensor, ...]:
    """Return output and gradients of query, key and value of the first head, ``[S, K]`` each, in float64.

    Vaswani et al. 2017, eq. 1, computed for a block of queries at a time.
    """
    query, key, value = (_first_head(t).requires_grad_() for t in (inputs.query, inputs.key, inputs.value))
    seen = None if inputs.mask is None else inputs.mask[0, 0]  # [1, S]
    grad_out = _first_head(inputs.grad_out)
    rows = max(1, _SCORES_AT_ONCE // len(key))
    blocks = []
    for start in range(0, len(query), rows):
        out = _attend(query[start : start + rows], key, value, seen, first=start if causal else None)
        out.backward(grad_out[start : start + rows])  # type: ignore[no-untyped-call]
        blocks.append(out.detach())
    grads = [tensor.grad for tensor in (query, key, value) if tensor.grad is not None]
    return (torch.cat(blocks), *grads)


def max_error(results: tuple[Tensor, ...], truth: tuple[Tensor, ...]) -> float:
    """Return the largest absolute difference over the results that were computed (output, or output and gradients)."""
    differences = (_first_head(got) - want for got, want in zip(results, truth, strict=False))
    return max(float(difference.abs().max()) for difference in differences)


def _attend(query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None, first: int | None) -> Tensor:
    scores = query @ key.T / math.sqrt(key.shape[-1])
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    if first is not None:
        future = torch.ones_like(scores, dtype=torch.bool).triu(first + 1)
        scores = scores.masked_fill(future, -math.inf)
    return scores.softmax(-1) @ value


def _first_head(tensor: Tensor) -> Tensor:
    return tensor.detach()[0, 0].double()
