"""Bytes to lines of text, and nothing else.

A line ends at ``\\n`` only. Python's own line splitting would also cut at a bare CR and ``str.splitlines`` at U+2028,
U+0085, VT, FF and others; one such character in one of two aligned files moves every pair behind it. Training data is
read strictly (``read_lines``, ``stream_lines``), text to be translated leniently and as a stream (``iter_lines``).
Not here: what the columns or fields of a line mean (``readers.py``).
"""

import gzip
import io
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from transformer_cli.errors import DataError

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks, which no UTF-8 text begins with
_LOOKED_AT = 1024  # bytes, in whose lines UTF-16 without a mark is looked for: the first may be too short to tell
_GZIP = b"\x1f\x8b"  # never the start of UTF-8 text: the content decides, whatever the file is called
_READ_ERRORS = (OSError, EOFError, zlib.error)  # the last two, and OSError without a number: damaged gzip


def open_input(path: str) -> BinaryIO:
    """Open a file for reading bytes; gzip is unpacked on the way and ``-`` is the standard input.

    Raises:
        DataError: the file is missing or cannot be opened.
    """
    return _standard_input() if path == "-" else _open(Path(path))


def read_lines(path: Path) -> list[str]:
    """Return all lines of a file; see ``stream_lines``, also for its errors."""
    return list(stream_lines(path))


def stream_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file; one trailing CR of a line and the BOM of the file are dropped.

    Raises:
        DataError: the file cannot be read, or a line holds invalid UTF-8 or NUL (named as ``file:line``).
    """
    with _open(path) as stream:
        lines = enumerate(_raw_lines(stream), start=1)
        for number, raw in lines:
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                text, fault = line.decode(), "a NUL character" if b"\0" in line else None
            except UnicodeDecodeError as error:
                text, fault = "", f"invalid UTF-8 (byte 0x{line[error.start]:02x})"
            if fault is not None:
                deque(lines, maxlen=0)  # read on: what comes out of a damaged gzip file is no text, and that is said
                hint = "mend the line, or convert the file: iconv -f LATIN1 -t UTF-8, if LATIN1 it is"
                raise _broken(path, number, fault, hint)
            yield text


def iter_lines(stream: BinaryIO, on_repair: Callable[[int], None]) -> Iterator[str]:
    """Yield each line as soon as its newline has arrived; memory holds one line.

    Args:
        stream: bytes, as ``open_input`` gives them.
        on_repair: called with the number of a line, from 1, in which invalid bytes or NUL became U+FFFD.

    Raises:
        DataError: reading fails, or the stream is damaged gzip.
    """
    for number, raw in enumerate(_raw_lines(stream), start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode(errors="replace")
            on_repair(number)
        else:
            if "\0" in text:
                on_repair(number)
        yield text.replace("\0", "\ufffd")


def _raw_lines(stream: BinaryIO) -> Iterator[bytes]:
    try:
        first = stream.readline()
        if first.startswith(_UTF_16):
            raise _broken(
                _name_of(stream), 1, "UTF-16, as its first bytes say", "convert the file: iconv -f UTF-16 -t UTF-8"
            )
        line, number, seen = first.removeprefix(_BOM), 1, 0  # a file of a BOM alone is empty
        while line and seen < _LOOKED_AT:
            if _looks_like_utf_16(line[:_LOOKED_AT]):
                hint = "convert the file: iconv -f UTF-16LE -t UTF-8 (or -f UTF-16BE)"
                raise _broken(_name_of(stream), number, "UTF-16, as every second byte is NUL", hint)
            yield line
            seen += len(line)
            line, number = stream.readline(), number + 1
        while line:
            yield line
            line = stream.readline()
    except _READ_ERRORS as error:
        raise _unreadable(_name_of(stream), error) from None


def _looks_like_utf_16(line: bytes) -> bool:
    """Say whether a line is UTF-16 of mostly Latin letters: one half of each is NUL, and always the same one."""
    line = line.rstrip(b"\r\n")  # of the newline the other half may begin the next line
    nuls, others = sorted((line[0::2].count(0), line[1::2].count(0)), reverse=True)
    return nuls >= 4 and nuls >= 3 * len(line) // 8 and not others


def _name_of(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)  # the standard input's is a number
    return name if isinstance(name, str) else "the standard input"


def _standard_input() -> BinaryIO:
    """Return a reader of our own: Python aborts at exit while a daemon thread waits inside the buffer of sys.stdin."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except io.UnsupportedOperation:  # no file behind it, as in a program that replaced sys.stdin
        return sys.stdin.buffer


class _GzipInput(gzip.GzipFile):
    """Closes the file below it too; ``gzip.open`` of an open file leaves it open."""

    def __init__(self, below: BufferedReader) -> None:
        super().__init__(fileobj=below)
        self._below = below

    def close(self) -> None:
        super().close()
        self._below.close()


def _open(path: Path) -> BinaryIO:
    try:
        stream = path.open("rb")
        packed = stream.peek(len(_GZIP)).startswith(_GZIP)  # peeking works on pipes, seeking does not
    except OSError as error:
        raise _unreadable(path, error) from None
    return cast(BinaryIO, _GzipInput(stream)) if packed else stream


def _unreadable(where: object, error: Exception) -> DataError:
    if isinstance(error, OSError) and error.errno is not None:
        return DataError(f"cannot be read: {error.strerror}", where=str(where))
    return DataError("is a damaged gzip file", where=str(where), got=error)


def _broken(path: Path | str, line: int, what: str, hint: str) -> DataError:
    return DataError(f"holds {what}", where=f"{path}:{line}", expected="UTF-8 text", hint=hint)
