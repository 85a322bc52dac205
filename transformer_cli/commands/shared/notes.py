"""Notes to the user on stderr, apart from results on stdout."""

import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from os import PathLike, fspath

from transformer_cli.wording import counted

Note = Callable[[str], None]


def note_on_stderr(quiet: bool) -> Note:
    """Return a function that prints a note, or nothing at all if the user asked for quiet."""
    return (lambda text: None) if quiet else _print_note


def _print_note(text: str) -> None:
    with suppress(OSError):  # whoever read stderr may be gone, or its disk full: no reason to lose the work
        print(text, file=sys.stderr, flush=True)


def written(path: str | PathLike[str], content: str = "") -> str:
    """Return the note on a file that is now there, the same for all commands: its place, and what it holds."""
    return f"wrote {fspath(path)}: {content}" if content else f"wrote {fspath(path)}"


class LineNotes:
    """Things that happened to single lines, counted per kind and told once with the lines' numbers."""

    SHOWN = 10

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)

    def add(self, kind: str, line: int) -> None:
        """Note that ``kind`` happened to a line (from 1)."""
        self._counts[kind] += 1
        if len(self._lines[kind]) < self.SHOWN:
            self._lines[kind].append(line)

    def tell(self, note: Note) -> None:
        """Print one note per kind."""
        for kind, count in list(self._counts.items()):  # the input's reader may still add some
            numbers = ", ".join(map(str, self._lines[kind])) + (", ..." if count > self.SHOWN else "")
            note(f"warning: {counted(count, 'line')} {kind}: line{'s' * (count > 1)} {numbers}")
