"""The cache of what large corpora become: folders named by the hash of all they were made from.

It lies in ``$TFM_CACHE``, else ``$XDG_CACHE_HOME/transformer_cli``, else ``~/.cache/transformer_cli``, and may be
deleted at any time. A name that is a hash never goes out of date: an edited file or another tokenizer has another name.

Beside its files a folder has their hashes, and all are read and compared whenever it is used. It takes about a second
for a gigabyte, less than finding the name, for which the corpus itself is read. A size or a sample of blocks would not
notice a page that the disk has lost, and a run on wrong numbers looks like any other.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_cli.errors import NO_SPACE, DataError, DiskFull

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # only POSIX systems have it; elsewhere two makers may do the work twice
    _HAS_LOCKS = False

FORMAT = 1  # part of every key: raise it when the content of the folders changes
_TEMPORARY = ".tmp-"
_ABANDONED = 24 * 3600  # seconds without a write
_SUMS = "sha256.json"  # file -> hash


def cache_root() -> Path:
    """Return the folder of the cache; it need not exist."""
    if own := os.environ.get("TFM_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "transformer_cli"


def key_of(*parts: object, files: Sequence[Path] = ()) -> str:
    """Return the key of something made from these values and from the content of these files.

    Raises:
        DataError: a file cannot be read.
    """
    digest = hashlib.sha256(repr((FORMAT, *parts)).encode())
    for file in files:
        try:
            digest.update(bytes.fromhex(_sha256(file)))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=str(file)) from None
    return digest.hexdigest()[:32]


def cached(name: str, make: Callable[[Path], None], note: Callable[[str], None] = lambda text: None) -> Path:
    """Return a folder of the cache, made now if it is not there or damaged; it appears whole or not at all.

    Several processes may ask at once: one makes it, the others wait.

    Args:
        name: of the folder, with its key.
        make: fills an empty folder.
        note: told what is made anew, and why.

    Raises:
        DataError: the cache cannot be written.
        DiskFull: there is no room for it.
    """
    root = cache_root()
    folder = root / name
    if folder.is_dir() and _flaw_of(folder) is None:
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _alone(root / f"{name}.lock"):
            if folder.is_dir() and (flaw := _flaw_of(folder)) is not None:
                note(f"{flaw}; this part of the cache is made anew")
                _remove(folder)
            if not folder.is_dir():
                _make(root, folder, make)
    except OSError as error:
        hint = "choose another folder with the environment variable TFM_CACHE, or set data.memory to ram"
        if error.errno in NO_SPACE:
            raise DiskFull(str(root), f"free some space; nothing is lost; or {hint}") from None
        raise DataError(f"the cache cannot be written: {error.strerror or error}", where=str(root), hint=hint) from None
    return folder


def _make(root: Path, folder: Path, make: Callable[[Path], None]) -> None:
    _remove_leftovers(root, folder.name)
    made = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{folder.name}-", dir=root))
    try:
        make(made)
        sums = {file.name: _sha256(file) for file in sorted(made.iterdir())}
        (made / _SUMS).write_text(json.dumps(sums, indent=1))
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _flaw_of(folder: Path) -> str | None:
    """Say what is wrong with a finished folder: which file is not what was written."""
    try:
        sums = json.loads((folder / _SUMS).read_bytes())
        if not isinstance(sums, dict):
            raise ValueError("no mapping")
    except (OSError, ValueError):
        return f"{folder / _SUMS} is missing or damaged"
    for name, expected in sums.items():
        try:
            found = _sha256(folder / name)
        except OSError as error:
            return f"{folder / name} cannot be read ({error.strerror})"
        if found != expected:
            return f"{folder / name} is damaged: its content does not have the stored hash"
    return None


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remove(folder: Path) -> None:
    """Take a folder away at once; whoever has mapped its files keeps them until the end."""
    doomed = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=folder.parent))
    folder.rename(doomed / folder.name)
    shutil.rmtree(doomed, ignore_errors=True)


def _remove_leftovers(root: Path, name: str) -> None:
    """Remove the halves that killed makers have left.

    Those of this name are nobody's, for we hold its lock; others if nobody has used them for a day, as files tell.
    """
    for left in root.glob(f"{_TEMPORARY}{name}-*") if _HAS_LOCKS else ():
        shutil.rmtree(left, ignore_errors=True)
    for left in root.glob(f"{_TEMPORARY}*"):
        with suppress(OSError):  # its maker, or another one like us, is faster
            newest = max(path.stat().st_mtime for path in (left, *left.rglob("*")))
            if newest < time.time() - _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        if _HAS_LOCKS:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    lock.unlink(missing_ok=True)
