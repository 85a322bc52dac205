"""``tfm eval --hyp``: files are scored without a model, whatever they hold."""

import gzip
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from transformer_cli.commands.eval.job import EvalReport, EvalRequest, as_json, render, run_eval
from transformer_cli.errors import DataError, RunError, UserError


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture
def ref(tmp_path: Path) -> Path:
    return write(tmp_path / "ref.de", "Der Hund schläft heute.\nDie Katze läuft.\nNein!\n".encode())


def shown(report: EvalReport) -> str:
    out = io.StringIO()
    render(report, Console(file=out, width=40))
    return out.getvalue()


def test_perfect_file_scores_100_and_says_how(ref, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no run is
    notes: list[str] = []
    report = run_eval(EvalRequest(refs=(ref,), hyp=ref, metrics=("bleu", "chrf", "ter")), notes.append)
    assert [round(found.value, 6) for found in report.scores] == [100, 100, 0]
    text = shown(report)
    assert all(found.signature in text for found in report.scores)
    assert "the hypotheses come from a file" in text
    assert notes == []


def test_line_ends_bom_gzip_and_newline_like_characters_change_nothing(ref, tmp_path):
    lines = ["Der Hund\u2028schläft\x85heute.", "Die\rKatze\x0bläuft.", "Nein!"]
    plain = write(tmp_path / "plain.de", "\n".join(lines).encode())
    odd = write(tmp_path / "odd.de", b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode())
    packed = write(tmp_path / "packed.de.gz", gzip.compress(plain.read_bytes()))
    values = {run_eval(EvalRequest(refs=(ref,), hyp=hyp)).scores[0].value for hyp in (plain, odd, packed)}
    assert len(values) == 1
    assert run_eval(EvalRequest(refs=(packed,), hyp=odd)).scores[0].value == pytest.approx(100)


def test_broken_bytes_are_repaired_and_named(ref, tmp_path):
    hyp = write(tmp_path / "hyp.de", b"Der Hund\nDie \xff Katze\nNein\x00!\n")
    notes: list[str] = []
    report = run_eval(EvalRequest(refs=(ref,), hyp=hyp), notes.append)
    assert report.lines == 3
    assert f"2 lines: {hyp}:2, {hyp}:3" in notes[0]


def test_different_counts_name_files_and_counts(ref, tmp_path):
    hyp = write(tmp_path / "short.de", b"Der Hund\n\n")
    with pytest.raises(DataError, match=rf"{ref}: 3, {hyp}: 2"):
        run_eval(EvalRequest(refs=(ref,), hyp=hyp))
    with pytest.raises(DataError, match=rf"{ref}: 3, {hyp}: 2"):
        run_eval(EvalRequest(refs=(ref, hyp), hyp=ref))
    with pytest.raises(DataError, match=rf"{ref}: 3, {hyp}: 2"):
        run_eval(EvalRequest(refs=(ref,), hyp=ref, compare=hyp))


def test_empty_files_and_missing_files(ref, tmp_path):
    nothing = write(tmp_path / "nothing.de", b"")
    with pytest.raises(DataError, match="there are no lines"):
        run_eval(EvalRequest(refs=(nothing,), hyp=nothing))
    with pytest.raises(DataError, match="No such file"):
        run_eval(EvalRequest(refs=(ref,), hyp=tmp_path / "missing.de"))


def test_empty_hypotheses_are_counted(ref, tmp_path):
    report = run_eval(EvalRequest(refs=(ref,), hyp=write(tmp_path / "hyp.de", "\n\u3000\nNein!\n".encode())))
    assert report.empty_hypotheses == 2
    assert "2 hypotheses without text" in shown(report)
    assert json.loads(as_json(report))["empty_hypotheses"] == 2


def test_language_is_the_ending_or_as_given(tmp_path):
    ref = write(tmp_path / "ref.zh", "我弟弟正在机场帮助孩子。\n".encode())
    other = write(tmp_path / "ref.txt", ref.read_bytes())
    notes: list[str] = []
    assert "tok:zh" in run_eval(EvalRequest(refs=(ref,), hyp=ref)).scores[0].signature
    assert "tok:13a" in run_eval(EvalRequest(refs=(other,), hyp=ref), notes.append).scores[0].signature
    assert "--tokenize zh" in notes[0]
    assert "tok:zh" in run_eval(EvalRequest(refs=(other,), hyp=ref, tgt_lang="zh")).scores[0].signature
    assert "tok:char" in run_eval(EvalRequest(refs=(ref,), hyp=ref, tokenize="char")).scores[0].signature


def test_details_and_comparison(ref, tmp_path):
    hyp = write(tmp_path / "hyp.de", b"Der Hund schl\xc3\xa4ft morgen.\nDie [bold]Katze[/] ruft.\nJa!\n")
    src = write(tmp_path / "src.en", b"The dog sleeps today.\nThe cat runs.\nNo!\n")
    report = run_eval(EvalRequest(src=src, refs=(ref,), hyp=hyp, compare=ref, details=True))
    text = shown(report)
    assert "BLEU by length of the source, in words" in text
    assert "[bold]Katze[/]" in text  # a sentence is no markup
    assert "    source      No!" in text
    assert f"compared with {ref}" in text
    document = json.loads(as_json(report))
    assert document["comparison"]["other_value"] == pytest.approx(100)
    assert document["comparison"]["p_value"] <= 1
    assert document["details"]["worst_lines"][0]["hypothesis"] == "Ja!"
    assert sum(bucket["lines"] for bucket in document["details"]["by_length"]) == 3
    fewer = run_eval(EvalRequest(refs=(ref,), hyp=hyp, compare=ref, n_bootstrap=20))
    assert "bs:20" in json.loads(as_json(fewer))["comparison"]["signature"]
    alone = run_eval(EvalRequest(refs=(ref,), hyp=hyp, details=True))
    assert "BLEU by length of the reference" in shown(alone)


def test_json_is_one_object_or_one_list(ref):
    one = json.loads(as_json(run_eval(EvalRequest(refs=(ref,), hyp=ref))))
    assert (one["name"], one["score"], one["lines"]) == ("BLEU", 100, 3)
    two = json.loads(as_json(run_eval(EvalRequest(refs=(ref,), hyp=ref, metrics=("ter", "chrf")))))
    assert [found["name"] for found in two] == ["chrF2", "TER"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": {"beam_size": 3}}, "nothing is translated"),
        ({"device": "cpu"}, "nothing is translated"),
        ({"metrics": ("chrf",), "tokenize": "13a"}, "--tokenize is BLEU's"),
        ({"output": Path("out.de")}, "--output would only copy"),
        ({"metrics": ("blue",)}, "unknown metric"),
        ({"tokenize": "mecab"}, "unknown tokenizer"),
        ({"n_bootstrap": -1}, "no such number of resamples"),
        ({"n_bootstrap": 999_999_999_999}, "no such number of resamples"),
        ({"refs": (), "src": Path("a.en")}, "--src alone"),
        ({"src": Path("a.en"), "split": "dev"}, "--src and --split"),
        ({"hyp": None, "src": Path("a.en"), "output": Path("-")}, "the scores go to stdout"),
        ({"hyp": None, "src": Path("a.en"), "output": Path("no/such/out.de")}, "no such folder"),
    ],
)
def test_wishes_that_exclude_each_other(ref, settings, message):
    with pytest.raises(UserError, match=message):
        run_eval(EvalRequest(**({"refs": (ref,), "hyp": ref} | settings)))


def test_what_needs_a_run_says_so(ref, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for request in (EvalRequest(), EvalRequest(refs=(ref,), hyp=ref, baseline=True)):
        with pytest.raises(RunError, match="no run with a model was found"):
            run_eval(request)
    with pytest.raises(RunError, match=r"--hyp alone has nothing to be compared with(.|\n)*--ref FILE"):
        run_eval(EvalRequest(hyp=ref))


@pytest.mark.parametrize("of", ["src", "ref", "compare"])
def test_hypotheses_never_replace_what_is_read(run, tmp_path, of):
    files = {name: tmp_path / f"{name}.de" for name in ("src", "ref", "compare")}
    for path in files.values():
        path.write_text("zwei\n", encoding="utf-8")
    request = EvalRequest(
        run=run, src=files["src"], refs=(files["ref"],), compare=files["compare"], output=files[of], device="cpu"
    )
    with pytest.raises(UserError, match="would replace the input"):
        run_eval(request)
    assert [path.read_text(encoding="utf-8") for path in files.values()] == ["zwei\n"] * 3


def test_hypotheses_are_refused_a_file_of_the_run_before_anything_is_translated(run):
    with pytest.raises(UserError, match="is a file of a run"):
        run_eval(EvalRequest(run=run, output=run / "model.safetensors", device="cpu"))


def test_resamples_have_a_bound_that_the_command_line_names(tfm, ref):
    done = tfm("eval", "--hyp", ref, "--ref", ref, "--bootstrap", "999999999999")
    assert (done.code, "100000" in done.err, "--bootstrap" in done.err) == (2, True, True)
