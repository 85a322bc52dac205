import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from transformer_cli.data.lines import iter_lines, open_input, read_lines
from transformer_cli.errors import DataError


def lenient(data: bytes) -> tuple[list[str], list[int]]:
    repaired: list[int] = []
    return list(iter_lines(io.BytesIO(data), repaired.append)), repaired


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\r", [""]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\n", [""]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"]),
    ],
)
def test_lines_end_at_newlines_only(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    assert read_lines(path) == lines
    assert lenient(data) == (lines, [])


def test_the_odd_corpus_comes_back_as_it_was_written(odd_corpus) -> None:
    assert read_lines(odd_corpus.src_path) == odd_corpus.src
    assert read_lines(odd_corpus.tgt_path) == odd_corpus.tgt


@pytest.mark.parametrize(
    ("data", "place", "what"),
    [
        (b"ok\n\xff\n", ":2", "invalid UTF-8 (byte 0xff)"),
        (b"\xef\xbb\xbfok\nok\nab\xc3", ":3", "invalid UTF-8 (byte 0xc3)"),
        (b"\xed\xa0\x80\n", ":1", "invalid UTF-8"),
        (b"ok\n\na\0b\n", ":3", "NUL"),
        ("UTF-16\n".encode("utf-16"), ":1", "UTF-16"),
        (b"a\0b\n\xff\n", ":1", "NUL"),
    ],
)
def test_strict_reading_names_file_and_line(tmp_path: Path, data: bytes, place: str, what: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert caught.value.where == f"{path}{place}"
    assert what in caught.value.what


def test_lenient_reading_repairs_and_tells_each_line_once() -> None:
    assert lenient(b"ok\na\xffb\xff\nc\0d\0\n\xff\0\nok") == (
        ["ok", "a\ufffdb\ufffd", "c\ufffdd\ufffd", "\ufffd\ufffd", "ok"],
        [2, 3, 4],
    )


def test_gzip_is_read_whatever_its_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed.txt", tmp_path / "plain.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbfa\r\nb"))
    plain.write_bytes(b"a\nb\n")
    assert read_lines(packed) == read_lines(plain) == ["a", "b"]
    with open_input(str(packed)) as stream:
        assert list(iter_lines(stream, pytest.fail)) == ["a", "b"]


def test_damaged_gzip_is_a_user_error(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(1000))
    path = tmp_path / "damaged.gz"
    for data in (whole[:-300], whole[:20] + b"\0\0\0\0" + whole[24:], whole[:2] + b"\xff" + whole[3:]):
        path.write_bytes(data)
        with pytest.raises(DataError, match="damaged gzip"):
            read_lines(path)
        with pytest.raises(DataError, match="damaged gzip"), open_input(str(path)) as stream:
            list(iter_lines(stream, lambda number: None))


def test_missing_files_and_folders_are_user_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_lines(tmp_path / "missing")
    with pytest.raises(DataError, match="Is a directory"):
        open_input(str(tmp_path))


def test_dash_is_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"x\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert open_input("-") is stdin.buffer


def test_a_line_is_yielded_before_the_next_one_exists() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as pipe:
        lines = iter_lines(stream, lambda number: None)
        watchdog = threading.Timer(10, pipe.close)  # a reader that waits for more ends in an error, not in a hang
        watchdog.start()
        for text in ("one", "two", "three"):
            pipe.write(f"{text}\n".encode())
            assert next(lines) == text
        watchdog.cancel()
        pipe.close()
        assert list(lines) == []


def test_named_pipes_work_packed_and_plain(tmp_path: Path) -> None:
    for number, data in enumerate((b"a\nb\n", gzip.compress(b"a\nb\n"))):
        fifo = tmp_path / f"fifo{number}"
        os.mkfifo(fifo)
        writer = threading.Thread(target=fifo.write_bytes, args=(data,))
        writer.start()
        assert read_lines(fifo) == ["a", "b"]
        writer.join()


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_by_its_first_bytes(tmp_path: Path, order: str) -> None:
    (tmp_path / "in.txt").write_bytes("\ufeffa dog\n".encode(order))
    with (
        open_input(str(tmp_path / "in.txt")) as stream,
        pytest.raises(DataError, match=r"in.txt:1: holds UTF-16") as told,
    ):
        list(iter_lines(stream, lambda number: None))
    assert "hint: convert the file: iconv -f UTF-16 -t UTF-8" in told.value.render()


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("text", "line"),
    [("One dog.\n", 1), ("Caf\u00e9 \u201copen\u201d all day\r\n", 1), ("\nA\nTwo dogs.\n", 3), ("a dog " * 999, 1)],
)
def test_utf_16_without_a_mark_is_refused_by_its_nuls(tmp_path: Path, order: str, text: str, line: int) -> None:
    (tmp_path / "in.txt").write_bytes(text.encode(order))
    with (
        open_input(str(tmp_path / "in.txt")) as stream,
        pytest.raises(DataError, match=rf"in.txt:{line}: holds UTF-16, as every second byte is NUL") as told,
    ):
        list(iter_lines(stream, lambda number: None))
    assert "hint: convert the file: iconv -f UTF-16LE -t UTF-8" in told.value.render()


@pytest.mark.parametrize(
    "data", [b"a\0b\0c\0\n", b"a\0" + b"plain text " * 9, b"\0" * 99, b"x" * 2000 + b"\n" + b"a\0" * 9]
)
def test_a_few_nuls_make_no_utf_16(data: bytes) -> None:
    lines, repaired = lenient(data)
    assert "\n".join(lines) == data.decode().removesuffix("\n").replace("\0", "\ufffd")
    assert repaired
