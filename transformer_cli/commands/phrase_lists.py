"""The lists of phrases that ``tfm translate`` reads."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.data.lines import read_lines
from transformer_cli.errors import DataError


def read_forbidden(path: Path) -> list[str]:
    """Read one phrase a line, spaces and all; blank lines are skipped.

    Raises:
        DataError: the file cannot be read, or holds none.
    """
    phrases = [line for line in read_lines(path) if line.strip()]
    if not phrases:
        raise DataError("holds no phrase", where=str(path), expected="a phrase a line")
    return phrases


def digest(phrases: Sequence[str]) -> str:
    """Return what tells one list from another."""
    return hashlib.sha256("\n".join(phrases).encode()).hexdigest()[:16]
