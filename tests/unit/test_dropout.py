"""Dropout: how much it drops, what it scales, and what decides it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from transformer_cli.model.dropout import Dropout, add_dropped, dropout, dropout_stream


@pytest.mark.parametrize("p", [0.001, 0.1, 0.2, 0.5, 0.9, 0.999])
def test_share_and_scale_belong_together(p: float) -> None:
    torch.manual_seed(0)
    y = dropout(torch.ones(400_001), p)
    rounded = min(max(round(p * 256), 1), 255) / 256
    kept = y != 0
    assert torch.allclose(y[kept], torch.tensor(1 / (1 - rounded)))
    deviation = (rounded * (1 - rounded) / len(y)) ** 0.5
    assert abs((~kept).float().mean().item() - rounded) < 5 * deviation


def test_dropped_elements_do_not_cluster() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(1000, 1000), 0.5) != 0).double()
    for other in (kept.roll(1, 0), kept.roll(1, 1), kept.roll(8, 1)):
        assert abs(((kept - 0.5) * (other - 0.5)).mean().item()) < 0.25 * 5 / 1000  # five standard deviations
    assert (kept.mean(0) - 0.5).abs().max() < 0.5 * 6 / 1000**0.5


def test_the_seed_of_torch_decides_alone() -> None:
    x = torch.ones(1000)
    torch.manual_seed(3)
    np.random.seed(1)
    first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(3)
    np.random.seed(2)
    assert torch.equal(dropout(x, 0.5), first)
    assert torch.equal(dropout(x, 0.5), second)
    assert not torch.equal(first, second)


def test_the_state_of_torch_is_the_whole_state() -> None:
    x = torch.ones(1000)
    dropout(x, 0.5)
    state = torch.get_rng_state()
    expected = dropout(x, 0.5)
    torch.set_rng_state(state)
    assert torch.equal(dropout(x, 0.5), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_gradient_passes_the_same_mask(dtype: torch.dtype) -> None:
    x = torch.ones(3, 5, 7, dtype=dtype, requires_grad=True)
    y = dropout(x, 0.3)
    y.sum().backward()
    assert y.dtype == dtype
    assert torch.equal(x.grad, y.detach())


def test_none_in_evaluation_or_at_zero() -> None:
    x, module = torch.randn(50), Dropout(0.5)
    state = torch.get_rng_state()
    assert module.eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(module.train()(x), x)


def test_an_empty_tensor_and_a_single_element() -> None:
    assert dropout(torch.ones(0, 3), 0.5).shape == (0, 3)
    assert dropout(torch.ones(()), 0.5).item() in (0.0, 2.0)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_a_probability_out_of_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match=f"got {p}"):
        Dropout(p)


def test_the_printed_module_shows_its_probability() -> None:
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"


def test_a_stream_decides_alone_and_ends_with_its_context() -> None:
    x = torch.ones(100)
    with dropout_stream(1):
        first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(7)
    with dropout_stream(1):
        with dropout_stream(2):
            assert not torch.equal(dropout(x, 0.5), first)
        assert torch.equal(dropout(x, 0.5), first)
        assert torch.equal(dropout(x, 0.5), second)
    assert not torch.equal(first, second)
    drawn = dropout(x, 0.5)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.5), drawn)


def test_threads_do_not_share_a_stream() -> None:
    x = torch.ones(100)

    def draw(_: int) -> torch.Tensor:
        with dropout_stream(1):
            return torch.stack([dropout(x, 0.5) for _ in range(50)])

    expected = draw(0)
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(got, expected) for got in pool.map(draw, range(8)))


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_adding_what_was_dropped_is_dropping_and_adding(p: float) -> None:
    residual, x = torch.randn(4, 5), torch.randn(4, 5)
    with dropout_stream(1):
        expected = residual + dropout(x, p)
    with dropout_stream(1):
        torch.testing.assert_close(add_dropped(residual, x, p), expected)
