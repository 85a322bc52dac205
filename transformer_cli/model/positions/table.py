"""Numbers that depend on a position alone, computed once and for as many positions as have been asked for."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

_FEWEST = 128


class Table:
    """Rows of a function of the position; they grow on demand, to any length.

    The function computes in float64 and rounding comes once, at the end, so a row never depends on how long the table
    is. Not a buffer of a module: there is nothing to save, and moving the model to another dtype must round afresh,
    not round the rounded.
    """

    def __init__(self, compute: Callable[[int], Tensor]) -> None:
        """Make an empty table of ``compute``, which returns the rows ``[n, ...]`` of positions 0, 1, …, n - 1."""
        self._compute = compute
        self._rows = torch.empty(0)

    def rows(self, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return at least the first n rows ``[>= n, ...]``."""
        rows = self._rows  # read once: another thread may put a shorter one in its place
        if len(rows) < n or rows.dtype != dtype or rows.device != device:
            size = 2 ** math.ceil(math.log2(max(n, _FEWEST)))
            with torch.inference_mode(False):  # a search may be what asks first, and training goes on with these rows
                self._rows = rows = self._compute(size).to(device, dtype, non_blocking=True)
        return rows
