"""``tfm eval`` of a trained run: the number of its validation, stored beside it, with everything it was made with."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Tfm

from transformer_cli.benchmark import timing
from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.eval.job import EvalRequest, as_json, run_eval
from transformer_cli.errors import DataError, RunError, UserError


@pytest.fixture(scope="module")
def request_(run: Path) -> EvalRequest:
    return EvalRequest(run=run, device="cpu", search={"beam_size": 1})


def stored(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "scores.jsonl").read_text(encoding="utf-8").splitlines()]


def test_equals_the_validation_of_the_same_checkpoint(run, request_):
    folder = RunFolder.open(run)
    step = folder.steps()[-1]
    validation = next(r for r in folder.metrics() if r["kind"] == "validation" and r["step"] == step)
    report = run_eval(replace(request_, run=folder.checkpoint(step), split="dev"))
    assert report.scores[0].value == validation["bleu"]  # to the last bit
    assert report.scores[0].value > 5
    best = next(r for r in reversed(folder.metrics()) if r.get("is_best"))
    assert run_eval(replace(request_, split="dev")).scores[0].value == best["bleu"]


def test_scores_are_stored_with_their_settings(run, request_):
    report = run_eval(replace(request_, metrics=("bleu", "chrf"), search={"beam_size": 1, "length_penalty": 0.5}))
    bleu, chrf = stored(run)[-2:]
    assert (bleu["score"], chrf["score"]) == tuple(found.value for found in report.scores)
    assert bleu["signature"] == report.scores[0].signature
    assert bleu["decoding"] == report.decoding
    assert bleu["decoding"].startswith("beam 1, length penalty 0.5")
    assert (bleu["text"], bleu["lines"], bleu["model"]) == ("split test", 30, "model.safetensors")
    folder = RunFolder.open(run)
    assert bleu["config_sha256"] == folder.config.fingerprint() == json.loads(as_json(report))[0]["config_sha256"]
    assert bleu["corpus_sha256"] == folder.info["corpus_sha256"]
    assert bleu["date"].startswith("20")


def test_a_run_that_cannot_be_written_costs_a_note_only(run, request_, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("scores.jsonl"))
    (copy / "scores.jsonl").mkdir()  # permissions would not stop a test that runs as root
    notes: list[str] = []
    assert run_eval(replace(request_, run=copy), notes.append).scores
    assert "the scores are not stored in the run: Is a directory" in notes


def test_output_is_the_hypotheses_and_scores_the_same(run, files, request_, tmp_path):
    out = tmp_path / "hyps.de"
    translated = run_eval(replace(request_, output=out))
    assert out.read_bytes().count(b"\n") == 30
    assert list(tmp_path.iterdir()) == [out]  # nothing is left beside it
    before = len(stored(run))
    scored = run_eval(EvalRequest(refs=(files / "test.de",), hyp=out))
    assert scored.scores[0].value == translated.scores[0].value
    assert scored.decoding is None
    assert not scored.identity  # nobody knows which run wrote a file
    of_split = run_eval(EvalRequest(run=run, split="test", hyp=out))
    assert of_split.scores[0].value == translated.scores[0].value
    assert len(stored(run)) == before  # what a file scores is not the run's
    with pytest.raises(
        DataError, match=r"split test: 30, .*train.de: 400(.|\n)*--ref FILE takes the place of split test"
    ):
        run_eval(EvalRequest(run=run, hyp=files / "train.de"))


def test_files_instead_of_a_split(files, request_):
    by_split = run_eval(request_)
    by_file = run_eval(replace(request_, src=files / "test.en", refs=(files / "test.de",)))
    assert by_file.scores == by_split.scores
    several = run_eval(replace(request_, refs=(files / "test.de", files / "test.de")))
    assert "nrefs:2" in several.scores[0].signature
    assert several.text == "split test"
    with pytest.raises(DataError, match=r"split test: 30, .*train.de: 400"):
        run_eval(replace(request_, refs=(files / "train.de",)))


def test_beam_and_batches_reach_the_search(request_):
    wide = run_eval(replace(request_, search={"beam_size": 4, "batch_size": 3, "batch_tokens": 50}))
    assert wide.decoding.startswith("beam 4")
    assert run_eval(replace(request_, search={"beam_size": 4})).scores == wide.scores  # batches change the speed only


def test_baseline_and_comparison_with_a_run(run, request_):
    report = run_eval(replace(request_, baseline=True, compare=run, details=True))
    assert report.baseline[0].name == "BLEU"
    assert report.baseline[0].value > report.scores[0].value  # the toy sentences recur
    assert report.other.decoding == report.decoding
    assert report.other.comparisons[0].value == report.other.comparisons[0].other_value
    document = json.loads(as_json(report))
    assert document["baseline"]["signature"] == document["signature"]
    assert document["comparison"]["system"] == str(run)
    assert document["details"]["measured"] == "source"
    assert document["decoding"].startswith("beam 1")


def test_newest_run_is_taken_and_told(run, monkeypatch, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(run)
    monkeypatch.chdir(tmp_path)
    notes: list[str] = []
    report = run_eval(EvalRequest(search={"beam_size": 1}, device="cpu"), notes.append)
    assert report.system == "runs/link"
    assert "using runs/link, the newest run" in notes[0]


def test_errors_come_before_the_work(run, request_):
    with pytest.raises(DataError, match="no split 'handwritten'"):
        run_eval(replace(request_, split="handwritten"))
    with pytest.raises(UserError, match="beam_size"):
        run_eval(replace(request_, search={"beam_size": 0}))
    with pytest.raises(RunError, match="no such run folder"):
        run_eval(replace(request_, run=run / "nowhere"))


def test_command_prints_one_document_or_lines(tfm: Tfm, run: Path) -> None:
    document = tfm("eval", "--run", run, "-b", "1", "--json", "--metrics", "bleu").json
    assert document["name"] == "BLEU"
    assert [
        found["name"] for found in tfm("eval", "--run", run, "-b", "1", "--json", "--metrics", "bleu, chrf").json
    ] == [
        "BLEU",
        "chrF2",
    ]
    shown = tfm("eval", "--run", run, "-b", "1")
    assert document["signature"] in shown.out.decode()
    assert document["decoding"] in shown.out.decode()
    wrong = tfm("eval", "--run", run, "--metrics", "blue")
    assert (wrong.code, wrong.out) == (2, b"")
    assert "unknown metric" in wrong.err


def test_bench_command_prints_one_document(tfm: Tfm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SHORTEST_WATCH", 0.005)
    ask = ("bench", "--seq-len", "16", "--heads", "1", "--repeats", "1", "--flash", "--json", "--device", "cpu")
    done = tfm(*ask)
    assert [row["kernel"] for row in done.json["rows"]] == ["naive", "sdpa", "flash"] * 2
    assert "timing naive" in done.err
    assert tfm(*ask, "--quiet").err == ""
