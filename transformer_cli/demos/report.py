"""What every demo is asked and what it returns: tables, sentences, and a way to draw them.

Not here: where pictures and documents go (``commands/demo.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.cells import cell_len

Note = Callable[[str], None]
Value = str | float | int | None


@dataclass(frozen=True)
class Wish:
    """What all demos can be asked for."""

    seed: int = 0
    run: Path | None = None  # for the demo that looks at one
    note: Note = lambda _: None


@dataclass(frozen=True)
class Table:
    """Numbers under their names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]

    def text(self) -> str:
        """Return the table for a reader: words to the left, numbers to the right."""
        cells = [list(self.columns), *([_shown(value) for value in row] for row in self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        words = [all(isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        lines = ["  ".join(map(_padded, line, widths, words)).rstrip() for line in cells]
        return "\n".join([self.title, *lines])

    def document(self) -> dict[str, object]:
        """Return it as JSON has it: a row by the names of its columns."""
        return {"title": self.title, "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows]}


@dataclass(frozen=True)
class DemoReport:
    """What a demo has shown."""

    name: str
    claim: str
    source: str  # of the claim
    tables: Sequence[Table]
    shown: Sequence[str]  # what the numbers say, a sentence each
    draw: Callable[[Any], None]  # into a figure of matplotlib
    drawings: Sequence[str] = ()  # the same as text, where that is possible
    size: tuple[float, float] = (11, 4.5)  # of the figure, inches
    letters: str = ""  # in the figure, that not every font has
    settings: dict[str, object] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report for a reader."""
        parts = [f"{self.claim}\n({self.source})", *self.drawings, *(table.text() for table in self.tables)]
        return "\n\n".join([*parts, "\n".join(self.shown)])

    def document(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        told = {"demo": self.name, "claim": self.claim, "source": self.source, "settings": self.settings}
        return told | {"tables": [table.document() for table in self.tables], "shown": list(self.shown)}


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return value if isinstance(value, str) else f"{value:,}"


def _padded(text: str, width: int, is_word: bool) -> str:
    room = " " * (width - cell_len(text))
    return text + room if is_word else room + text
