"""Confidence by the commands: fitted by one, used by another, and never where it does not hold."""

import json
import math
import shutil
from pathlib import Path

import pytest
from command_line import Tfm

from transformer_cli.commands.eval.job import EvalRequest
from transformer_cli.errors import UserError


@pytest.fixture(scope="module")
def fitted(run: Path, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run whose confidence was fitted greedily, to lines that are partly good."""
    from transformer_cli.commands.eval.job import run_eval

    copy = shutil.copytree(run, tmp_path_factory.mktemp("fitted") / "run")
    request = EvalRequest(
        run=copy,
        src=files / "train.en",
        refs=(files / "train.de",),
        calibrate=True,
        search={"beam_size": 1},
        device="cpu",
        n_bootstrap=0,
    )
    report = run_eval(request)
    assert report.confidence is not None
    assert report.confidence.lines == 400
    assert report.confidence.ece < 0.1
    return copy


def confidences(done) -> list[float | None]:
    assert done.code == 0
    return [json.loads(line)["confidence"] for line in done.lines]


def test_translations_say_how_sure_they_are(tfm: Tfm, fitted: Path) -> None:
    common = ("translate", "--run", fitted, "--format", "jsonl", "one cats sleep.", "", "books books books books")
    done = tfm(*common, "-b", "1")
    found = confidences(done)
    assert done.err == ""
    assert found[1] is None  # of a blank line nothing is known
    stored = json.loads((fitted / "confidence.json").read_text(encoding="utf-8"))
    for told, line in [(found[0], json.loads(done.lines[0])), (found[2], json.loads(done.lines[2]))]:
        values = [*line["token_logprobs"], *line["end_logprobs"]]
        facts = {"mean_logprob": sum(values) / len(values), "least_logprob": min(values), "score": line["score"]}
        facts["log_length"] = math.log(len(values))
        facts["log_length_ratio"] = math.log((len(line["translation"]) + 1) / (len(line["source"]) + 1))
        logit = stored["intercept"]
        for name, value in facts.items():
            logit += stored["coefficients"][name] * (value - stored["means"][name]) / stored["deviations"][name]
        assert told == pytest.approx(1 / (1 + math.exp(-logit)))
    document = tfm("translate", "--run", fitted, "-b", "1", "--json", "one cats sleep.").json
    assert document["translations"][0]["confidence"] == found[0]  # type: ignore[index]


def test_it_is_told_once_why_it_does_not_hold(tfm: Tfm, fitted: Path, tmp_path: Path) -> None:
    common = ("translate", "--format", "jsonl", "one cats sleep.", "two dogs fall.")
    done = tfm(*common, "--run", fitted, "-b", "2", "--length-penalty", "0.5")
    assert confidences(done) == [None, None]
    assert done.err.count("was fitted for another translation (beam_size, length_penalty differ)") == 1
    assert tfm(*common, "--run", fitted, "-b", "2", "--quiet").err == ""
    copy = shutil.copytree(fitted, tmp_path / "copy")
    refit = json.loads((copy / "confidence.json").read_text(encoding="utf-8"))
    refit["fitted_for"]["weights"] = "0"
    (copy / "confidence.json").write_text(json.dumps(refit), encoding="utf-8")
    done = tfm(*common, "--run", copy, "-b", "1")
    assert confidences(done) == [None, None]
    assert "(weights differ)" in done.err
    (copy / "confidence.json").write_text("{", encoding="utf-8")
    done = tfm(*common, "--run", copy, "-b", "1")
    assert confidences(done) == [None, None]
    assert "confidence.json cannot be used" in done.err


def test_lines_of_text_ask_for_no_confidence(tfm: Tfm, fitted: Path) -> None:
    assert tfm("translate", "--run", fitted, "-b", "2", "one cats sleep.").err == ""


def test_a_run_without_one_says_nothing(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--format", "jsonl", "-b", "1", "one cats sleep.")
    assert (confidences(done), done.err) == ([None], "")


def test_eval_tells_the_calibration_error(tfm: Tfm, fitted: Path, files: Path) -> None:
    common = ("eval", "--run", fitted, "--bootstrap", "0", "-b", "1")
    text = tfm(*common).out.decode()
    document = tfm(*common, "--json").json["confidence"]  # type: ignore[index]
    assert document["lines"] == 30
    assert document["fitted_on"] == f"{files}/train.en, {files}/train.de"
    assert f"confidence ECE {document['ece']:.4f} of 30 lines" in text
    assert "expect a larger error on others" not in text
    weighted = sum(b["lines"] * abs(b["good"] - b["confidence"]) for b in document["bins"])
    assert document["ece"] == pytest.approx(weighted / 30)
    several = tfm(*common, "--json", "--metrics", "bleu,chrf").json
    assert [("confidence" in one) for one in several] == [True, False]
    own = tfm(*common, "--src", files / "train.en", "--ref", files / "train.de").out.decode()
    assert "these lines: expect a larger error on others" in own
    other = tfm("eval", "--run", fitted, "--bootstrap", "0", "-b", "2")
    assert "ECE" not in other.out.decode()
    assert "(beam_size differ)" in other.err


def test_a_continued_output_is_of_one_confidence(tfm: Tfm, fitted: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(fitted, tmp_path / "copy")
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"text": "one cats sleep."}\n' * 3000 + "no json\n", encoding="utf-8")
    common = ("translate", "--run", copy, "-b", "1", "--format", "jsonl", "-i", lines, "-o", tmp_path / "out.jsonl")
    assert tfm(*common).code == 2
    (copy / "confidence.json").unlink()
    refused = tfm(*common, "--resume")
    assert refused.code == 2
    assert "belongs to another job" in refused.err
    assert "confidence none" in refused.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "--split dev"),
        ({"split": "test"}, "--split dev"),
        ({"split": "train"}, "--split dev"),
        ({"split": "dev", "hyp": Path("x")}, "nothing is translated"),
        ({"split": "dev", "lowercase": True}, "with case"),
    ],
)
def test_what_cannot_be_calibrated(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EvalRequest(calibrate=True, **changes).check()  # type: ignore[arg-type]


def test_too_few_lines_are_refused_and_leave_the_run_as_it_is(tfm: Tfm, fitted: Path, tmp_path: Path) -> None:
    before = (fitted / "confidence.json").read_bytes()
    for side, line in {"en": "one cats sleep.", "de": "x"}.items():
        (tmp_path / f"few.{side}").write_text(f"{line}\n" * 12, encoding="utf-8")
    common = ("eval", "--run", fitted, "--calibrate", "--src", tmp_path / "few.en", "--ref", tmp_path / "few.de")
    done = tfm(*common)
    assert done.code == 2
    assert "0 of 12 lines with sentence chrF2 >= 60" in done.err
    assert (fitted / "confidence.json").read_bytes() == before


def test_what_was_wished_of_a_translation_has_no_confidence(tfm: Tfm, fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("cats\tkatze\n", encoding="utf-8")
    (tmp_path / "no.txt").write_text("hund\n", encoding="utf-8")
    common = ("translate", "--run", fitted, "--format", "jsonl", "-b", "1")
    wishes = [("--prefix", "zwei"), ("--glossary", tmp_path / "terms.tsv"), ("--forbid", tmp_path / "no.txt")]
    for wish in wishes:
        assert confidences(tfm(*common, *wish, "one cats sleep.")) == [None]
    objects = ['{"source": "one cats sleep."}', '{"source": "one cats sleep.", "prefix": "zwei"}']
    (tmp_path / "in.jsonl").write_text("\n".join(objects) + "\n", encoding="utf-8")
    free, wished = confidences(tfm(*common, "-i", tmp_path / "in.jsonl"))
    assert free is not None
    assert wished is None
