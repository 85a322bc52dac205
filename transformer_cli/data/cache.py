"""The cache of what large corpora become: folders named by the hash of all they were made from.

It lies in ``$TFM_CACHE``, else ``$XDG_CACHE_HOME/transformer_cli``, else ``~/.cache/transformer_cli``, and may be
deleted at any time. A name that is a hash never goes out of date: an edited file or another tokenizer has another name.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_cli.errors import DataError

FORMAT = 1  # part of every key: raise it when the content of the folders changes
_BLOCK = 1 << 20
_TEMPORARY = ".tmp-"
_ABANDONED = 24 * 3600  # seconds without a write


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
        content = hashlib.sha256()
        try:
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    content.update(block)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", where=str(file)) from None
        digest.update(content.digest())
    return digest.hexdigest()[:32]


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, made now if it is not there; it appears whole or not at all.

    Several processes may ask at once: one makes it, the others wait.

    Args:
        name: of the folder, with its key.
        make: fills an empty folder.

    Raises:
        DataError: the cache cannot be written.
    """
    root = cache_root()
    folder = root / name
    if folder.is_dir():
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _alone(root / f"{name}.lock"):
            if not folder.is_dir():
                _make(root, folder, make)
    except OSError as error:
        hint = "choose another folder with the environment variable TFM_CACHE, or set data.memory to ram"
        raise DataError(f"the cache cannot be written: {error.strerror or error}", where=str(root), hint=hint) from None
    return folder


def _make(root: Path, folder: Path, make: Callable[[Path], None]) -> None:
    _remove_leftovers(root)
    made = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{folder.name}-", dir=root))
    try:
        make(made)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_leftovers(root: Path) -> None:
    """Remove the halves that killed makers have left: nobody has used them for a day, as their files tell."""
    for left in root.glob(f"{_TEMPORARY}*"):
        with suppress(OSError):  # its maker, or another one like us, is faster
            newest = max(path.stat().st_mtime for path in (left, *left.rglob("*")))
            if newest < time.time() - _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        try:
            import fcntl  # only POSIX systems have it; elsewhere two makers may do the work twice
        except ImportError:
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    lock.unlink(missing_ok=True)
