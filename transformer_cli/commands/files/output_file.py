"""Files that the user asked for: complete or not there, packed if they are called ``.gz``, and nothing else touched."""

import gzip
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from transformer_cli.errors import NO_SPACE, DiskFull, UserError

_RECORDS = {"metrics.jsonl", "samples.jsonl", "scores.jsonl", "train.log", ".lock", "README.txt"}
_BESIDE = ("", ".part", ".part.json", ".part.json.new")  # what an output writes, and what stands there meanwhile
_KINDS = {".safetensors", ".model", ".bin", ".json", ".yaml"}


@contextmanager
def output_file(path: str | Path) -> Iterator[TextIO]:
    """Write a UTF-8 text file as ``output_bytes`` does. A name that ends in ``.gz`` gets a gzip file.

    Raises:
        UserError: the place cannot be written, or is a file of a run.
        DiskFull: there is no room; what was there before is intact.
    """
    with output_bytes(path) as raw, _text_into(raw, packed=str(path).endswith(".gz")) as file:
        yield file


@contextmanager
def output_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when the block ends without an exception.

    It is written beside its place under a name that nobody has. A symbolic link is followed; a device or a pipe, which
    cannot be replaced, is written to directly.

    Raises:
        UserError: the place cannot be written, or is a file of a run.
        DiskFull: there is no room; what was there before is intact.
    """
    refuse_file_of_run(path)
    target = Path(os.path.realpath(path))
    with explained(path):
        if is_special(path):
            with open(target, "wb") as file:
                yield file
            return
        descriptor, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
        try:
            with open(descriptor, "wb") as file:
                yield file
            os.chmod(part, permissions(target))
            os.replace(part, target)
        finally:
            with suppress(OSError):
                os.unlink(part)  # gone already if all went well


def refuse_file_of_run(path: str | Path) -> None:
    """Check that an output does not replace what a run or an export consists of.

    Raises:
        UserError: it would.
    """
    target = Path(os.path.realpath(path))
    places = (target.parent, target.parent.parent.parent)  # a checkpoint lies in checkpoints/step-N
    marked = any((place / mark).is_file() for place in places for mark in ("run.json", "export.json"))
    if marked and target.is_file() and (target.suffix in _KINDS or target.name in _RECORDS):
        raise UserError("is a file of a run, and would be replaced", where=str(path), hint="choose another --output")


def refuse_unwritable(path: Path) -> None:
    """Check now, and not after the minutes that its content may take, that a file can be written.

    Raises:
        UserError: there is no such folder, nothing can be written there, or a folder or a file of a run is there.
        DiskFull: there is no room.
    """
    if path.is_dir():
        raise UserError("is a folder", where=str(path), expected="the name of a file")
    if not path.parent.is_dir():
        raise UserError("there is no such folder", where=str(path.parent))
    refuse_file_of_run(path)
    if not is_special(path):
        with explained(path), tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))):
            pass


def refuse_replacing(output: str, read: Iterable[str | Path | None]) -> None:
    """Check that an output does not replace a file that the same command reads.

    Raises:
        UserError: it would.
    """
    written = {f"{os.path.realpath(output)}{ending}" for ending in _BESIDE}
    for path in read:
        if path not in (None, "-") and output != "-" and os.path.realpath(str(path)) in written:
            raise UserError("the output would replace the input", where=output, hint="choose another --output")


def is_special(path: str | Path) -> bool:
    """Return whether something is there that is no file, such as a device or a pipe: it cannot be replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Turn the system's errors about writing into messages.

    Raises:
        UserError: the place cannot be written.
        DiskFull: there is no room.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise DiskFull(str(path), "free some space; nothing was replaced") from error
        hint = "check the folder and its permissions, or choose another --output"
        raise UserError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error


@contextmanager
def _text_into(raw: BinaryIO, packed: bool) -> Iterator[TextIO]:
    """Open a file for text; a gzip file holds neither time nor name, so that equal text gives equal bytes."""
    file = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw
    with io.TextIOWrapper(cast(BinaryIO, file), encoding="utf-8", newline="\n") as text:
        yield text


def permissions(target: Path) -> int:
    """Return the permissions of the file to be replaced, or those that any new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
