"""A heat map as text: a row for each query, a cell for each key, darker where more attention goes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

_SHADES = "  ░░▒▒▓▓██"
_WIDEST_LABEL = 16


def terminal_map(weights: NDArray[np.float32], queries: Sequence[str], keys: Sequence[str], width: int) -> list[str]:
    """Draw weights ``[T, S]``; keys stand above their columns from top to bottom.

    Args:
        weights: from 0 to 1.
        queries: labels of the rows.
        keys: labels of the columns.
        width: characters in a line of the terminal; columns beyond are left out, and it is said how many.
    """
    labels = [_fitted(label, max(map(cell_len, map(_cut, queries)))) for label in queries]
    room = max(1, (width - cell_len(labels[0]) - 1) // 2)
    shown = min(room, len(keys))
    margin = " " * (cell_len(labels[0]) + 1)
    lines = [f"{margin}{''.join(row)}".rstrip() for row in _upright(keys[:shown])]
    for label, row in zip(labels, weights, strict=True):
        lines.append(f"{label} {''.join(_shade(float(weight)) for weight in row[:shown])}".rstrip())
    if shown < len(keys):
        lines.append(f"{margin}{len(keys) - shown} of {len(keys)} keys do not fit")
    return lines


def _shade(weight: float) -> str:
    number = min(int(weight * (len(_SHADES) // 2)), len(_SHADES) // 2 - 1)
    return _SHADES[2 * number : 2 * number + 2]


def _upright(labels: Sequence[str]) -> list[list[str]]:
    """Return labels from top to bottom, each two characters wide, ending in the last row."""
    cut = [_cut(label) for label in labels]
    height = max(map(len, cut))
    return [[_two_wide(label.rjust(height)[row]) for label in cut] for row in range(height)]


def _two_wide(character: str) -> str:
    return character + " " * (2 - cell_len(character))


def _cut(label: str) -> str:
    """Return a label that is not too long; spaces are shown as SentencePiece shows them."""
    return label if len(label) <= _WIDEST_LABEL else label[: _WIDEST_LABEL - 1] + "…"


def _fitted(label: str, width: int) -> str:
    label = _cut(label)
    return " " * (width - cell_len(label)) + label
