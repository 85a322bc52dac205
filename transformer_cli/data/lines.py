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
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from transformer_cli.errors import DataError

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks, which no UTF-8 text begins with
_GZIP = b"\x1f\x8b"  # never the start of UTF-8 text: the content decides, whatever the file is called
_NUL = "a NUL character"
_READ_ERRORS = (OSError, EOFError, zlib.error)  # the last two, and OSError without a number: damaged gzip


def open_input(path: str) -> BinaryIO:
    """Open a file for reading bytes; gzip is unpacked on the way and ``-`` is the standard input.

    Raises:
        DataError: the file is missing or cannot be opened.
    """
    return _standard_input() if path == "-" else _open(Path(path))


def read_lines(path: Path) -> list[str]:
    """Read all lines of a UTF-8 file; one trailing CR of a line and the BOM of the file are dropped.

    Raises:
        DataError: the file cannot be read, or a line holds invalid UTF-8 or NUL (named as ``file:line``).
    """
    data = _read_bytes(path).removeprefix(_BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _bad_byte(path, data, error.start, _invalid(data[error.start])) from None
    if "\0" in text:
        raise _bad_byte(path, data, data.index(b"\0"), _NUL)
    lines = text.split("\n")  # the same cuts as in the bytes: UTF-8 has 0x0a nowhere inside a character
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def stream_lines(path: Path) -> Iterator[str]:
    """Yield the lines that ``read_lines`` returns, as strictly; memory holds one of them.

    Raises:
        DataError: as of ``read_lines``.
    """
    with _open(path) as stream:
        for number, raw in enumerate(_raw_lines(stream), start=1):
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise _broken(path, number, _invalid(line[error.start])) from None
            if "\0" in text:
                raise _broken(path, number, _NUL)
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
            raise _broken(_name_of(stream), 1, "UTF-16, as its first bytes say")
        if first := first.removeprefix(_BOM):  # a file of a BOM alone is empty
            yield first
        while raw := stream.readline():
            yield raw
    except _READ_ERRORS as error:
        raise _unreadable(_name_of(stream), error) from None


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


def _read_bytes(path: Path) -> bytes:
    with _open(path) as stream:
        try:
            return stream.read()
        except _READ_ERRORS as error:
            raise _unreadable(path, error) from None


def _unreadable(where: object, error: Exception) -> DataError:
    if isinstance(error, OSError) and error.errno is not None:
        return DataError(f"cannot be read: {error.strerror}", where=str(where))
    return DataError("is a damaged gzip file", where=str(where), got=error)


def _invalid(byte: int) -> str:
    return f"invalid UTF-8 (byte 0x{byte:02x})"


def _bad_byte(path: Path, data: bytes, position: int, what: str) -> DataError:
    return _broken(path, data.count(b"\n", 0, position) + 1, what)


def _broken(path: Path | str, line: int, what: str) -> DataError:
    hint = "mend the line, or convert the file: iconv -f LATIN1 -t UTF-8 (or -f UTF-16)"
    return DataError(f"holds {what}", where=f"{path}:{line}", expected="UTF-8 text", hint=hint)
