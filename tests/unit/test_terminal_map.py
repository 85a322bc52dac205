"""Heat maps as text: what stands where."""

import numpy as np
import pytest
from rich.cells import cell_len

from transformer_cli.commands.terminal_map import terminal_map


def test_a_small_map() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.3]])
    assert terminal_map(weights, ["ab", "c"], ["x", "yz", "w"], 80) == [
        "     y",
        "   x z w",
        "ab ██",
        " c   ▒▒░░",
    ]


def test_wide_characters_keep_the_columns() -> None:
    lines = terminal_map(np.eye(2), ["你好", "a"], ["我", "b"], 80)
    assert lines == ["     我b", "你好 ██", "   a   ██"]
    assert cell_len(lines[1]) == cell_len(lines[2]) - 2


def test_what_does_not_fit_is_counted() -> None:
    lines = terminal_map(np.full((1, 50), 1.0), ["query"], [str(n) for n in range(50)], 26)
    assert lines[-1].strip() == "40 of 50 keys do not fit"
    assert all(cell_len(line) <= 34 for line in lines)


def test_long_labels_are_cut() -> None:
    lines = terminal_map(np.eye(1), ["a" * 40], ["b" * 40], 80)
    assert lines[-1] == f"{'a' * 15}… ██"
    assert len(lines) == 17


@pytest.mark.parametrize(
    ("weight", "shade"), [(0.0, ""), (0.19, ""), (0.2, "░░"), (0.99, "██"), (1.0, "██"), (1.0001, "██")]
)
def test_shades(weight: float, shade: str) -> None:
    assert terminal_map(np.array([[weight]]), ["q"], ["k"], 80)[-1] == f"q {shade}".rstrip()
