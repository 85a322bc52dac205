"""Compares what our modules and torch's own compute; how their weights correspond is in the package's benchmark."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_cli.benchmark.torch_model import Twins

#: Largest difference allowed, in outputs and in gradients.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def assert_same(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], inputs: Sequence[Tensor], twins: Twins
) -> None:
    """Compare outputs, and the gradients of a random function of them for inputs and parameters."""
    tolerance = TOLERANCE[inputs[0].dtype]

    def assert_close(left: Tensor, right: Tensor) -> None:
        torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)

    our_inputs, their_inputs = ([x.detach().clone().requires_grad_() for x in inputs] for _ in range(2))
    our_out, their_out = ours(*our_inputs), theirs(*their_inputs)
    assert_close(our_out, their_out)
    direction = torch.randn_like(our_out)
    for out in (our_out, their_out):
        (out * direction).sum().backward()
    for our_input, their_input in zip(our_inputs, their_inputs, strict=True):
        assert_close(our_input.grad, their_input.grad)
    for our_parameters, their_parameter in twins:
        assert_close(torch.cat([parameter.grad for parameter in our_parameters]), their_parameter.grad)
