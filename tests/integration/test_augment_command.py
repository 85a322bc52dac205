"""``tfm augment``: back-translation and distillation, from files to files, and then to a trained run."""

import gzip
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import Tfm
from forked_tfm import ForkedTfm
from toy_language import TINY

from transformer_cli.commands import augment


@pytest.fixture(scope="module")
def reverse(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the reverse direction, German to English."""
    from transformer_cli.cli import main

    folder = tmp_path_factory.mktemp("reverse")
    sides = {name: f"{{src: {files}/{name}.de, tgt: {files}/{name}.en}}" for name in ("train", "dev")}
    data = "data:\n  src_lang: de\n  tgt_lang: en\n" + "".join(f"  {name}: {value}\n" for name, value in sides.items())
    (folder / "reverse.yaml").write_text(data + "train: {max_steps: 100}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["train", "-c", str(folder / "reverse.yaml"), "--run", str(folder / "run"), "--quiet", *TINY])
    assert not left.value.code
    return folder / "run"


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    path = tmp_path / "mono.de"
    path.write_text("drei Hunde warten.\n\nzwei Bäume fallen.\ndrei Hunde warten.\n", encoding="utf-8")
    return path


def rows(path: Path) -> list[list[str]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [line.split("\t") for line in text.split("\n")[:-1]]


def test_back_translation_writes_tagged_synthetic_sources_and_real_targets(
    tfm: Tfm, reverse: Path, mono: Path, tmp_path: Path
) -> None:
    out = tmp_path / "extra.tsv.gz"
    done = tfm("augment", "--mono", mono, "--run", reverse, "-o", out, "--json")
    assert done.code == 0
    alone = tfm("translate", "--run", reverse, "drei Hunde warten.", "zwei Bäume fallen.").lines
    assert rows(out) == [[f"<BT> {alone[0]}", "drei Hunde warten."], [f"<BT> {alone[1]}", "zwei Bäume fallen."]]
    report = done.json
    assert (report["kind"], report["tag"], report["lines"], report["pairs"]) == ("back-translation", "<BT>", 4, 2)
    assert {reason: n for reason, n in report["dropped"].items() if n} == {"one side is empty": 1, "seen before": 1}
    assert report["lines_per_second"] > 0
    assert re.search(r"read +4\n.*seen before +1\n.*left +2\n", done.err, re.DOTALL)
    assert f"data.train: {{tsv: [real.tsv, {out}]}}" in done.err


def test_the_tag_can_be_left_away_and_output_is_plain_without_gz(
    tfm: Tfm, reverse: Path, mono: Path, tmp_path: Path
) -> None:
    done = tfm("augment", "--mono", mono, "--run", reverse, "-o", tmp_path / "extra.tsv", "--no-tag", "-q")
    assert (done.code, done.out, done.err) == (0, b"", "")
    assert [row[1] for row in rows(tmp_path / "extra.tsv")] == ["drei Hunde warten.", "zwei Bäume fallen."]
    assert not any(row[0].startswith("<BT>") for row in rows(tmp_path / "extra.tsv"))


def test_the_standard_input_and_equal_bytes_of_equal_text(tfm: Tfm, reverse: Path, mono: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv.gz", tmp_path / "b.tsv.gz"
    assert tfm("augment", "--mono", mono, "--run", reverse, "-o", first).code == 0
    assert tfm("augment", "--mono", "-", "--run", reverse, "-o", second, stdin=mono.read_bytes()).code == 0
    assert first.read_bytes() == second.read_bytes()


def test_progress_is_told_in_between_with_the_total_where_it_is_known(
    tfm: Tfm, reverse: Path, mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(augment, "_TOLD_EVERY", 0.0)
    monkeypatch.setattr(augment, "WINDOW", 3)
    arguments = ["augment", "--run", reverse, "-o", tmp_path / "o.tsv", "--mono"]
    told = tfm(*arguments, mono).err
    assert "3 of 4 lines read, 2 pairs written" in told
    assert "4 of 4 lines read, 2 pairs written" in told
    assert "3 lines read, 2 pairs written" in tfm(*arguments, "-", stdin=mono.read_bytes()).err


def test_distillation_writes_real_sources_and_model_translations(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "distilled.tsv"
    done = tfm("augment", "--pairs", files / "dev.en", files / "dev.de", "--run", run, "-o", out, "--json", "-b", "2")
    assert done.code == 0
    sources = list(dict.fromkeys((files / "dev.en").read_text(encoding="utf-8").split("\n")[:-1]))
    translations = tfm("translate", "--run", run, "-b", "2", *sources).lines
    assert rows(out) == [[src, tgt] for src, tgt in zip(sources, translations, strict=True) if src != tgt]
    assert (done.json["kind"], done.json["tag"]) == ("distillation", None)
    assert done.json["decode"][0]["beam_size"] == 2


def test_two_runs_propose_and_the_reference_chooses(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    """An early checkpoint and the finished run: by reference never worse than either alone."""
    from sacrebleu import sentence_chrf

    sides = files / "test.en", files / "test.de"
    wanted = dict(zip(*(side.read_text(encoding="utf-8").split("\n") for side in sides), strict=True))

    def chrf(*arguments: object) -> dict[str, float]:
        out = tmp_path / "out.tsv"
        done = tfm("augment", "--pairs", *sides, "-o", out, "--max-ratio", "50", "-b", "3", *arguments)
        assert done.code == 0, done.err
        return {src: sentence_chrf(tgt, [wanted[src]]).score for src, tgt in rows(out)}

    one, both = ["--run", run], ["--run", run, "--run", run / "checkpoints" / "step-100"]
    best, closest, of_both = chrf(*one), chrf(*one, "--choose", "reference"), chrf(*both, "--choose", "reference")
    assert all(closest[src] >= best[src] for src in best.keys() & closest.keys())
    assert sum(closest.values()) > sum(best.values())
    assert of_both == closest  # the same weights twice: nothing better to choose from


def test_an_ensemble_distils_what_it_translates(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    sides = files / "dev.en", files / "dev.de"
    early = tmp_path / "early"
    steps = ["-s", "train.max_steps=25", "-s", "train.seed=2"]
    assert tfm("train", "-c", files / "my.yaml", "--run", early, "-q", *TINY, *steps).code == 0
    pair, out = ["--run", run, "--run", early], tmp_path / "distilled.tsv"

    def augmented(*arguments: object) -> list[list[str]]:
        done = tfm("augment", "--pairs", *sides, "-o", out, "--max-ratio", "50", "-b", "3", "--json", *arguments)
        assert done.code == 0, done.err
        wanted = ("--ensemble" in arguments, 1 if "--ensemble" in arguments else 2, [str(run), str(early)])
        assert (done.json["ensemble"], len(done.json["decode"]), done.json["runs"]) == wanted
        return rows(out)

    sources = list(dict.fromkeys(sides[0].read_text(encoding="utf-8").split("\n")[:-1]))
    together = tfm("translate", *pair, "-b", "3", *sources).lines
    found = augmented(*pair, "--ensemble")
    assert found == [[src, tgt] for src, tgt in zip(sources, together, strict=True)]
    assert found != augmented(*pair)  # each proposes, the better score wins


def test_the_recipe_of_the_docs_trains_with_both_files(
    tfm: Tfm, reverse: Path, files: Path, mono: Path, tmp_path: Path
) -> None:
    """Reverse run, augment, train: the run sees real and synthetic pairs, and translates."""
    extra, real = tmp_path / "extra.tsv.gz", tmp_path / "real.tsv"
    assert tfm("augment", "--mono", mono, "--run", reverse, "-o", extra).code == 0
    sides = [(files / name).read_text(encoding="utf-8").split("\n")[:-1] for name in ("train.en", "train.de")]
    real.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in zip(*sides, strict=True)), encoding="utf-8")
    sources = f"data.train={{tsv: [{real}, {extra}]}}"
    recipe = ["-c", files / "my.yaml", "-s", sources, *TINY, "-s", "train.max_steps=60"]
    plan = tfm("train", *recipe, "--dry-run", "--json").json
    assert plan["data"]["train"] == 402
    assert tfm("train", *recipe, "--run", tmp_path / "run").code == 0
    done = tfm("translate", "--run", tmp_path / "run", "three dogs wait.")
    assert (done.code, len(done.lines)) == (0, 1)
    assert "<BT>" not in done.lines[0]


# What is refused, dropped or interrupted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of --mono FILE and --pairs SRC TGT"),
        (["--mono", "{mono}", "--pairs", "{mono}", "{mono}"], "exactly one of"),
        (["--mono", "{mono}", "--choose", "reference"], "no references"),
        (["--pairs", "{mono}", "{mono}", "--tag"], "no tag"),
        (["--pairs", "{mono}", "{mono}", "--no-tag"], "no tag"),
        (["--pairs", "-", "-"], "both sides"),
        (["--mono", "{mono}.none"], "cannot be read"),
        (["--mono", "{mono}", "-o", "{mono}"], "replace an input"),
        (["--mono", "{mono}", "-o", "-"], "appears only when it is complete"),
        (["--mono", "{mono}", "--run", "{mono}"], "{mono}"),
        (["--mono", "{mono}", "--run", "{forward}"], "different directions"),
        (["--mono", "{mono}", "--ensemble"], "--ensemble needs several runs"),
        (["--mono", "{mono}", "--ensemble", "--run", "{forward}"], "cannot translate together"),
        (["--mono", "{mono}", "-b", "0"], "--beam-size"),
        (["--mono", "{mono}", "--max-ratio", "0.5"], "--max-ratio"),
        (["--mono", "{mono}", "--max-ratio", "nan"], "--max-ratio"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nonsense_is_one_message_and_leaves_nothing(
    tfm: Tfm, reverse: Path, run: Path, mono: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    names = {"mono": mono, "forward": run}
    before = mono.read_bytes()
    filled = [argument.format(**names) for argument in arguments]
    done = tfm("augment", "--run", reverse, "-o", tmp_path / "out.tsv", *filled)
    assert done.code == 2
    assert message.format(**names) in done.err
    assert (list(tmp_path.iterdir()), mono.read_bytes()) == ([mono], before)


def test_a_run_of_the_wrong_direction_is_refused(tfm: Tfm, run: Path, mono: Path, files: Path, tmp_path: Path) -> None:
    done = tfm("augment", "--mono", mono, "--run", run, "-o", tmp_path / "x.tsv")
    assert (done.code, "reverse direction" in done.err) == (2, True)
    done = tfm("augment", "--pairs", files / "dev.de", files / "dev.en", "--run", run, "-o", tmp_path / "x.tsv")
    assert (done.code, "from en into de" in done.err) == (2, True)


def test_sides_of_different_length_are_refused_before_anything_is_translated(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path
) -> None:
    done = tfm("augment", "--pairs", files / "dev.en", files / "train.de", "--run", run, "-o", tmp_path / "x")
    assert (done.code, f"{files}/dev.en: 30, {files}/train.de: 400" in done.err) == (2, True)
    os.mkfifo(tmp_path / "fifo.en")  # cannot be counted beforehand
    with subprocess.Popen(["sh", "-c", f"head -5 {files}/dev.en > {tmp_path}/fifo.en"]):
        done = tfm("augment", "--pairs", tmp_path / "fifo.en", files / "test.de", "--run", run, "-o", tmp_path / "x")
    assert (done.code, "ends after 5 lines" in done.err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_broken_lines_and_tabs_never_break_the_file(tfm: Tfm, reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.de").write_bytes(b"drei\tHunde warten.\n" + b"\xff\xfe\nnul\0\nzwei B\xc3\xa4ume fallen.")
    done = tfm("augment", "--mono", tmp_path / "odd.de", "--run", reverse, "-o", tmp_path / "o.tsv", "--json")
    assert done.json["dropped"]["invalid UTF-8 or NUL"] == 2
    assert [row[1:] for row in rows(tmp_path / "o.tsv")] == [["drei Hunde warten."], ["zwei Bäume fallen."]]


def test_no_pair_left_is_said_with_the_counts_and_writes_nothing(tfm: Tfm, reverse: Path, tmp_path: Path) -> None:
    (tmp_path / "blank.de").write_text("\n \n", encoding="utf-8")
    done = tfm("augment", "--mono", tmp_path / "blank.de", "--run", reverse, "-o", tmp_path / "out.tsv")
    assert (done.code, "no pair is left" in done.err, "one side is empty" in done.err) == (2, True, True)
    assert not (tmp_path / "out.tsv").exists()


def test_an_interrupted_job_leaves_nothing(reverse: Path, tmp_path: Path) -> None:
    folder, stdin = tmp_path / "out", tmp_path / "io" / "stdin"
    folder.mkdir()
    stdin.parent.mkdir()
    os.mkfifo(stdin)
    process = ForkedTfm.start(stdin.parent, "augment", "--mono", "-", "--run", reverse, "-o", folder / "out.tsv.gz")
    with stdin.open("wb"):  # text that never comes
        assert process.send_when(lambda: any(folder.iterdir()), signal.SIGINT) == 130
    assert list(folder.iterdir()) == []


def test_the_document_has_the_promised_keys(tfm: Tfm, reverse: Path, mono: Path, tmp_path: Path) -> None:
    done = tfm("augment", "--mono", mono, "--run", reverse, "-o", tmp_path / "o.tsv", "--json", "-q")
    assert done.err == ""
    assert list(json.loads(done.out)) == [
        "output", "kind", "runs", "ensemble", "to", "languages", "decode", "tag", "choose", "lines", "pairs", "in_pieces", "dropped", "seconds", "lines_per_second",
    ]  # fmt: skip
