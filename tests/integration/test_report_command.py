"""``tfm report``: one file with all that a run has to tell, and what a run does not have is said."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from command_line import Tfm
from report_rig import SECTIONS, Seen


def contents_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def scored(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run with one score."""
    copy = tmp_path_factory.mktemp("scored") / "tiny"
    shutil.copytree(run, copy)
    (copy / "scores.jsonl").write_text(
        '{"date": "2026-01-02T03:04:05+00:00", "model": "model.safetensors", "text": "split test", "to": null, '
        '"lines": 30, "decoding": "beam 5", "metric": "BLEU", "score": 98.76, "interval": 1.5, "signature": "nrefs:1"}\n',
        encoding="utf-8",
    )
    return copy


def report_of(tfm: Tfm, run: Path, place: Path, *options: object) -> tuple[str, str]:
    done = tfm("report", run, "-o", place, "--device", "cpu", *options)
    assert (done.code, done.lines) == (0, [f"wrote {place}"]), done.err
    return place.read_text(encoding="utf-8"), done.err


def test_all_parts_are_filled_and_the_run_stays_as_it_is(tfm: Tfm, scored: Path, files: Path, tmp_path: Path) -> None:
    before = contents_of(scored)
    html, err = report_of(tfm, scored, tmp_path / "r.html", "--lines", 7)
    seen = Seen(html)
    assert list(seen.sections) == SECTIONS
    assert "Not here" not in html
    assert "not in the report" not in err
    assert seen.fetched() == []
    assert len(html) < 300_000
    assert contents_of(scored) == before
    assert "98.76 ± 1.50" in seen.sections["scores"]
    assert "7 of the 30 dev sentences" in seen.sections["lengths"]
    assert "length in words" in seen.sections["lengths"]
    assert "d_model: 32" in seen.sections["configuration"]
    assert "tokenizer_sha256" in seen.sections["origin"]
    assert "encoder.layers.*.self_attn" in seen.sections["parameters"]
    assert "cross 1" in seen.sections["heads"]


def test_sentences_are_lines_of_the_dev_set_with_their_numbers(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path
) -> None:
    html, _ = report_of(tfm, run, tmp_path / "r.html", "--lines", 6, "-q")
    words = [part.strip() for part in Seen(html).sections["sentences"].split("\n") if part.strip()]
    numbers = [int(word.split("line ")[1]) for word in words if "chrF line" in word]
    assert sorted(numbers) == [1, 6, 11, 16, 21, 26]  # six of thirty, evenly spread
    src, tgt = ((files / f"dev.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de"))
    sides = [word for word in words if word.startswith(("source", "reference"))]
    assert sides == [text for number in numbers for text in (f"source{src[number - 1]}", f"reference{tgt[number - 1]}")]


def test_equal_runs_give_equal_bytes_and_damaged_lines_change_none(tfm: Tfm, scored: Path, tmp_path: Path) -> None:
    first, _ = report_of(tfm, scored, tmp_path / "a.html", "--lines", 3, "-q")
    copy = tmp_path / "tiny"
    shutil.copytree(scored, copy)
    for name in ("metrics.jsonl", "scores.jsonl"):
        with (copy / name).open("ab") as file:
            file.write(b'[1]\n"text"\n\xff\xfe\n{"step": "x"}\n{"kind": "train", "step": 7, "lo')
    second, err = report_of(tfm, copy, tmp_path / "b.html", "--lines", 3)
    assert first == second
    for name in ("metrics.jsonl", "scores.jsonl"):
        whole = (scored / name).read_bytes().count(b"\n")
        assert f"{name}:{whole + 1}: is damaged and passed over, and 4 more lines" in err


def test_records_of_rubbish_are_damaged_and_not_none_yet(tfm: Tfm, scored: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(scored, tmp_path / "tiny")
    for name in ("metrics.jsonl", "scores.jsonl"):
        (copy / name).write_bytes(b"\n" + b"[" * 100_000 + b'\n{"step": 1' + b"0" * 400 + b"}")
    html, err = report_of(tfm, copy, tmp_path / "r.html", "--lines", 0)
    sections = Seen(html).sections
    for name, part in (("metrics.jsonl", "curves"), ("scores.jsonl", "scores")):
        told = f"{name}:2: is damaged and passed over, and 1 more line"
        assert (told in sections[part], told in err) == (True, True), err
        assert "yet" not in sections[part]


def test_a_young_run_tells_what_there_is(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "young"
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints")
    for name in ("model.safetensors", "metrics.jsonl", "samples.jsonl"):
        (copy / name).unlink()
    (copy / "scores.jsonl").unlink(missing_ok=True)
    html, err = report_of(tfm, copy, tmp_path / "r.html")
    seen = Seen(html)
    absent = {part for part, text in seen.sections.items() if "Not here" in text}
    assert absent == {"curves", "scores", "lengths", "sentences", "attention", "heads"}
    assert "the run has no validated model yet" in seen.sections["attention"]
    assert "not in the report: lengths, sentences, attention, heads: " in err
    assert "d_model: 32" in seen.sections["configuration"]
    assert report_of(tfm, copy, tmp_path / "r.html", "-q")[1] == ""


def test_a_run_whose_data_are_gone_keeps_its_curves(tfm: Tfm, scored: Path, files: Path, tmp_path: Path) -> None:
    copy = tmp_path / "moved"
    shutil.copytree(scored, copy)
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace(f"{files}/dev.en", "/gone/dev.en"), encoding="utf-8")
    html, err = report_of(tfm, copy, tmp_path / "r.html")
    sections = Seen(html).sections
    assert "Not here" not in sections["curves"] + sections["scores"]
    assert "/gone/dev.en" in sections["sentences"]
    assert "/gone/dev.en" in err


def test_a_checkpoint_is_reported_with_its_runs_records(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (checkpoint,) = (run / "checkpoints").glob("step-100")
    html, _ = report_of(tfm, checkpoint, tmp_path / "r.html", "--lines", 2)
    seen = Seen(html)
    assert "those of checkpoints/step-100" in html
    assert "Not here" not in seen.sections["curves"] + seen.sections["sentences"]


def test_without_lines_nothing_is_translated(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    html, err = report_of(tfm, run, tmp_path / "r.html", "--lines", 0)
    assert "translating" not in err
    sections = Seen(html).sections
    assert "--lines 0" in sections["sentences"]
    assert "cross 1" in sections["heads"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{run}/config.yaml", "is a file of a run"),
        ("{run}/metrics.jsonl", "is a file of a run"),
        ("-", "not to stdout"),
        ("{tmp}/none/r.html", "there is no such folder"),
    ],
)
def test_no_file_of_a_run_is_replaced(tfm: Tfm, run: Path, tmp_path: Path, place: str, message: str) -> None:
    before = contents_of(run)
    done = tfm("report", run, "-o", place.format(run=run, tmp=tmp_path))
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert contents_of(run) == before


def test_what_is_no_run_is_refused(tfm: Tfm, tmp_path: Path) -> None:
    done = tfm("report", tmp_path, "-o", tmp_path / "r.html")
    assert done.code == 2
    assert "is not a run folder" in done.err
    assert not (tmp_path / "r.html").exists()
