"""The lists of phrases that ``tfm translate`` reads."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from transformer_cli.data.lines import read_lines
from transformer_cli.errors import DataError, UserError


def read_forbidden(path: Path) -> list[str]:
    """Read one phrase a line, spaces and all; blank lines are skipped.

    Raises:
        DataError: the file cannot be read, or holds none.
    """
    phrases = [line for line in read_lines(path) if line.strip()]
    if not phrases:
        raise DataError("holds no phrase", where=str(path), expected="a phrase a line")
    return phrases


def read_glossary(path: Path, check: Callable[[str], None]) -> dict[str, str]:
    """Read a term, a tab and its translation from each line, without white space around them; blank lines are skipped.

    Args:
        path: of the file.
        check: raises ``UserError`` for a translation that no model can be made to say.

    Raises:
        DataError: the file cannot be read, holds none, a line has not two columns, a term two translations, or a
            translation does not pass.
    """
    terms: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        cells, where = [cell.strip() for cell in line.split("\t")], f"{path}:{number}"
        if len(cells) != 2 or not all(cells):
            raise DataError(
                "is no entry of a glossary", where=where, got=line, expected="a term, a tab, its translation"
            )
        term, translation = cells
        if terms.setdefault(term, translation) != translation:
            got = f"{terms[term]!r} and {translation!r}"
            raise DataError(f"the term {term!r} has two translations", where=where, got=got)
        try:
            check(translation)
        except UserError as error:
            raise DataError.at(where, error) from None
    if not terms:
        raise DataError("holds no term", where=str(path), expected="a term, a tab, its translation")
    return terms


def digest(phrases: Sequence[str]) -> str:
    """Return what tells one list from another."""
    return hashlib.sha256("\n".join(phrases).encode()).hexdigest()[:16]
