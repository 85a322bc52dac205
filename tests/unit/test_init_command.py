"""``tfm init`` writes no recipe that cannot train, and the command that it prints can be pasted."""

import shlex
from pathlib import Path

import pytest

from transformer_cli.commands.init import write_recipe
from transformer_cli.errors import DataError


def files(folder: Path, src: str, tgt: str) -> tuple[str, str]:
    for name, text in (("my.en", src), ("my.de", tgt)):
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder / "my.en"), str(folder / "my.de")


@pytest.mark.parametrize(("src", "tgt"), [("", ""), ("\n\n", "\n\n"), ("a\n\n", " \nb\n")])
def test_files_without_a_pair_are_refused(tmp_path: Path, src: str, tgt: str) -> None:
    with pytest.raises(DataError, match="no pair with text on both sides"):
        write_recipe(*files(tmp_path, src, tgt), None, None, tmp_path / "my.yaml", False)
    assert not (tmp_path / "my.yaml").exists()


def test_blank_pairs_do_not_count_and_the_next_command_is_quoted(tmp_path: Path) -> None:
    output = tmp_path / "my recipe.yaml"
    told = write_recipe(*files(tmp_path, "a\n\nc\n", "x\ny\nz\n"), None, None, output, False)
    assert told.startswith(f"wrote {output}: a recipe for 2 pairs; so few pairs teach little but themselves")
    assert f"; next: tfm train --config {shlex.quote(str(output))} --dry-run" in told
    assert output.exists()


def test_a_file_is_no_translation_of_itself(tmp_path: Path) -> None:
    source, _ = files(tmp_path, "a\n", "b\n")
    with pytest.raises(DataError, match="same file"):
        write_recipe(source, source, "en", "de", tmp_path / "my.yaml", False)
