"""The linear layer: one matrix product, and what makes it fast on a CPU.

Legend: N rows (all tokens of a batch), I inputs, O outputs of a layer.

Under bfloat16 autocast on a CPU the product is done in bfloat16 (with float32 sums inside), and the result is
bfloat16, as ``torch.autocast`` would have it. Everywhere else this is ``F.linear``.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

#: oneDNN compiles a kernel for every new number of rows (a seventh of a training step, measured), so rows are filled
#: up to a multiple of this.
_ROWS = 256


class Linear(nn.Linear):
    """y = x Wᵀ + b."""

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[..., O]`` for x ``[..., I]``."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x Wᵀ + b.

    Args:
        x: ``[..., I]``.
        weight: ``[O, I]``.
        bias: ``[O]`` or None.

    Returns:
        ``[..., O]``, in the dtype of ``product_dtype``.
    """
    if product_dtype(x) is torch.bfloat16 and x.device.type == "cpu":
        y: Tensor = _Bf16Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return y
    return F.linear(x, weight, bias)


def linear_together(x: Tensor, layers: Sequence[nn.Linear]) -> Sequence[Tensor]:
    """Apply several layers to the same x ``[..., I]`` in one product; three of width 128 take two thirds of the time.

    Returns:
        The outputs ``[..., O]`` of each layer.
    """
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers]) if layers[0].bias is not None else None
    return torch.split(linear(x, weight, bias), [layer.out_features for layer in layers], dim=-1)


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype in which autocast wants matrix products with x; without autocast its own."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class _Bf16Linear(torch.autograd.Function):
    """A linear layer whose three products (output, gradient of x, gradient of W) are in bfloat16.

    ``torch.autocast`` does the same with more copies, and meets a new number of rows in every batch.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows, w = filled_rows(x, _ROWS, torch.bfloat16), weight.bfloat16()  # [N, I], [O, I]
        ctx.save_for_backward(rows, w)
        ctx.x_dtype, ctx.has_bias = x.dtype, bias is not None
        y = rows @ w.t() if bias is None else torch.addmm(bias.bfloat16(), rows, w.t())
        return _unfilled(y, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        rows, w = ctx.saved_tensors
        (grad,) = grads  # [..., O]
        g = filled_rows(grad, _ROWS, torch.bfloat16)  # [N, O]
        grad_x = _unfilled(g @ w, grad).to(ctx.x_dtype) if ctx.needs_input_grad[0] else None
        grad_bias = g.sum(0).float() if ctx.has_bias else None
        return grad_x, (g.t() @ rows).float(), grad_bias


def filled_rows(x: Tensor, multiple: int, dtype: torch.dtype) -> Tensor:
    """Return x ``[..., I]`` as a matrix ``[N, I]``, N a multiple, with rows of zeros at its end."""
    n_rows = x.shape[:-1].numel()
    rows = x.new_empty(-(-n_rows // multiple) * multiple, x.size(-1), dtype=dtype)
    rows[:n_rows] = x.flatten(0, -2)
    rows[n_rows:] = 0
    return rows


def _unfilled(rows: Tensor, like: Tensor) -> Tensor:
    """Undo ``filled_rows``, with the leading dimensions of another tensor."""
    leading = like.shape[:-1]
    return rows[: leading.numel()].view(*leading, -1)
