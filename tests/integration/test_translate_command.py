"""``tfm translate``: one line in, one line out, whatever stands in the line and however it comes."""

import gzip
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
from command_line import Tfm, tfm_process
from training_rig import best_weights

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.files.line_stream import _collect, windows

#: Every oddity of real text, one a line.
ODD = (
    '\ufeffone cats sleep.\r\nbare\rCR\nu2028\u2028u2029\u2029nel\u0085vt\vff\ffs\x1c.\n\n\u00a0\u3000\n\ttab\n"\n</s> <pad> <unk> <s>\n\U0001f600 e\u0301\n１２ ﬁ\n'
    + "two " * 500  # four times as many tokens as training allowed
    + "\ntwo dogs fall."
)


def newlines(data: bytes) -> int:
    """The oracle: newline bytes, plus one for a last line without."""
    return data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))


def test_texts_and_a_pipe_and_a_file_give_the_same_bytes(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    texts = ["one cats sleep.", "two dogs wait.", "", "six books fall."]
    data = "".join(f"{text}\n" for text in texts).encode()
    (tmp_path / "in.txt").write_bytes(data)
    from_texts = tfm("translate", "--run", run, *texts)
    from_pipe = tfm("translate", "--run", run, stdin=data)
    from_file = tfm("translate", "--run", run, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    assert from_texts.code == from_pipe.code == from_file.code == 0
    assert from_texts.out == from_pipe.out == (tmp_path / "out.txt").read_bytes()
    assert from_file.out == b""
    assert len(from_texts.lines) == 4
    assert from_texts.lines[2] == ""
    assert from_texts.err == ""


@pytest.mark.parametrize("data", [ODD.encode(), ODD.encode() + b"\n", b"", b"\n", b"\xef\xbb\xbf", b"a\xff\x00b\nc\n"])
def test_one_line_in_one_line_out(tfm: Tfm, run: Path, data: bytes) -> None:
    done = tfm("translate", "--run", run, "-b", "1", stdin=data)
    expected = 0 if data == b"\xef\xbb\xbf" else newlines(data)
    assert done.code == 0
    assert done.out.count(b"\n") == expected
    assert len(done.out.decode().splitlines()) == expected  # no newline-like character either


def test_blank_lines_stay_blank_and_long_ones_are_named(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "-b", "1", stdin=ODD.encode())
    assert [done.lines[i] for i in (3, 4)] == ["", ""]
    assert done.lines[10]
    assert "translated in pieces: line 11" in done.err


def test_repaired_bytes_are_counted_with_their_lines(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "-b", "1", stdin=b"one cats sleep.\n\xff\xfe\nnul\x00\n")
    assert "2 lines held invalid UTF-8 or NUL, read as U+FFFD: lines 2, 3" in done.err


@pytest.mark.parametrize("text", ["-5 degrees", "-5", "-Hello there", "- one", "--two dogs"])
def test_text_may_start_with_a_dash(tfm: Tfm, run: Path, text: str) -> None:
    done = tfm("translate", "--run", run, "-b", "1", text)
    assert done.code == 0
    assert done.out == tfm("translate", "--run", run, "-b", "1", "--", text).out


@pytest.mark.parametrize(
    ("arguments", "told", "command"),
    [
        (["augment", "--choose", "none"], "invalid value for '--choose'", "tfm augment"),
        (["translate", "--no-such"], "no such option: --no-such", "tfm translate"),
        (["eval", "--split"], "option '--split' requires an argument", None),
        (["runs", "a", "b"], "got unexpected extra argument", "tfm runs"),
        (["trian"], "no such command 'trian'", "tfm"),
        (["--no-such"], "no such option: --no-such", "tfm"),
    ],
)
def test_what_the_parser_refuses_looks_like_all_errors(
    tfm: Tfm, arguments: list[str], told: str, command: str | None
) -> None:
    done = tfm(*arguments)
    first, *hint = done.err.splitlines()
    assert (done.code, done.out) == (2, b"")
    assert first.startswith(f"error: {told}")
    assert hint == ([f"  hint: {command} --help tells what it takes"] if command else [])


def test_no_arguments_at_all_are_a_question(tfm: Tfm) -> None:
    assert tfm().out == tfm("--help").out


def test_a_misspelled_option_is_refused(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--beam_size", "3", "one")
    assert done.code == 2
    assert "--beam-size" in done.err


def test_n_best_lists_and_formats(tfm: Tfm, run: Path) -> None:
    lines = tfm("translate", "--run", run, "--n-best", "3", "one cats sleep.", "two dogs wait.").lines
    rows = [
        line.split("\t")
        for line in tfm(
            "translate", "--run", run, "--n-best", "3", "--format", "tsv", "one cats sleep.", "two dogs wait."
        ).lines
    ]
    objects = [
        json.loads(line)
        for line in tfm(
            "translate", "--run", run, "--n-best", "3", "--format", "jsonl", "one cats sleep.", "two dogs wait."
        ).lines
    ]
    document = tfm("translate", "--run", run, "--n-best", "3", "--json", "one cats sleep.", "two dogs wait.").json
    assert len(lines) == 6
    assert [row[:2] for row in rows] == [[str(i), str(rank)] for i in (0, 1) for rank in (1, 2, 3)]
    assert [row[3] for row in rows] == lines
    assert [h["text"] for o in objects for h in o["translations"]] == lines
    assert document["translations"] == objects
    for found in objects:
        best = found["translations"][0]
        assert all(found[name] == best[name] for name in ("score", "tokens", "token_logprobs", "end_logprobs"))
        assert len(found["token_logprobs"]) == len(found["tokens"])
        assert max(found["token_logprobs"] + found["end_logprobs"]) <= 0
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)


def test_alignments_are_a_field_of_json(tfm: Tfm, run: Path) -> None:
    common = ("translate", "--run", run, "--n-best", "2", "one cats sleep.", "")
    one, blank = map(json.loads, tfm(*common, "--alignment", "--format", "jsonl").lines)
    assert {pair.partition("-")[2] for pair in one["alignment"].split()} == set(map(str, range(3)))
    assert one["alignment"] == one["translations"][0]["alignment"] != ""
    assert one["translations"][1]["alignment"]
    assert blank["alignment"] == ""
    assert tfm(*common, "--alignment", "--json").json["translations"] == [one, blank]
    assert tfm(*common, "--json").json["translations"][0]["alignment"] is None
    refused = tfm(*common, "--alignment")
    assert refused.code == 2
    assert "--format jsonl" in refused.err


def test_more_translations_than_the_beam_are_refused_at_once(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--n-best", "6", "one")
    assert done.code == 2
    assert "n-best 6, beam size 5" in done.err


def test_min_length_and_length_penalty_reach_the_search(tfm: Tfm, run: Path) -> None:
    plain, longer = (
        tfm("translate", "--run", run, "--format", "jsonl", *extra, "one cats sleep.").json
        for extra in ([], ["--min-length", "20"])
    )
    assert len(longer["tokens"]) >= 20 > len(plain["tokens"])
    scores = {
        tfm("translate", "--run", run, "--format", "jsonl", "--length-penalty", alpha, "one cats sleep.").json["score"]
        for alpha in (0, 1)
    }
    assert len(scores) == 2


def test_no_run_says_what_was_looked_for_and_how_to_make_one(
    tfm: Tfm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfm("translate", "hello")
    assert done.code == 2
    assert "runs/*/model.safetensors" in done.err
    assert "tfm train --config base.yaml" in done.err
    assert done.out == b""


def test_the_newest_run_is_used_and_named(tfm: Tfm, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent.parent)
    done = tfm("translate", "one cats sleep.")
    assert done.code == 0
    assert "using runs/tiny, the newest run (100 steps)" in done.err
    assert tfm("translate", "--quiet", "one cats sleep.").err == ""


def test_texts_and_a_file_exclude_each_other(tfm: Tfm, run: Path) -> None:
    assert tfm("translate", "--run", run, "-i", "x", "hello").code == 2


def test_a_missing_input_and_an_unwritable_output_are_the_users_mistakes(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    missing = tfm("translate", "--run", run, "-i", tmp_path / "none.txt")
    assert (missing.code, str(tmp_path / "none.txt") in missing.err) == (2, True)
    nowhere = tfm("translate", "--run", run, "-o", tmp_path / "no" / "out.txt", "hello")
    assert (nowhere.code, "cannot be written" in nowhere.err) == (2, True)


def test_an_output_called_gz_is_packed(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "out.txt", tmp_path / "out.txt.gz"
    for path in (plain, packed):
        assert tfm("translate", "--run", run, "-o", path, "one cats sleep.", "two dogs wait.").code == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert plain.read_bytes().count(b"\n") == 2


def test_an_output_file_appears_only_when_complete(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("old", encoding="utf-8")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b broken")
    done = tfm("translate", "--run", run, "-i", tmp_path / "bad.gz", "-o", tmp_path / "out.txt")
    assert done.code == 2
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.gz", "out.txt"]


def test_a_pipe_is_answered_line_by_line(run: Path) -> None:
    command = [sys.executable, "-m", "transformer_cli", "translate", "--run", str(run), "-b", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in (b"one cats sleep.\n", b"two dogs wait.\n"):
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # answered although the input goes on
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_a_reader_that_goes_away_is_no_error(run: Path) -> None:
    translate = f"{sys.executable} -m transformer_cli translate --run {run} -b 1"
    command = f"yes 'one cats sleep.' | head -3000 | {translate} | head -1; exit ${{PIPESTATUS[2]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_a_plain_locale_changes_nothing(tfm: Tfm, run: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    text = "zwei fünf Bäume 猫"
    command = ["translate", "--run", run, "-b", "1"]
    with ThreadPoolExecutor(2) as pool:  # they mostly import
        as_argument = pool.submit(tfm_process, *command, text, **plain)
        from_stdin = pool.submit(tfm_process, *command, stdin=text.encode(), **plain)
    assert as_argument.result().out == from_stdin.result().out == tfm(*command, text).out


def test_a_read_only_run_translates(tfm: Tfm, run: Path) -> None:
    mode = stat.S_IMODE(run.stat().st_mode)
    run.chmod(0o555)
    try:
        assert tfm("translate", "--run", run, "one cats sleep.").code == 0
    finally:
        run.chmod(mode)


def test_windows_take_what_has_arrived_and_pass_errors_on() -> None:
    def lines():
        yield "a"
        time.sleep(0.05)
        yield "b"
        yield "c"
        raise OSError("gone")

    found = []
    with pytest.raises(OSError, match="gone"):
        found.extend(windows(lines()))
    assert [line for window in found for line in window] == ["a", "b", "c"]
    assert found[0] == ["a"]
    assert all(found)


def test_a_window_is_never_larger_than_it_may_be() -> None:
    waiting: Queue[str] = Queue()
    for number in range(40):
        waiting.put(str(number))
    assert _collect(waiting, 16) == ([str(number) for number in range(16)], None)
    assert list(windows([])) == []


def jsonl(*objects: object) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in objects).encode()


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz"])
def test_json_lines_are_known_by_their_name(tfm: Tfm, run: Path, tmp_path: Path, name: str) -> None:
    data = jsonl({"source": "one cats sleep.", "id": "a"}, {"text": "two dogs wait.", "labels": [1, None]})
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    texts = tfm("translate", "--run", run, "one cats sleep.", "two dogs wait.").lines
    assert tfm("translate", "--run", run, "-i", tmp_path / name).lines == texts
    done = tfm("translate", "--run", run, "-i", tmp_path / name, "--format", "jsonl")
    first, second = map(json.loads, done.lines)
    assert [first["translation"], second["translation"]] == texts
    assert (first["source"], first["id"], first["sentence_id"]) == ("one cats sleep.", "a", 0)
    assert (second["source"], second["text"], second["labels"]) == ("two dogs wait.", "two dogs wait.", [1, None])
    assert tfm("translate", "--run", run, "-i", tmp_path / name, "--json").json["translations"] == [first, second]


def test_the_input_format_and_its_field_may_be_named(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    data = jsonl({"q": "one cats sleep.", "source": "two dogs wait."})
    read = ["translate", "--run", run, "--input-format", "jsonl"]
    assert tfm(*read, "--field", "q", stdin=data).out == tfm("translate", "--run", run, "one cats sleep.").out
    assert tfm(*read, stdin=data).out == tfm("translate", "--run", run, "two dogs wait.").out
    (tmp_path / "in.jsonl").write_bytes(data)
    as_text = tfm("translate", "--run", run, "-i", tmp_path / "in.jsonl", "--input-format", "text")
    assert as_text.out == tfm("translate", "--run", run, stdin=data).out


@pytest.mark.parametrize("output", ["jsonl", "json"])
def test_a_field_that_would_be_lost_is_refused(tfm: Tfm, run: Path, output: str) -> None:
    data = jsonl({"text": "one cats sleep.", "score": 5})
    read = ["translate", "--run", run, "--input-format", "jsonl"]
    done = tfm(*read, *(["--json"] if output == "json" else ["--format", "jsonl"]), stdin=data)
    assert (done.code, done.out) == (2, b"")
    assert "the standard input:1: has a field that the output uses for its own\n  got: score" in done.err
    assert tfm(*read, stdin=data).code == 0  # as text nothing is brought along


@pytest.mark.parametrize("options", [["--field", "q", "one"], ["--input-format", "jsonl", "one"], ["--field", "q"]])
def test_options_about_json_lines_without_any_are_refused(tfm: Tfm, run: Path, options: list[str]) -> None:
    assert tfm("translate", "--run", run, *options).code == 2


def test_empty_names_are_refused_as_such(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--input-format", "jsonl", "--field", "", stdin=jsonl({"": "one"}))
    assert (done.code, "an empty field name was given" in done.err) == (2, True)
    required = {"augment": ["-o", "-"]}
    for command in ("translate", "eval", "score", "augment", "train", "inspect", "export"):
        done = tfm(command, "--run", "", *required.get(command, []))
        assert (done.code, "an empty run name was given" in done.err) == (2, True), (command, done.err)
    for command in ("report", "check"):
        assert "an empty run name was given" in tfm(command, "").err


def test_three_hundred_odd_lines_come_out_in_order(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    draw = random.Random(5)
    words = ["one", "two", "cats", "dogs", "sleep.", "wait.", "\u2028", "\u00a0", "Tr."]
    lengths = [0 if draw.random() < 0.24 else draw.choice([1, 2, 3, 5, 8, 13, 400]) for _ in range(300)]
    lines = [" ".join(draw.choices(words, k=n)) for n in lengths]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = tfm(
        "translate", "--run", run, "-b", "1", "--batch-size", "7", "-i", tmp_path / "in.txt", "--format", "jsonl"
    )
    found = [json.loads(line) for line in done.lines]
    assert [(f["sentence_id"], f["source"]) for f in found] == list(enumerate(lines))
    assert all(len(f["translation"].splitlines()) <= 1 for f in found)
    assert all((f["translation"] == "") for f, line in zip(found, lines, strict=True) if not line.strip())
    long = [number for number, n in enumerate(lengths, start=1) if n == 400]
    assert (
        f"{len(long)} lines longer than training allowed, translated in pieces: lines {long[0]}, {long[1]}" in done.err
    )
    assert [f["translation"] for f in found[:20]] == tfm("translate", "--run", run, "-b", "1", "--", *lines[:20]).lines


@pytest.mark.parametrize("splitter", ["sentencex", "built in"])
def test_long_lines_are_named_whatever_cuts_them(
    tfm: Tfm, run: Path, monkeypatch: pytest.MonkeyPatch, splitter: str
) -> None:
    if splitter == "built in":
        monkeypatch.setitem(sys.modules, "sentencex", None)
    else:
        pytest.importorskip("sentencex")
    lines = ["one cats sleep.", "Dr. Two dogs wait. " * 60, "", "six books fall. " * 60, "two dogs wait."]
    done = tfm("translate", "--run", run, "-b", "1", "--", *lines)
    assert done.code == 0
    assert "2 lines longer than training allowed, translated in pieces: lines 2, 4" in done.err
    assert [bool(line) for line in done.lines] == [True, True, False, True, True]
    assert [done.lines[i] for i in (0, 4)] == tfm("translate", "--run", run, "-b", "1", lines[0], lines[4]).lines


def test_a_model_that_never_ends_stops_at_the_limit_and_says_so(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    copy = RunFolder.open(Path(shutil.copytree(run, tmp_path / "copy")))
    weights = best_weights(copy)
    weights["decoder.norm.weight"] *= 0
    embedding = weights["src_embedding.tokens.weight"]  # shared by both sides
    weights["decoder.norm.bias"] = embedding[7].clone()
    embedding[3] = -embedding[7]  # </s> is the least of all
    copy.save_model(weights)
    done = tfm("translate", "--run", copy.path, "-b", "1", "--format", "jsonl", "one cats sleep.", "", "two dogs wait.")
    first, blank, _ = map(json.loads, done.lines)
    assert done.code == 0
    assert len(first["tokens"]) > 10
    assert blank["translation"] == ""
    assert "2 lines cut at the length limit (decode.max_length_ratio): lines 1, 3" in done.err


def test_a_prompt_answers_each_line_although_stdout_is_a_file(run: Path, tmp_path: Path) -> None:
    import pty

    person, terminal = pty.openpty()
    command = [sys.executable, "-m", "transformer_cli", "translate", "--run", str(run), "-b", "1"]
    with (tmp_path / "out").open("wb") as out, os.fdopen(person, "r+b", buffering=0) as keyboard:
        process = subprocess.Popen(command, stdin=terminal, stdout=out, stderr=subprocess.PIPE)
        os.close(terminal)
        assert process.stderr is not None
        asked = b""
        for typed in (b"one cats sleep.\n", b"\xff two dogs wait.\n", b"\x04"):
            while not asked.endswith(b"> "):
                asked += process.stderr.read(1)
            told = (tmp_path / "out").read_bytes().count(b"\n")
            assert told == asked.count(b"> ") - 1  # asked anew when the line before is answered
            asked += b"."
            keyboard.write(typed)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert rest.startswith(b"\nwarning: 1 line with characters so rare in training")
    assert (tmp_path / "out").read_bytes().count(b"\n") == 2


def test_characters_without_a_piece_are_told_with_their_lines(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    lines = ["two dogs sleep.", "two 狗 sleep.", "", "two dogs sleep. " * 60 + "two 狗 sleep."]
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = tfm("translate", "-b", 1, "-i", source, "--run", run)
    told = "warning: 2 lines with characters so rare in training that they have no piece, read byte by byte: lines 2, 4"
    assert told in done.err
    assert tfm("translate", "two dogs sleep.", "--run", run).err == ""
