"""Records as JSON lines, the last of which a crash may have cut off: reading and thinning out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint import durable


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file that are whole and have a step; of no file: none."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [record for line in lines if (record := _record(line))]


def keep_records(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite a file, if it is there, with the wanted ones of its whole records, byte by byte as they were."""
    if path.exists():
        lines = path.read_bytes().split(b"\n")
        kept = [line for line in lines if (record := _record(line)) and wanted(record)]
        durable.write_file(path, b"".join(line + b"\n" for line in kept))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        float(record["step"])
    except (ValueError, KeyError, TypeError):
        return None
    return dict(record)
