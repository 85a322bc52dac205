"""Kernels on a GPU against float64 on a CPU; needs torch and this package's model and benchmark only."""

import pytest
import torch

from transformer_cli.benchmark import accuracy
from transformer_cli.benchmark.attention import Case, Shape, Unsupported, attempt, backend, make_inputs, prepare
from transformer_cli.benchmark.sparse import pattern_named

pytestmark = [pytest.mark.gpu, pytest.mark.skipif("not __import__('torch').cuda.is_available()")]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", ["naive", "sdpa", "flash", "cudnn", "efficient", "window", "dilated", "bigbird"])
def test_outputs_and_gradients_are_those_of_float64(kernel: str, causal: bool) -> None:
    shape = Shape(heads=4, batch=2, dtype="bfloat16", causal=causal, device="cuda", window=64)
    inputs = make_inputs(shape, 300)
    truth = accuracy.reference(inputs, causal=causal, pattern=pattern_named(kernel, 64))
    try:
        with backend(kernel):
            results = attempt(prepare(Case(kernel, "forward+backward", 300, shape), inputs))
    except Unsupported as reason:
        pytest.skip(str(reason))
    assert all(torch.isfinite(result).all() for result in results)
    assert accuracy.max_error(results, truth) < 0.1
