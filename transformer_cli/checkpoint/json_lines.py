"""Records as JSON lines, the last of which a crash may have cut off: reading and thinning out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint import durable
from transformer_cli.wording import counted


def read_records(
    path: Path, on_damage: Callable[[str], object] = lambda _: None, number: str = "step"
) -> list[dict[str, Any]]:
    """Return the records of a file that are whole; of no file: none.

    Args:
        path: the file.
        on_damage: told, at most once, where lines are that were passed over.
        number: the field without which, and without a number in it, a line is no record.
    """
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    found = [_record(line, number) for line in lines]
    damaged = [place for place, line in enumerate(lines) if line.strip() and found[place] is None]
    if damaged:
        more = f", and {counted(len(damaged) - 1, 'more line')}" if damaged[1:] else ""
        on_damage(f"{path}:{damaged[0] + 1}: is damaged and passed over{more}")
    return [record for record in found if record is not None]


def keep_records(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite a file, if it is there, with the wanted ones of its whole records, byte by byte as they were."""
    if path.exists():
        lines = path.read_bytes().split(b"\n")
        kept = [line for line in lines if (record := _record(line)) and wanted(record)]
        durable.write_file(path, b"".join(line + b"\n" for line in kept))


def _record(line: bytes, number: str = "step") -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        float(record[number])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return dict(record)
