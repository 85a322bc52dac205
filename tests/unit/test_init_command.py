"""``tfm init`` writes no recipe that cannot train, and the command that it prints can be pasted."""

import shlex
from pathlib import Path

import pytest

from transformer_cli.cli import main
from transformer_cli.commands.init import write_recipe
from transformer_cli.config import Source
from transformer_cli.errors import ConfigError, DataError, UserError
from transformer_cli.recipe import load_recipe


def files(folder: Path, src: str, tgt: str) -> dict[str, str]:
    for name, text in (("my.en", src), ("my.de", tgt)):
        (folder / name).write_text(text, encoding="utf-8")
    return {"src": str(folder / "my.en"), "tgt": str(folder / "my.de")}


@pytest.mark.parametrize(("src", "tgt"), [("", ""), ("\n\n", "\n\n"), ("a\n\n", " \nb\n")])
def test_files_without_a_pair_are_refused(tmp_path: Path, src: str, tgt: str) -> None:
    with pytest.raises(DataError, match="no pair with text on both sides"):
        write_recipe(files(tmp_path, src, tgt), (None, None), tmp_path / "my.yaml", False)
    assert not (tmp_path / "my.yaml").exists()


def test_blank_pairs_do_not_count_and_the_next_command_is_quoted(tmp_path: Path) -> None:
    output = tmp_path / "my recipe.yaml"
    told = write_recipe(files(tmp_path, "a\n\nc\n", "x\ny\nz\n"), (None, None), output, False)
    assert told.startswith(f"wrote {output}: a recipe for 2 pairs; so few pairs teach little but themselves")
    assert f"; next: tfm train --config {shlex.quote(str(output))} --dry-run" in told
    assert output.exists()


def test_a_file_is_no_translation_of_itself(tmp_path: Path) -> None:
    source = files(tmp_path, "a\n", "b\n")["src"]
    with pytest.raises(DataError, match="same file"):
        write_recipe({"src": source, "tgt": source}, ("en", "de"), tmp_path / "my.yaml", False)


def test_every_choice_of_a_comment_can_be_taken(tmp_path: Path) -> None:
    output = tmp_path / "my.yaml"
    write_recipe(files(tmp_path, "a\n", "b\n"), (None, None), output, False)
    choices = {
        line.split(":")[0].strip(): line.split("# ")[1].split(": ")[0].split(" | ")
        for line in output.read_text(encoding="utf-8").partition("  attention:\n")[2].splitlines()[:3]
    }
    assert choices["decoder"] == ["naive", "sdpa", "flash", "sparse"]
    for place, kernels in choices.items():
        for kernel in kernels:
            recipe = load_recipe(str(output), [f"model.attention.{place}={kernel}"])
            assert getattr(recipe.model.attention, place) == kernel


@pytest.mark.parametrize(
    ("name", "text"),
    [("tsv", "a\tx\tCC-BY\n\ty\t\nc\tz\t\n"), ("jsonl", '{"en": "a", "de": "x"}\n{"en": "c", "de": "z"}\n')],
)
def test_pairs_in_one_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "pairs").write_text(text, encoding="utf-8")
    given, output = {name: str(tmp_path / "pairs")}, tmp_path / "my.yaml"
    assert ": a recipe for 2 pairs;" in write_recipe(given, ("en", "de"), output, False)
    data = load_recipe(str(output)).data
    assert data.train == Source.model_validate(given)
    assert (data.src_lang, data.tgt_lang) == ("en", "de")
    with pytest.raises(ConfigError, match="which languages are in the file is not known"):
        write_recipe(given, ("en", None), output, True)


@pytest.mark.parametrize(
    "given", [[], ["--src", "a.en"], ["--tgt", "a.de"], ["--tsv", "a", "--jsonl", "b"], ["--src", "a", "--tsv", "b"]]
)
def test_pairs_are_in_two_files_or_in_one(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["init", *given])
    assert left.value.code == 2
    assert "expected: --src and --tgt, --tsv, or --jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pairs", "chosen"),
    [(500, ("adamw", 20, "sinusoidal")), (2_000, ("muon", 100, "rotary")), (10_000, ("muon", 100, "rotary"))],
)
def test_the_recipe_fits_the_number_of_pairs(tmp_path: Path, pairs: int, chosen: tuple[str, int, str]) -> None:
    text = "".join(f"{number}\n" for number in range(pairs))
    write_recipe(files(tmp_path, text, text), (None, None), tmp_path / "my.yaml", False)
    config = load_recipe(str(tmp_path / "my.yaml"))
    assert (config.train.optimizer, config.train.warmup_steps, config.model.positions) == chosen


def test_the_recipe_never_replaces_the_text_that_it_is_for(tmp_path: Path) -> None:
    given = files(tmp_path, "a\n", "x\n")
    (tmp_path / "link").symlink_to(given["tgt"])
    (tmp_path / "pairs").write_text("a\tx\n", encoding="utf-8")
    for read, output in ((given, "my.en"), (given, "link"), ({"tsv": str(tmp_path / "pairs")}, "pairs")):
        with pytest.raises(UserError, match="the output would replace the input"):
            write_recipe(read, ("en", "de"), tmp_path / output, True)
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in ("my.en", "my.de", "pairs")]
    assert texts == ["a\n", "x\n", "a\tx\n"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--src", "", "--tgt", "a.de"], "the name of a file is empty\n  got: --src ''"),
        (["--tsv", ""], "the name of a file is empty\n  got: --tsv ''"),
        (["--src", "my.en", "--tgt", "my.de", "-o", ""], "the name of a file is empty\n  got: --output ''"),
        (["--src", "my.en", "--tgt", "my.de", "-o", "-"], "a recipe is a file, and goes not to stdout"),
        (["--src", "my.en", "--tgt", "my.de", "--tgt-lang", "a: b #"], "data.tgt_lang is no language code"),
        (["--src", "my.en", "--tgt", "my.de", "--src-lang", "\u202e😀"], "data.src_lang is no language code"),
    ],
)
def test_names_that_no_recipe_can_have(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path, "a\n", "x\n")
    with pytest.raises(SystemExit) as left:
        main(["init", *given])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.de", "my.en"]
