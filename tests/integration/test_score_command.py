"""``tfm score``: one line of result for each pair of lines."""

import json
from pathlib import Path

import pytest
from command_line import Tfm

TEXTS = ["one cats sleep.", "two dogs wait.", "", "six books fall."]


@pytest.fixture
def pair(tfm: Tfm, run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Sources, and the run's own translations."""
    src, tgt = tmp_path / "in.en", tmp_path / "out.de"
    src.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    assert tfm("translate", "--run", run, "-i", src, "-o", tgt).code == 0
    return src, tgt


def test_scores_are_those_of_the_search(tfm: Tfm, run: Path, pair: tuple[Path, Path]) -> None:
    translated = [json.loads(line) for line in tfm("translate", "--run", run, "--format", "jsonl", "-i", pair[0]).lines]
    scored = [json.loads(line) for line in tfm("score", "--run", run, "--format", "jsonl", *pair).lines]
    for theirs, ours in zip(translated, scored, strict=True):
        assert [ours[name] for name in ("sentence_id", "source", "translation")] == [
            theirs[name] for name in ("sentence_id", "source", "translation")
        ]
        if ours["tokens"] == theirs["tokens"]:
            assert ours["score"] == pytest.approx(theirs["score"], abs=1e-5)
        assert len(ours["token_logprobs"]) == len(ours["tokens"])
        assert len(ours["end_logprobs"]) == (theirs["source"] != "")
    assert sum(ours["tokens"] == theirs["tokens"] for ours, theirs in zip(scored, translated, strict=True)) > 1


def test_text_file_and_pipe_agree_and_options_reach_the_score(
    tfm: Tfm, run: Path, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    src, tgt = pair
    plain = tfm("score", "--run", run, *pair)
    assert (plain.code, plain.err) == (0, "")
    assert len([float(line) for line in plain.lines]) == 4
    assert tfm("score", "--run", run, "-", tgt, stdin=src.read_bytes()).out == plain.out
    assert tfm("score", "--run", run, "--batch-size", 1, *pair).out == plain.out
    chosen = tfm("score", "--run", run, "--batch-tokens", "auto", *pair)
    assert chosen.out == plain.out
    assert "at most 256 sentences" in chosen.err
    assert tfm("score", "--run", run, *pair, "-o", tmp_path / "scores").out == b""
    assert (tmp_path / "scores").read_bytes() == plain.out
    assert tfm("score", "--run", run, "--length-penalty", 0, *pair).out != plain.out
    assert tfm("score", "--run", run, "--length-normalization", "plain", *pair).out != plain.out


def test_a_wrong_translation_scores_less(tfm: Tfm, run: Path, pair: tuple[Path, Path], tmp_path: Path) -> None:
    src, tgt = pair
    (tmp_path / "shuffled.de").write_text("x y z.\n" * 4, encoding="utf-8")
    sides = tgt, tmp_path / "shuffled.de"
    right, wrong = ([float(score) for score in tfm("score", "--run", run, src, side).lines] for side in sides)
    assert all(ours > theirs for ours, theirs in zip(right, wrong, strict=True))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["in.en", "short.de"], "short.de ends after 3 lines, the other goes on"),
        (["short.de", "in.en"], "short.de ends after 3 lines, the other goes on"),
        (["-", "-"], "cannot be both sides"),
        (["in.en", ""], "an empty file name"),
        (["in.en", "none.de"], "none.de"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(
    tfm: Tfm, run: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(pair[0].parent)
    Path("short.de").write_text("a\n" * 3, encoding="utf-8")
    done = tfm("score", "--run", run, *arguments, "-o", "scores")
    assert (done.code, told in done.err) == (2, True)
    assert not Path("scores").exists()


def test_repaired_bytes_are_named(tfm: Tfm, run: Path, pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "odd.de").write_bytes(b"a\n\xff\nb\nc\n")
    done = tfm("score", "--run", run, pair[0], tmp_path / "odd.de")
    assert "1 line held invalid UTF-8 or NUL, read as U+FFFD: line 2" in done.err
    assert len(done.lines) == 4
