"""Writing so that a crash at any instant leaves the old state or the new one, never a mixture.

Everything is written beside its place under a temporary name, fsynced and renamed; then the folder is fsynced.
Not here: what is written.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_cli.errors import NO_SPACE, DiskFull, RunError

_TEMPORARY = ".tmp-"
_OLD, _DOOMED = f"{_TEMPORARY}old-", f"{_TEMPORARY}doomed-"  # whole, until another takes its place; to be removed


def write_file(path: Path, content: bytes) -> None:
    """Write or replace one file."""
    temporary = path.with_name(f"{_TEMPORARY}{path.name}")
    with explained(path):
        try:
            _write_synced(temporary, content)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync(path.parent)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write or replace a folder of files as one thing."""
    temporary = path.with_name(f"{_TEMPORARY}{path.name}")
    with explained(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            for name, content in files.items():
                _write_synced(temporary / name, content)
            sync(temporary)
            move_into_place(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def new_folder(path: Path, option: str = "--run") -> Iterator[Path]:
    """Give the name of a folder beside ``path``, which is synced and renamed to it if the block ends well.

    Args:
        path: its place; where a link leads, if it is one.
        option: names it on the command line.

    Raises:
        DiskFull: there is no room; what was there before is intact.
        RunError: the place cannot be written.
    """
    place = followed(path)
    temporary = place.with_name(f"{_TEMPORARY}{place.name}")
    try:
        with explained(path, option):
            shutil.rmtree(temporary, ignore_errors=True)
            yield temporary
            for inside in [*temporary.rglob("*"), temporary]:
                sync(inside)
            move_into_place(temporary, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # left only if something went wrong


def move_into_place(finished: Path, path: Path) -> None:
    """Rename a finished folder to its place; what was there is moved aside first and then removed.

    A folder cannot be replaced in one step. Stopped between the two renames, nothing is at ``path``, and what was there
    lies beside it, where ``remove_temporaries`` puts it back: a checkpoint is. Nobody calls it beside a whole run.
    """
    old = path.with_name(f"{_OLD}{path.name}")
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
    os.rename(finished, path)
    sync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def followed(path: Path) -> Path:
    """Return where a link leads, and any other path as it is: what a link points to is replaced, and not the link."""
    return path.resolve() if path.is_symlink() else path


def append_line(path: Path, line: str) -> None:
    """Append a line; not fsynced, because a log may lose its end in a power cut."""
    with explained(path), path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(line + "\n")


def remove_folder(path: Path) -> None:
    """Remove a folder so that it disappears at once and not file by file."""
    doomed = path.with_name(f"{_DOOMED}{path.name}")
    with explained(path):
        shutil.rmtree(doomed, ignore_errors=True)
        os.rename(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_temporaries(folder: Path, is_ours: Callable[[Path], bool]) -> None:
    """Remove what an interrupted write has left; only the one who writes into the folder may call this.

    What had been moved aside for another, which did not come, goes back to its place.
    """
    with explained(folder):
        for path in sorted(filter(is_ours, folder.glob(f"{_TEMPORARY}*"))):
            place = path.with_name(path.name.removeprefix(_OLD))
            if place != path and not place.exists():
                os.rename(path, place)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def sync(path: Path) -> None:
    """Make the content of a file durable, or the renames inside a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path, option: str = "--run") -> Iterator[None]:
    """Turn the system's errors about writing into messages.

    Args:
        path: the place as the user knows it.
        option: names it on the command line.

    Raises:
        DiskFull: there is no room.
        RunError: the place cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            hint = "free some space; what was there before is intact"
            hint += ", and a run continues with --resume" if option == "--run" else ""
            raise DiskFull(str(path), hint) from error
        hint = f"check its permissions, or choose another folder with {option}"
        raise RunError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
