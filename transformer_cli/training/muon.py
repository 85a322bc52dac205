"""Muon: momentum made orthogonal before it moves the weights, for the matrices inside the layers.

A momentum matrix M = U S Vᵀ has a few large singular values and many small ones, so a step along it turns the weights
in a few directions only. Muon steps along about U Vᵀ instead, as far in every direction (Jordan et al. 2024, "Muon: An
optimizer for hidden layers in neural networks", https://kellerjordan.github.io/posts/muon/).

Legend: N matrices of one shape, R rows, C columns, R <= C.

Which parameters are such matrices, and the AdamW of all the others, is in ``optimizer.py``.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

#: Of Jordan et al. 2024: steep at zero, where small singular values start, and they end between about 0.7 and 1.2.
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 5
#: The usual root mean square of AdamW's updates (Liu et al. 2025, "Muon is scalable for LLM training").
ADAMW_RMS = 0.2
_SMALLEST_NORM = 1e-7  # a gradient of zeros stays zero instead of becoming NaN
#: Matrices in one product on a CPU: eight of 128 x 128, and all that is made of them, stay in a core's cache, which is
#: a tenth faster than all at once. A GPU takes all.
_AT_ONCE = 8


class Muon(Optimizer):
    """Momentum, made orthogonal by five Newton-Schulz iterations.

    For a matrix W with rows x columns, its gradient G and its momentum M, at the learning rate η::

        M ← μ M + (1 - μ) G
        O ← newton_schulz((1 - μ) G + μ M)                    # Nesterov
        W ← (1 - η λ) W - η · 0.2 √max(rows, columns) · O

    The factor gives O the root mean square of AdamW's updates (Liu et al. 2025), so that one learning rate and one
    weight decay serve both. Jordan's own, √max(1, rows / columns), makes steps of another size than AdamW's: every
    recipe would need two learning rates.
    """

    def __init__(
        self, matrices: Iterable[Tensor], *, momentum: float, weight_decay: float, dtype: torch.dtype | None = None
    ) -> None:
        """Take over the matrices; the learning rate ``lr`` of the group is set before every step.

        Args:
            matrices: two-dimensional parameters.
            momentum: μ.
            weight_decay: λ, decoupled.
            dtype: of the iterations' products; None: that of the matrices. bfloat16 is enough (Jordan et al. 2024), as
                the singular values end near 1 and not at it, and halves the time on a CPU with AMX.
        """
        self._dtype = dtype
        super().__init__(list(matrices), {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # nobody passes a closure
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            if matrices := [matrix for matrix in group["params"] if matrix.grad is not None]:
                updates = orthogonal_updates(self._nesterov(matrices, group["momentum"]), self._dtype)
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, updates, alpha=-group["lr"])

    def _nesterov(self, matrices: Sequence[Tensor], momentum: float) -> Sequence[Tensor]:
        """Renew the momenta; return what they will be after the next gradient, should it equal this one."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - momentum)
        return torch._foreach_lerp(gradients, momenta, momentum)


def orthogonal_updates(directions: Sequence[Tensor], dtype: torch.dtype | None = None) -> list[Tensor]:
    """Return the matrices made orthogonal and scaled to the size of AdamW's updates, each in its own shape.

    Equal shapes share batched products: several CPU threads divide those among themselves, whereas a product of two
    matrices as small as 128 x 128 is done by one.

    Args:
        directions: of any shapes.
        dtype: of the iterations' products; None: that of the directions.
    """
    shapes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, matrix in enumerate(directions):
        shapes[tuple(sorted(matrix.shape))].append(index)
    updates = list(directions)
    for (_, columns), indices in shapes.items():
        at_once = _AT_ONCE if directions[indices[0]].device.type == "cpu" else len(indices)
        for start in range(0, len(indices), at_once):
            part = indices[start : start + at_once]
            stack = torch.stack([_lying(directions[index]) for index in part])  # [N, R, C]
            stack = newton_schulz(stack, dtype).mul_(ADAMW_RMS * columns**0.5)
            for index, update in zip(part, stack, strict=True):
                updates[index] = update if update.shape == directions[index].shape else update.T
    return updates


def _lying(matrix: Tensor) -> Tensor:
    rows, columns = matrix.shape
    return matrix if rows <= columns else matrix.T


def newton_schulz(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return matrices ``[N, R, C]`` with the singular vectors of x, all singular values near 1.

    Each iteration multiplies x by a I + b x xᵀ + c (x xᵀ)², which maps a singular value s to a s + b s³ + c s⁵. Rows
    are the shorter side, so that the squares ``x xᵀ`` are small.

    Args:
        x: ``[N, R, C]``, R <= C.
        dtype: of the iterations; None: that of x, which the result has in any case.
    """
    a, b, c = COEFFICIENTS
    before = x.dtype
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp(min=_SMALLEST_NORM)  # now no s exceeds 1
    x = x.to(dtype or before)
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # [N, R, R]
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # [N, R, R]
        # On the diagonal rather than as baddbmm's third summand, which is copied first: a tenth of the whole time.
        polynomial.diagonal(dim1=1, dim2=2).add_(a)
        x = polynomial @ x  # [N, R, C]
    return x.to(before)
