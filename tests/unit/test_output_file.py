"""What an output must not replace: what its command reads, and what a run or an export consists of."""

import gzip
import os
from pathlib import Path

import pytest

from transformer_cli.commands.files.output_file import output_file, refuse_file_of_run, refuse_replacing
from transformer_cli.commands.files.part_file import part_file
from transformer_cli.errors import UserError

RECORDS = ["metrics.jsonl", "samples.jsonl", "scores.jsonl", "train.log"]
OF_A_RUN = ["run.json", "config.yaml", "model.safetensors", "tokenizer.model", "confidence.json", *RECORDS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Something that looks like a run, with a checkpoint, an export and texts of its user."""
    names = [*OF_A_RUN, "checkpoints/step-1/ema.safetensors", "my.de", "my.jsonl"]
    names += ["ctranslate2/export.json", "ctranslate2/model.bin"]
    for name in names:
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old", encoding="utf-8")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "name", [*OF_A_RUN, "checkpoints/step-1/ema.safetensors", "ctranslate2/export.json", "ctranslate2/model.bin"]
)
def test_a_file_of_a_run_is_never_replaced(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(folder / name)
    for path in (folder / name, tmp_path / "link"):
        with pytest.raises(UserError, match="is a file of a run"), output_file(path) as file:
            file.write("new")
        with (
            pytest.raises(UserError, match="is a file of a run"),
            part_file(str(path), print, resume=False, overwrite=False) as part,
        ):
            part.write("new")
    assert (folder / name).read_text(encoding="utf-8") == "old"
    assert not list(folder.rglob("*.part*"))


@pytest.mark.parametrize("name", ["my.de", "my.jsonl", "new.json", "new.log", "checkpoints/step-1/my.de"])
def test_texts_and_new_files_may_lie_in_a_run(folder: Path, name: str) -> None:
    with output_file(folder / name) as file:
        file.write("new")
    assert (folder / name).read_text(encoding="utf-8") == "new"


def test_files_of_the_same_kinds_elsewhere_are_the_users(tmp_path: Path) -> None:
    for name in ("my.json", "train.log"):
        (tmp_path / name).touch()
        refuse_file_of_run(tmp_path / name)


def test_what_is_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").touch()
    (tmp_path / "link").symlink_to("text")
    out = str(tmp_path / "text")
    written = (out, f"{out}.part", f"{out}.part.json", f"{out}.part.json.new")
    for read in (*written, tmp_path / "text", tmp_path / "link"):
        with pytest.raises(UserError, match="replace the input"):
            refuse_replacing(out, (None, "-", read))
    with pytest.raises(UserError, match="replace the input"):
        refuse_replacing(str(tmp_path / "link"), (out,))
    refuse_replacing(out, (None, "-", tmp_path / "other", f"{out}.json"))
    refuse_replacing("-", ("-", out))
    monkeypatch.chdir(tmp_path)
    refuse_replacing("./-", ("-",))  # a file that is called so, and a standard stream
    refuse_replacing("-", ("./-",))


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_gets_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "old").touch()
        (tmp_path / "old").chmod(0o646)
        for name in ("old", "new"):
            with output_file(tmp_path / name) as file:
                file.write("a")
            with part_file(str(tmp_path / f"{name}-part"), print, resume=False, overwrite=False) as part:
                part.write("a")
        (tmp_path / "old-part").chmod(0o646)
        with part_file(str(tmp_path / "old-part"), print, resume=False, overwrite=False) as part:
            part.write("a")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    usual = 0o666 & ~mask
    assert modes == {"old": 0o646, "old-part": 0o646, "new": usual, "new-part": usual}


def test_a_gzip_file_tells_neither_when_nor_under_which_name_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "link.gz").symlink_to("plain")
    for name in ("a.gz", "link.gz"):
        with output_file(tmp_path / name) as file:
            file.write("text")
    packed = (tmp_path / "a.gz").read_bytes()
    assert gzip.decompress(packed) == b"text"
    assert packed[3:8] == bytes(5)  # no name, no time
    assert (tmp_path / "plain").read_bytes() == packed  # the name that was asked for decides


def test_a_name_may_be_as_long_as_the_system_lets_it_be(tmp_path: Path) -> None:
    with output_file(tmp_path / ("x" * 255)) as file:
        file.write("a")
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]
