"""An output file that grows under a known name, so that whatever stops the work, it can be continued.

Beside ``out.txt`` stand, until it is complete, ``out.txt.part`` with the results and ``out.txt.part.json``, its record:
which job writes here, and after how many lines of input, with which hash, the part was how many bytes long. The record
is replaced after the results are written. So what a continued job finds behind the recorded length, a torn line maybe,
is cut off and made again, whatever the format is, and a kill at any instant costs one window of lines at most.

The part is plain text even if the output is called ``.gz``: packed bytes could neither be cut nor be the same again.
Not here: outputs that are no file or need no record (``output_file.py``).
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from transformer_cli.commands.files.output_file import explained, output_file, permissions, refuse_file_of_run
from transformer_cli.commands.shared.notes import Note
from transformer_cli.errors import UserError
from transformer_cli.wording import counted, spelled

#: No input helps where nobody can know any more which lines are answered.
_ANEW = "--overwrite throws it away and begins anew"

Job = Mapping[str, Any]  # what the results depend on besides the input, by the names that the user knows


@dataclass(frozen=True)
class Record:
    """How far a job has come."""

    job: Job
    lines: int = 0  # of the input, answered
    sha256: str = hashlib.sha256().hexdigest()  # of these lines
    bytes: int = 0  # of the part


class PartFile:
    """The growing file; made by ``part_file``."""

    def __init__(self, path: str, file: BinaryIO, note: Note, *, overwrite: bool) -> None:
        self._overwrites = overwrite
        self._path, self._target, self._file, self._note = path, Path(os.path.realpath(path)), file, note
        self._digest, self._record = hashlib.sha256(), Record({})
        self._begun: Job | None = None
        self._is_new = os.fstat(file.fileno()).st_size == 0

    def begin(self, job: Callable[[], Job], lines: Iterator[str]) -> int:
        """Go to where an interrupted job has stopped; return how many lines of the input are answered.

        Args:
            job: tells what the results depend on besides the input.
            lines: the input, of which the answered lines are taken.

        Raises:
            UserError: what is there belongs to another job or another input, or is damaged.
        """
        described = job()
        if self._overwrites or self._is_new:
            self._begun = described  # nothing is thrown away before there is something to put in its place
            return 0
        found = _read_record(self._target)
        _refuse_other_job(found.job, described, _part(self._target))
        if os.fstat(self._file.fileno()).st_size < found.bytes:
            raise _unusable(self._target, "is shorter than its record says", _ANEW)
        self._take_answered(lines, found)
        self._file.truncate(found.bytes)
        self._file.seek(found.bytes)
        self._record = found
        self._note(f"continuing {_part(self._target)} after {counted(found.lines, 'line')}")
        return found.lines

    def _take_answered(self, lines: Iterator[str], found: Record) -> None:
        """Take the answered lines of the input, which have to be those of the record."""
        read = self._digest_lines(islice(lines, found.lines))
        hint = "give the same input, or throw it away with --overwrite"
        if read < found.lines:
            ends = f"answers {counted(found.lines, 'line')}, and this input ends after {counted(read, 'line')}"
            raise _unusable(self._target, ends, hint)
        if self._digest.hexdigest() != found.sha256:
            differ = f"belongs to another input: its first {counted(found.lines, 'line')} differ"
            raise _unusable(self._target, differ, hint)

    def write(self, text: str) -> None:
        """Add results."""
        self._start_anew()
        self._file.write(text.encode("utf-8", "replace"))

    def mark(self, lines: Sequence[str]) -> None:
        """Record that these next lines of the input are answered."""
        self._start_anew()
        self._file.flush()
        self._digest_lines(lines)
        done = self._record.lines + len(lines)
        self._store(Record(self._record.job, done, self._digest.hexdigest(), self._file.tell()))

    def finish(self) -> None:
        """Put the complete file in its place."""
        self._start_anew()
        self._file.flush()
        if self._path.endswith(".gz"):
            with output_file(self._path) as packed:
                self._file.seek(0)
                shutil.copyfileobj(self._file, packed.buffer)
            _part(self._target).unlink()
        else:
            os.chmod(_part(self._target), permissions(self._target))
            os.replace(_part(self._target), self._target)
        with suppress(OSError):
            _record_path(self._target).unlink()

    def abandon(self) -> None:
        """Leave what can be continued, and nothing if nothing was done."""
        if self._is_new and not self._record.lines:
            for path in (_record_path(self._target), _part(self._target)):
                with suppress(OSError):
                    path.unlink()
        elif self._record.lines:
            done = counted(self._record.lines, "line")
            self._note(f"{done} answered in {_part(self._target)}; the same command with --resume continues there")

    def _start_anew(self) -> None:
        if self._begun is not None:
            self._file.truncate(0)
            self._is_new = True
            self._store(Record(self._begun))
            self._begun = None

    def _digest_lines(self, lines: Iterable[str]) -> int:
        """Add lines to the hash; return how many there were."""
        count = 0
        for line in lines:
            self._digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
            count += 1
        return count

    def _store(self, record: Record) -> None:
        path = _record_path(self._target)
        beside = path.with_name(f"{path.name}.new")
        try:
            beside.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        self._record = record


@contextmanager
def part_file(path: str, note: Note, *, resume: bool, overwrite: bool) -> Iterator[PartFile]:
    """Open the part of an output file, and put it in its place when the block ends without an exception.

    Args:
        path: the output; a symbolic link is followed.
        note: told where a job goes on, and how an interrupted one can.
        resume: continue what an interrupted job has left, if there is something.
        overwrite: throw it away.

    Raises:
        UserError: an interrupted job has left something and neither is asked for, another process writes this
            output, or the place cannot be written.
        DiskFull: there is no room; what was there before and what is translated are intact.
    """
    refuse_file_of_run(path)
    target = Path(os.path.realpath(path))
    with explained(path), _open_locked(_part(target), permissions(target)) as file:
        is_new = not os.fstat(file.fileno()).st_size
        if is_new and _record_path(target).exists():
            _refuse_foreign(target)
        if not resume and not overwrite and not is_new:
            raise UserError(
                "an interrupted job has left results here",
                where=str(_part(target)),
                hint="--resume continues it, --overwrite throws it away and starts anew",
            )
        growing = PartFile(path, file, note, overwrite=overwrite)
        try:
            if resume and is_new:
                note(f"there is no unfinished {_part(target)}: starting with the first line")
            yield growing
            growing.finish()
        except BaseException:
            growing.abandon()
            raise


def _open_locked(part: Path, mode: int) -> BinaryIO:
    """Open a file to read and write, for this process alone; the system takes the lock away when it ends, however."""
    while True:
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, mode), "r+b")
        try:
            _lock(file, part)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(part)):
                return file
        except FileNotFoundError:
            pass  # the other process finished, and its file has moved away, between our opening and our lock
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: BinaryIO, part: Path) -> None:
    try:
        import fcntl  # only POSIX systems have it; elsewhere nothing is locked
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        hint = "wait for it, or choose another --output"
        raise UserError("another process writes this output", where=str(part), hint=hint) from None


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _record_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.json")


def _read_record(target: Path) -> Record:
    try:
        found = Record(**json.loads(_record_path(target).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise _unusable(target, f"has no record: {_record_path(target).name} is missing", _ANEW) from None
    except (OSError, ValueError, TypeError, RecursionError):
        raise _unusable(target, f"has no readable record: {_record_path(target).name} is damaged", _ANEW) from None
    types = {"job": dict, "lines": int, "sha256": str, "bytes": int}
    right = all(type(getattr(found, name)) is kind for name, kind in types.items())
    if not right or not all(0 <= number <= sys.maxsize for number in (found.lines, found.bytes)):
        raise _unusable(target, f"has no readable record: {_record_path(target).name} is damaged", _ANEW)
    return found


def _refuse_other_job(theirs: Job, ours: Job, part: Path) -> None:
    differing = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if differing:
        raise UserError(
            "belongs to another job",
            where=str(part),
            got=", ".join(f"{name} {spelled(ours.get(name))}" for name in differing),
            expected=", ".join(f"{name} {spelled(theirs.get(name))}" for name in differing) + ", as it was begun",
            hint="give the same settings and run, or throw it away with --overwrite",
        )


def _refuse_foreign(target: Path) -> None:
    """Check that the record of an output whose part is gone or empty is one of ours, left by a kill, and no other file.

    Raises:
        UserError: it is something else.
    """
    try:
        _read_record(target)
    except UserError:
        _part(target).unlink()  # empty, and made by us
        where, hint = str(_record_path(target)), "move it away, or choose another --output"
        raise UserError("is in the way: the record of the output would replace it", where=where, hint=hint) from None


def _unusable(target: Path, what: str, hint: str) -> UserError:
    return UserError(f"cannot be continued: it {what}", where=str(_part(target)), hint=hint)
