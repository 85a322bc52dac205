"""The output layer and a loss of its logits, some rows at a time.

Legend: N rows (positions of a batch), N' = N filled up, C rows of a chunk, n rows of a part, D d_model, V vocabulary.

Logits, probabilities and their gradients for a whole batch are several tensors ``[N, V]`` in float32, for a small model
more than everything else. A loss that is a sum over rows needs none of them for longer than a few rows. Its gradient
is at hand as soon as the loss is, so all is computed in the forward pass: the logits of a chunk become their gradients
part by part, and two products turn those into the gradients of the hidden states and of the matrix, which are kept.
Which loss it is, is not known here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transformer_cli.model.kernels import at_least_float32
from transformer_cli.model.linear import filled_rows, product_dtype

#: Elements of a chunk's logits. Each chunk adds to the gradient of the whole matrix, so there should be few of them.
_CHUNK = {"cpu": 2**21, "cuda": 2**26}
#: Elements of a part of a chunk, for the many passes over them: those of a CPU should stay in its second-level cache.
#: With V 4,000 on one core, a batch's cross-entropy takes 23 ms instead of 34 with chunks and parts of 2**19.
_PART = {"cpu": 2**18, "cuda": 2**24}

#: Given the logits ``[n, V]`` of each view, in float32 or float64, and which rows they are: returns the sum of their
#: losses, a scalar, and leaves its gradients in the logits' places.
PartsLoss = Callable[[list[Tensor], slice], Tensor]


def loss_of_rows(loss_of_part: PartsLoss, weight: Tensor, views: Sequence[Tensor]) -> Tensor:
    """Return the sum of a loss over all rows; value and gradients are those of the plain formula.

    Args:
        loss_of_part: see ``PartsLoss``; ``by_autograd`` makes one of a formula.
        weight: the output matrix ``[V, D]``, without bias.
        views: hidden states ``[N, D]``, one tensor per pass over the batch.

    Returns:
        A scalar, in float32 (float64 stays). It can be differentiated once.
    """
    total: Tensor = _ChunkedLoss.apply(loss_of_part, weight, *views)  # type: ignore[no-untyped-call]
    return total


def by_autograd(loss: PartsLoss) -> PartsLoss:
    """Turn a loss that only returns its sum into one that also leaves its gradients in the logits' places."""

    def differentiated(logits: list[Tensor], rows: slice) -> Tensor:
        leaves = [one.detach().requires_grad_() for one in logits]
        with torch.enable_grad():
            value = loss(leaves, rows)
        for one, gradient in zip(logits, torch.autograd.grad(value, leaves), strict=True):
            one.copy_(gradient)
        return value.detach()

    return differentiated


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss_of_part: PartsLoss, weight: Tensor, *views: Tensor) -> Tensor:
        part, chunk_rows = _sizes(views[0], len(weight))
        w = weight.to(product_dtype(weight))
        inputs = [filled_rows(view, part, w.dtype) for view in views]  # [N', D] each
        gradients, grad_weight = [x.new_empty(x.shape, dtype=weight.dtype) for x in inputs], torch.zeros_like(weight)
        total = at_least_float32(weight.new_zeros(()))
        for chunk in _slices(len(inputs[0]), chunk_rows):
            logits = [x[chunk] @ w.t() for x in inputs]  # [C, V] each
            for rows in _slices(len(logits[0]), part):
                total += _differentiate(
                    loss_of_part, [one[rows] for one in logits], chunk.start + rows.start, len(views[0])
                )
            for x, one, gradient in zip(inputs, logits, gradients, strict=True):
                gradient[chunk] = one @ w
                if one.dtype == grad_weight.dtype:
                    grad_weight.addmm_(one.t(), x[chunk])  # a tenth of the whole head's time less than a sum apart
                else:
                    grad_weight += one.t() @ x[chunk]
        ctx.save_for_backward(grad_weight, *(gradient[: len(views[0])] for gradient in gradients))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, *(saved * gradient for saved in ctx.saved_tensors)


def _differentiate(loss_of_part: PartsLoss, logits: list[Tensor], start: int, n_rows: int) -> Tensor:
    """Let logits ``[n, V]`` become their gradients; return their loss.

    Args:
        loss_of_part: of rows that there are.
        logits: of each view, in the products' dtype.
        start: which row of all is the first one.
        n_rows: of all; what comes after them is filling, without loss.
    """
    real = min(len(logits[0]), n_rows - start)
    z = [at_least_float32(one[:real]) for one in logits]
    loss = loss_of_part(z, slice(start, start + real))
    for one, gradient in zip(logits, z, strict=True):
        if one.dtype != gradient.dtype:
            one[:real] = gradient
        one[real:] = 0
    return loss


def rows_at_once(device: torch.device, n_classes: int) -> int:
    """Return how many rows' logits may be held at a time: those of a chunk."""
    return max(16, _CHUNK[_kind(device)] // n_classes)


def _kind(device: torch.device) -> str:
    return "cpu" if device.type == "cpu" else "cuda"


def _sizes(view: Tensor, n_classes: int) -> tuple[int, int]:
    """Return the rows of a part and of a chunk.

    Products of bfloat16 are compiled for every number of rows anew on a CPU, so the numbers are such that few batches
    differ; but small batches are not filled up far beyond what they have.
    """
    kind = _kind(view.device)
    most = _PART[kind] // n_classes // 16 * 16
    part = max(16, min(most, -(-len(view) // 256) * 256))
    return part, max(1, _CHUNK[kind] // n_classes // part) * part


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))
