"""Positional encodings against their formula, and at the ends of their range."""

import math

import numpy as np
import pytest
import torch

from transformer_cli.model.positions import LearnedPositions, SinusoidalPositions, sinusoidal_table
from transformer_cli.model.positions.table import Table


@pytest.mark.parametrize("pos", [0, 1, 7, 1000])
@pytest.mark.parametrize("i", [0, 1, 3])
def test_sinusoids_follow_the_formula(pos: int, i: int) -> None:
    d_model = 8
    table = sinusoidal_table(pos + 1, d_model)
    assert table[pos, 2 * i].item() == pytest.approx(math.sin(pos / 10000 ** (2 * i / d_model)), abs=1e-12)
    assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(pos / 10000 ** (2 * i / d_model)), abs=1e-12)


def test_a_shift_is_a_rotation_whatever_the_position() -> None:
    table = sinusoidal_table(60, 2)
    turn = torch.tensor([[math.cos(5), -math.sin(5)], [math.sin(5), math.cos(5)]], dtype=torch.float64)
    assert torch.allclose(table[5:], table[:-5] @ turn, atol=1e-12)  # sin(p + 5), cos(p + 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_sinusoids_do_not_depend_on_how_the_table_grew(dtype: torch.dtype) -> None:
    slow, fast = SinusoidalPositions(6), SinusoidalPositions(6)
    for length in (1, 5, 130, 3000):
        slow(torch.zeros(1, length, 6, dtype=dtype))
    x = torch.zeros(1, 3000, 6, dtype=dtype)
    assert torch.equal(slow(x), fast(x))
    assert torch.equal(fast(x)[0], sinusoidal_table(3000, 6).to(dtype))


def test_a_table_that_grows_word_by_word_is_computed_a_few_times_only() -> None:
    asked: list[int] = []
    table = Table(lambda n: asked.append(n) or torch.arange(n))
    for length in range(1, 1000):
        assert len(table.rows(length, torch.int64, torch.device("cpu"))) >= length
    assert asked == [128, 256, 512, 1024]


def test_a_change_of_dtype_rounds_afresh() -> None:
    positions = SinusoidalPositions(6)
    positions(torch.zeros(1, 4, 6, dtype=torch.bfloat16))
    assert torch.equal(positions.double()(torch.zeros(1, 4, 6).double())[0], sinusoidal_table(4, 6))


@pytest.mark.parametrize("positions", [SinusoidalPositions(6), LearnedPositions(10, 6)])
def test_each_row_may_have_a_position_of_its_own(positions: torch.nn.Module) -> None:
    x = torch.randn(2, 7, 6)
    alone = positions(x[:, [4, 2]].diagonal(dim1=0, dim2=1).T[:, None], np.array([4, 2]))
    assert torch.equal(alone[:, 0], torch.stack([positions(x)[0, 4], positions(x)[1, 2]]))


def test_sinusoids_add_no_parameter_and_nothing_to_save() -> None:
    positions = SinusoidalPositions(6)
    positions(torch.zeros(1, 4, 6))
    assert positions.state_dict() == {}


def test_sinusoids_need_an_even_width() -> None:
    with pytest.raises(ValueError, match="even d_model, got 5"):
        SinusoidalPositions(5)


@pytest.mark.parametrize(("at", "length"), [(None, 5), (np.array([4]), 1)])
def test_learned_positions_end_with_a_clear_error(at: np.ndarray | None, length: int) -> None:
    positions = LearnedPositions(4, 6)
    positions(torch.zeros(1, 4, 6))
    with pytest.raises(ValueError, match="end at 4 tokens, got a sequence of 5"):
        positions(torch.zeros(1, length, 6), at)
