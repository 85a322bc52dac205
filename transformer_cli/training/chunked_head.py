"""The output layer and a loss of its logits, some rows at a time.

Legend: N rows (target tokens), D d_model, V vocabulary.

Logits, log-probabilities and their gradients for a whole batch are several tensors [N, V] in float32, for two passes
and a teacher more than a small model's everything else. A loss that is a sum over rows needs none of them for longer
than a few rows: they are made, used and differentiated, and the gradients of the hidden states and of the matrix are
what is kept. Which loss it is, is not known here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transformer_cli.model.attention import at_least_float32
from transformer_cli.model.linear import linear

#: Elements of one [rows, V]: 2 MiB in float32, so that the few of them in use stay in or near a CPU's cache.
#: R-Drop's head with a vocabulary of 2,000 took 74 ms with it, 92 ms with twice and 117 ms with eight times as many.
_CHUNK = 2**19

#: The logits ``[n, V]`` of each view, and which rows they are; returns their loss, a scalar.
RowsLoss = Callable[[list[Tensor], slice], Tensor]


def loss_of_rows(loss_of_chunk: RowsLoss, weight: Tensor, views: Sequence[Tensor]) -> Tensor:
    """Return the sum of a loss over all rows; value and gradients are those of the plain formula.

    Args:
        loss_of_chunk: sums the loss of some rows; it is differentiated in the logits alone.
        weight: the output matrix ``[V, D]``.
        views: hidden states ``[N, D]``, one tensor per pass over the batch.

    Returns:
        A scalar, in float32 (float64 stays). It can be differentiated once.
    """
    total: Tensor = _ChunkedLoss.apply(loss_of_chunk, weight, *views)  # type: ignore[no-untyped-call]
    return total


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss_of_chunk: RowsLoss, weight: Tensor, *views: Tensor) -> Tensor:
        trained = any(ctx.needs_input_grad)
        matrix = weight.detach().requires_grad_(trained)
        total = at_least_float32(weight.new_zeros(()))
        gradients = [torch.empty_like(view) for view in views]
        for rows in _chunks(len(views[0]), len(weight)):
            parts = [view[rows].detach().requires_grad_(trained) for view in views]
            with torch.set_grad_enabled(trained):
                loss = loss_of_chunk([at_least_float32(linear(part, matrix, None)) for part in parts], rows)
            total += loss.detach()
            if trained:
                torch.autograd.backward(loss)  # adds to matrix.grad
                for gradient, part in zip(gradients, parts, strict=True):
                    gradient[rows] = part.grad if part.grad is not None else 0.0
        ctx.save_for_backward(matrix.grad, *gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, *(None if saved is None else saved * gradient for saved in ctx.saved_tensors)


def _chunks(rows: int, vocabulary: int) -> Iterator[slice]:
    step = max(1, _CHUNK // vocabulary)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
