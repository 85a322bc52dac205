"""What other kernels are compared with is no slower than torch's own products and softmax."""

import time
from collections.abc import Callable
from statistics import median

import pytest

from transformer_cli.benchmark.attention import PASSES, Case, Shape, backend, make_inputs, prepare


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("direction", PASSES)
def test_naive_takes_at_most_a_tenth_more_than_torchs_math_kernel(direction: str, causal: bool) -> None:
    """CPU time in turn, so that neighbours on the machine slow both."""
    shape = Shape(heads=4, causal=causal)
    inputs, ratios = make_inputs(shape, 1024), []
    naive, math = (prepare(Case(kernel, direction, 1024, shape), inputs) for kernel in ("naive", "math"))
    for number in range(9):
        ours = cpu_seconds(naive)
        with backend("math"):
            theirs = cpu_seconds(math)
        if number:  # the first round loads the code
            ratios.append(ours / theirs)
    assert median(ratios) <= 1.1
