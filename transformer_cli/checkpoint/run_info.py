"""``run.json``: what a run says of itself, readable without its model, and where runs lie.

Not here: everything else in a run folder, and who writes this file (``run_folder.py``).
"""

import json
from pathlib import Path
from typing import Any

from transformer_cli.errors import RunError

INFO = "run.json"
FORMAT = 1
#: Entries of run.json without which a run cannot be used, and their types.
_ENTRIES = {"format": int, "created": str, "tokenizer_sha256": str, "status": str, "step": int}


def run_folders(root: Path) -> list[Path]:
    """Return the run folders inside a folder; hidden ones are unfinished writes."""
    return sorted(file.parent for file in root.glob("*/run.json") if not file.parent.name.startswith("."))


def read_info(path: Path) -> dict[str, Any]:
    """Read ``run.json`` alone.

    Raises:
        RunError: there is no run, or it is of another format.
    """
    if not path.is_dir():
        raise RunError("there is no such run folder", where=str(path), hint="tfm runs lists the runs there are")
    try:
        info = json.loads((path / INFO).read_bytes())
        known = info["format"] == FORMAT
        wrong = [key for key, kind in _ENTRIES.items() if known and not isinstance(info[key], kind)]
    except FileNotFoundError:
        raise RunError("is not a run folder", where=str(path), expected=f"a file {INFO} in it") from None
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", where=str(path / INFO)) from None
    except KeyError as error:
        raise _damaged(path, f"no entry {error}") from None
    except (ValueError, TypeError, RecursionError):
        raise _damaged(path, "no JSON object") from None
    if wrong:
        raise _damaged(path, f"another type of value in {', '.join(wrong)}")
    if not known:
        raise RunError("was written in another format", where=str(path), got=info["format"], expected=FORMAT)
    return dict(info)


def _damaged(path: Path, got: str) -> RunError:
    needed = ", ".join(f"{key} ({kind.__name__})" for key, kind in _ENTRIES.items())
    hint = f"put it back from a copy of the run, or write one by hand: format {FORMAT}; the weights are in other files"
    return RunError("is damaged", where=str(path / INFO), got=got, expected=f"entries {needed}", hint=hint)
