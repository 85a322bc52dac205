"""A shortlist by the commands: learned by one, used by the others, and refused where it is not what it should be."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import Tfm

from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import SHORTLIST, Shortlist
from transformer_cli.decoding.translator import Translator

LINES = ("one cats sleep.", "two dogs fall.", "", "six houses wait.")


@pytest.fixture(scope="module")
def listed(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run with a shortlist so short that it matters: of each piece the best partner."""
    from transformer_cli.commands.shortlist import ShortlistRequest, run_shortlist

    copy = shutil.copytree(run, tmp_path_factory.mktemp("listed") / "run")
    report = run_shortlist(ShortlistRequest(copy, None, None, None, per_piece=1, frequent=0), lambda _: None)
    assert (report.pairs, report.dev_lines, report.vocabulary) == (400, 30, 320)
    assert report.mean_size is not None
    assert 260 < report.mean_size < 280
    assert report.recall is not None
    assert 0.1 < report.recall < 1
    return copy


def test_it_is_learned_from_the_training_pairs_or_from_files(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    told = tfm("shortlist", "--run", copy)
    assert (told.code, told.err) == (0, "")
    assert f"{copy}/{SHORTLIST}: 100 target pieces for each source piece, of 400 pairs" in told.lines[0]
    assert "with 100.0% of the pieces of their references" in told.lines[1]
    of_run = Shortlist.of_run(copy)
    sides = ("--src", files / "train.en", "--tgt", files / "train.de")
    document = tfm("shortlist", "--run", copy / "checkpoints" / "step-100", *sides, "--json").json
    assert document["pairs"] == 400  # type: ignore[index]
    assert Shortlist.of_run(copy).fingerprint == of_run.fingerprint
    few = tfm("shortlist", "--run", copy, "--src", files / "dev.en", "--tgt", files / "dev.de", "--per-piece", "3")
    assert "3 target pieces for each source piece, of 30 pairs" in few.lines[0]
    assert Shortlist.of_run(copy).of_pieces.shape == (320, 3)


def test_translations_and_scores_are_of_the_list(tfm: Tfm, listed: Path, run: Path) -> None:
    common = ("translate", "-b", "2", *LINES)
    plain, short = (tfm(*common, "--run", listed, *how).lines for how in ((), ("--shortlist",)))
    assert plain == tfm(*common, "--run", run).lines == tfm(*common, "--run", listed, "--no-shortlist").lines
    assert short != plain
    assert short[2] == ""
    alone = [tfm("translate", "-b", "2", "--run", listed, "--shortlist", line).lines for line in LINES]
    assert [line for one in alone for line in one] == short
    report = tfm("eval", "--run", listed, "--shortlist", "--bootstrap", "0", "--json").json
    assert str(report["decoding"]).endswith("shortlist")  # type: ignore[index]


@pytest.mark.slow
def test_workers_search_with_the_same_lists(listed: Path) -> None:
    how = DecodeSettings(beam_size=2, shortlist=True)
    shared = Translator.from_run(listed, "cpu", workers=2)
    try:
        found = shared.translate_window(LINES, how)
    finally:
        shared.close()
    assert found == Translator.from_run(listed, "cpu").translate_window(LINES, how)


def test_without_one_that_fits_the_command_that_makes_it_is_named(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    for command in (("translate", "one"), ("eval", "--split", "dev")):
        refused = tfm(*command, "--run", run, "--shortlist")
        assert (refused.code, refused.out) == (2, b"")
        assert f"tfm shortlist --run {run}" in refused.err
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / SHORTLIST).write_bytes(b"\x80 a pickle")
    assert "a pickle" in tfm("translate", "--run", copy, "--shortlist", "one").err


def test_wishes_that_mean_nothing_are_refused(tfm: Tfm, listed: Path, files: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for options, message in [
        (("shortlist", "--src", files / "train.en"), "belong together"),
        (("shortlist", "--src", tmp_path / "empty", "--tgt", tmp_path / "empty"), "there are no lines"),
        (("shortlist", "--to", "de"), "--to is about --src"),
        (("shortlist", "--src", files / "train.en", "--tgt", files / "dev.de"), "the numbers of lines differ"),
        (("translate", "--engine", "ctranslate2", "--shortlist", "one"), "does not know --shortlist"),
        (("eval", "--hyp", files / "dev.de", "--ref", files / "dev.de", "--shortlist"), "nothing is translated"),
    ]:
        refused = tfm(*options, "--run", listed)
        assert refused.code == 2
        assert message in refused.err


def test_a_confidence_and_a_continued_output_know_the_list(tfm: Tfm, listed: Path, files: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(listed, tmp_path / "run")
    text = ("--src", files / "train.en", "--ref", files / "train.de", "--bootstrap", "0", "-b", "1")
    assert tfm("eval", "--run", copy, "--calibrate", *text).code == 0
    common = ("translate", "--run", copy, "-b", "1", "--format", "jsonl")
    assert "(shortlist differ)" in tfm(*common, "--shortlist", "one cats sleep.").err
    plain = tfm(*common, "one cats sleep.")
    assert (plain.err, json.loads(plain.lines[0])["confidence"] is None) == ("", False)

    (tmp_path / "in.jsonl").write_text('{"text": ""}\n' * 2100 + "no json\n", encoding="utf-8")
    job = (*common, "--shortlist", "-q", "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl")
    assert tfm(*job).code == 2
    tfm("shortlist", "--run", copy, "--per-piece", "2")
    refused = tfm(*job, "--resume")
    assert "belongs to another job" in refused.err
    assert "shortlist" in refused.err
    assert "weights" not in refused.err


def test_training_makes_it_if_the_recipe_searches_with_it(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    from toy_language import TINY

    run = tmp_path / "run"
    options = (*TINY, "-s", "train.max_steps=3", "-s", "decode.shortlist=true", "-s", "train.validate_every=2")
    trained = tfm("train", "-c", files / "my.yaml", "--run", run, "--quiet", *options)
    assert (trained.code, trained.err) == (0, "")
    made = (run / SHORTLIST).read_bytes()
    assert tfm("translate", "--run", run, "one").code == 0
    found = tfm("eval", "--run", run, "--split", "dev", "-b", "1", "--bootstrap", "0", "--json").json
    best = json.loads((run / "run.json").read_text(encoding="utf-8"))["best"]["bleu"]
    assert found["score"] == pytest.approx(best, abs=0.01)  # type: ignore[index]
    tfm("shortlist", "--run", run, "--per-piece", "1")
    own = (run / SHORTLIST).read_bytes()
    assert own != made
    resumed = tfm("train", "--resume", "--run", run, "--quiet", "-s", "train.max_steps=4")
    assert (resumed.code, resumed.err) == (0, "")
    assert (run / SHORTLIST).read_bytes() == own
