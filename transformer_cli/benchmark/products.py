"""What this machine can multiply: the yardstick for everything else that is measured here.

Legend: n side of a square matrix.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_cli.benchmark.timing import Stopwatch

#: Sides of the square products whose best rate stands for the machine.
PRODUCT_SIZES = (256, 384, 512, 768, 1024, 1536, 2048)


def product_rates(
    device: torch.device,
    threads: int,
    sizes: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float32,
    repeats: int = 5,
) -> dict[int, float]:
    """Return the floating-point operations per second of square products by size: 2 n³ by the median time."""
    watches = {}
    for n in sizes or PRODUCT_SIZES:
        left, right = (torch.ones(n, n, device=device, dtype=dtype) for _ in range(2))
        watches[n] = Stopwatch(_product(left, right, torch.empty_like(left)), threads=threads, rounds=repeats)
    for _ in range(repeats):
        for watch in watches.values():
            watch.measure()
    return {n: 2 * n**3 / watch.timing().seconds for n, watch in watches.items()}


def _product(left: Tensor, right: Tensor, out: Tensor) -> Callable[[], object]:
    return lambda: torch.mm(left, right, out=out)
