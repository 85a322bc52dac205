"""The linear layer: equal to torch's in float32, close to it in bfloat16, one product for several layers."""

import pytest
import torch
import torch.nn.functional as F

from transformer_cli.model.linear import Linear, linear, linear_together


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_autocast_it_is_torchs(bias: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer, x = Linear(8, 5, bias=bias).to(dtype), torch.randn(2, 3, 8, dtype=dtype)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("rows", [1, 255, 256, 300])
@pytest.mark.parametrize("bias", [True, False])
def test_bfloat16_products_are_close_in_value_and_gradients(rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = Linear(64, 32, bias=bias), torch.randn(rows, 2, 64, requires_grad=True)
    direction = torch.randn(rows, 2, 32)
    inputs = [x, *layer.parameters()]
    exact = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        low = layer(x)
    assert low.dtype == torch.bfloat16
    assert 0 < (low - exact).norm() < 0.01 * exact.norm()
    for got, expected in zip(
        torch.autograd.grad(low.float(), inputs, direction), torch.autograd.grad(exact, inputs, direction), strict=True
    ):
        assert got.dtype == torch.float32
        assert (got - expected).norm() < 0.01 * expected.norm()


def test_a_frozen_input_needs_no_gradient() -> None:
    layer = Linear(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(3, 4)).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("bias", [True, False])
def test_layers_together_give_what_each_gives(bias: bool) -> None:
    torch.manual_seed(0)
    layers = [Linear(8, width, bias=bias).double() for width in (4, 6, 1)]
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    for together, layer in zip(linear_together(x, layers), layers, strict=True):
        torch.testing.assert_close(together, linear(x, layer.weight, layer.bias), rtol=1e-12, atol=1e-12)
