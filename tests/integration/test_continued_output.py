"""``tfm translate -o FILE`` stopped at any instant: nothing is lost, and continued it gives the same bytes."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import Outcome, Tfm
from forked_tfm import ForkedTfm
from training_rig import best_weights

from transformer_cli import __version__
from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.files import part_file as module
from transformer_cli.commands.files.part_file import PartFile, part_file
from transformer_cli.decoding.sentences import sentence_rule
from transformer_cli.errors import UserError

ANEW = "--overwrite throws it away and begins anew"
LINES = ["one cats sleep.", "", "two dogs wait.", "\u00a0", "six books fall.", "three trees sleep. " * 40, "four"]


def answered(out: Path) -> int:
    try:
        return json.loads(out.with_name(f"{out.name}.part.json").read_text(encoding="utf-8"))["lines"]
    except FileNotFoundError:
        return 0


def killed(folder: Path, out: Path, *arguments: object, lines: int = 3, number: int = signal.SIGKILL) -> ForkedTfm:
    """Kill a job that writes to ``out`` after so many lines of its input, which goes on."""
    folder.mkdir()
    os.mkfifo(folder / "stdin")
    process = ForkedTfm.start(folder, "translate", "-o", out, *arguments)
    with (folder / "stdin").open("wb", buffering=0) as stdin:
        stdin.write("".join(f"{line}\n" for line in LINES[:lines]).encode())
        assert process.send_when(lambda: answered(out) == lines, number) in (-number, 128 + number)
    return process


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture
def stopped(tfm: Tfm, run: Path, tmp_path: Path) -> Path:
    """The output of a job that an error in its input has stopped after three lines, in a folder of its own."""
    (tmp_path / "work").mkdir()
    objects = [json.dumps({"text": line, "id": f"n{number}"}) for number, line in enumerate(LINES)]
    (tmp_path / "in.jsonl").write_text("\n".join([*objects[:3], "not JSON"]) + "\n", encoding="utf-8")
    out = tmp_path / "work" / "out.txt"
    done = tfm("translate", "--run", run, "-b", "1", "-i", tmp_path / "in.jsonl", "-o", out)
    assert (done.code, answered(out)) == (2, 3)
    assert f"{tmp_path / 'in.jsonl'}:4: is not a JSON object" in done.err
    assert "3 lines answered in" in done.err
    (tmp_path / "in.jsonl").write_text("\n".join(objects) + "\n", encoding="utf-8")  # mended
    return out


@pytest.fixture
def again(tfm: Tfm, run: Path, tmp_path: Path, stopped: Path) -> Callable[..., Outcome]:
    """The job of ``stopped`` again, with more options."""

    def translate(*more: object) -> Outcome:
        return tfm("translate", "--run", run, "-b", "1", "-i", tmp_path / "in.jsonl", "-o", stopped, *more)

    return translate


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.txt", ["-b", "1"]),
        ("out.txt", ["--n-best", "2", "-b", "2"]),
        ("out.tsv", ["--format", "tsv", "--n-best", "2", "-b", "2"]),
        ("out.jsonl", ["--format", "jsonl", "-b", "1"]),
        ("out.txt.gz", ["-b", "1"]),
    ],
)
def test_a_killed_job_is_continued_to_the_same_bytes(
    tfm: Tfm, run: Path, source: Path, tmp_path: Path, name: str, options: list[str]
) -> None:
    whole, out = tmp_path / f"whole-{name}", tmp_path / name
    assert tfm("translate", "--run", run, *options, "-i", source, "-o", whole).code == 0
    killed(tmp_path / "io", out, "--run", run, *options)
    assert not out.exists()
    with (tmp_path / f"{name}.part").open("ab") as part:
        part.write(b"a line that is to" * 1000)  # what a kill in the middle of a write leaves
    done = tfm("translate", "--run", run, *options, "-i", source, "-o", out, "--resume")
    assert (done.code, done.out) == (0, b"")
    assert f"continuing {out}.part after 3 lines" in done.err
    assert "line 6" in done.err  # in pieces: numbers count from the start of the input
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.txt", "io", name, whole.name])


def test_killed_twice_and_before_its_first_line(tfm: Tfm, run: Path, source: Path, tmp_path: Path) -> None:
    out, greedy = tmp_path / "out", ["--run", run, "-b", "1"]
    killed(tmp_path / "first", out, *greedy, lines=0)
    killed(tmp_path / "second", out, *greedy, "--resume", lines=2)
    killed(tmp_path / "third", out, *greedy, "--resume", lines=5)
    assert tfm("translate", *greedy, "-o", out, "--resume", stdin=source.read_bytes()).code == 0
    assert out.read_bytes() == tfm("translate", *greedy, "-i", source).out


def test_sigterm_leaves_what_is_answered_and_says_how_to_go_on(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = killed(tmp_path / "io", out, "--run", run, "-b", "1", number=signal.SIGTERM)
    assert f"3 lines answered in {out}.part; the same command with --resume continues there" in process.err
    assert answered(out) == 3
    assert (tmp_path / "out.part").read_bytes().count(b"\n") == 3


def test_after_an_error_in_the_input_the_mended_one_is_continued(
    tfm: Tfm, run: Path, stopped: Path, again: Callable[..., Outcome]
) -> None:
    assert again("--resume").code == 0
    assert stopped.read_bytes() == tfm("translate", "--run", run, "-b", "1", "--", *LINES).out
    assert [path.name for path in stopped.parent.iterdir()] == ["out.txt"]


def test_an_unfinished_output_is_neither_destroyed_nor_continued_unasked(
    stopped: Path, again: Callable[..., Outcome]
) -> None:
    part = stopped.with_name("out.txt.part")
    before = part.read_bytes()
    done = again()
    assert done.code == 2
    assert "--resume continues it, --overwrite throws it away" in done.err
    assert part.read_bytes() == before
    assert again("--overwrite").code == 0
    assert stopped.read_bytes().count(b"\n") == len(LINES)
    assert not part.exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["-b", "2"], "beam_size 1"),
        (["--length-penalty", "0.5"], "length_penalty 0.5"),
        (["--format", "tsv"], "got: format tsv\n"),
        (["--format", "jsonl"], "got: format jsonl\n"),
        (["--field", "text"], "field text"),
    ],
)
def test_another_job_is_refused_by_name(
    stopped: Path, again: Callable[..., Outcome], options: list[str], named: str
) -> None:
    before = stopped.with_name("out.txt.part").read_bytes()
    done = again("--resume", *options)
    assert (done.code, "belongs to another job" in done.err, named in done.err) == (2, True, True)
    assert stopped.with_name("out.txt.part").read_bytes() == before
    assert answered(stopped) == 3


def test_the_job_names_what_translations_depend_on(run: Path, stopped: Path) -> None:
    job = json.loads(stopped.with_name("out.txt.part.json").read_text(encoding="utf-8"))["job"]
    assert (
        job.items()
        >= {
            "engine": "torch",
            "device": "cpu",
            "input_format": "jsonl",
            "sample": False,
            "to": "de",
            "tokenizer": RunFolder.open(run).tokenizer.sha256[:16],
            "confidence": None,
            "sentences": sentence_rule(),
            "version": __version__,
        }.items()
    )


@pytest.mark.parametrize(("how", "text"), [("write", "new"), ("mark", ""), ("finish", "")])
def test_overwriting_keeps_nothing_of_the_old_part(tmp_path: Path, how: str, text: str) -> None:
    old = tmp_path / "out.part"
    old.write_text("old" * 99, encoding="utf-8")
    with part_file(str(tmp_path / "out"), print, resume=False, overwrite=True) as part:
        part.begin(lambda: {"new": 1}, iter([]))
        assert old.read_text(encoding="utf-8") == "old" * 99
        if how == "write":
            part.write("new")
        elif how == "mark":
            part.mark(["a"])
            record = json.loads((tmp_path / "out.part.json").read_text(encoding="utf-8"))
            assert (record["job"], record["lines"]) == ({"new": 1}, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text(encoding="utf-8") == text


def test_overwriting_that_fails_before_a_line_is_answered_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "out.part").write_text("old", encoding="utf-8")
    notes: list[str] = []
    with (
        suppress(KeyboardInterrupt),
        part_file(str(tmp_path / "out"), notes.append, resume=False, overwrite=True) as part,
    ):
        part.begin(lambda: {}, iter([]))
        part.write("new")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    assert notes == []


def test_who_was_refused_has_answered_nothing(tmp_path: Path) -> None:
    (tmp_path / "out.part").write_text("old", encoding="utf-8")
    notes: list[str] = []
    with (
        pytest.raises(UserError, match="has no record"),
        part_file(str(tmp_path / "out"), notes.append, resume=True, overwrite=False) as part,
    ):
        part.begin(lambda: {}, iter([]))
    assert notes == []
    assert (tmp_path / "out.part").read_text(encoding="utf-8") == "old"


def test_batches_may_be_others(stopped: Path, again: Callable[..., Outcome]) -> None:
    assert again("--resume", "--batch-size", "2", "--batch-tokens", "50").code == 0
    assert stopped.exists()


def test_other_weights_are_refused(tfm: Tfm, run: Path, stopped: Path, tmp_path: Path) -> None:
    other = RunFolder.open(Path(shutil.copytree(run, tmp_path / "other")))
    command = ["translate", "--run", other.path, "-b", "1", "-i", tmp_path / "in.jsonl", "-o", stopped, "--resume"]
    other.save_model({name: 1.01 * weight for name, weight in best_weights(other).items()})
    done = tfm(*command)
    assert (done.code, "weights" in done.err) == (2, True)
    other.save_model(best_weights(RunFolder.open(run)))
    recipe = other.path / "config.yaml"
    text = recipe.read_text(encoding="utf-8")
    for name, old, new in (("max_length", r"(max_length:) \d+", r"\1 20"), ("from", "(src_lang:) en", r"\1 fr")):
        recipe.write_text(re.sub(old, new, text), encoding="utf-8")
        done = tfm(*command)
        assert (done.code, f"got: {name}" in done.err) == (2, True), done.err
    recipe.write_text(text, encoding="utf-8")
    assert tfm(*command).code == 0  # where the run lies does not matter


def damage_input(out: Path) -> None:
    path = out.parent.parent / "in.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("one cats", "two cats"), encoding="utf-8")


def shorten_input(out: Path) -> None:
    (out.parent.parent / "in.jsonl").write_text('{"text": "one cats sleep.", "id": "n0"}\n', encoding="utf-8")


def shorten_part(out: Path) -> None:
    with out.with_name("out.txt.part").open("r+b") as part:
        part.truncate(5)


def remove_record(out: Path) -> None:
    out.with_name("out.txt.part.json").unlink()


def wish_more(out: Path) -> None:
    path = out.with_name("out.txt.part.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"job": record["job"] | {"more": 1}}), encoding="utf-8")


def change_record(**changes: object) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        path = out.with_name("out.txt.part.json")
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_input, "another input: its first 3 lines differ"),
        (shorten_input, "it answers 3 lines, and this input ends after 1 line"),
        (shorten_part, f"it is shorter than its record says\n  hint: {ANEW}"),
        (remove_record, f"it has no record: out.txt.part.json is missing\n  hint: {ANEW}"),
        (change_record(lines="3"), f"it has no readable record: out.txt.part.json is damaged\n  hint: {ANEW}"),
        (change_record(bytes=-1), "has no readable record"),
        (change_record(more=1), "has no readable record"),
        (change_record(lines=True), "has no readable record"),
        (change_record(job={"more": 1}), "belongs to another job"),
        (change_record(job={}), "belongs to another job"),
        (wish_more, "more 1, as it was begun"),
    ],
)
def test_what_does_not_fit_is_refused(
    stopped: Path, again: Callable[..., Outcome], damage: Callable[[Path], None], message: str
) -> None:
    damage(stopped)
    done = again("--resume")
    assert (done.code, message in done.err, "Traceback" in done.err) == (2, True, False)
    assert stopped.with_name("out.txt.part").exists()


def test_nothing_to_continue_is_a_start(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "out.part").touch()  # of a job that was killed while its model was loaded
    done = tfm("translate", "--run", run, "-b", "1", "-o", tmp_path / "out", "--resume", "one", "two")
    assert (done.code, "starting with the first line" in done.err) == (0, True)
    assert (tmp_path / "out").read_bytes().count(b"\n") == 2


def test_a_mistake_before_the_first_line_leaves_nothing(tfm: Tfm, tmp_path: Path) -> None:
    assert tfm("translate", "--run", tmp_path / "none", "-o", tmp_path / "out", "one").code == 2
    assert list(tmp_path.iterdir()) == []


def test_two_processes_never_write_one_output(
    tfm: Tfm, run: Path, stopped: Path, again: Callable[..., Outcome]
) -> None:
    with suppress(KeyboardInterrupt), part_file(str(stopped), print, resume=True, overwrite=False):
        for options in (["--resume"], ["--overwrite"], []):
            done = again(*options)
            assert (done.code, "another process writes this output" in done.err) == (2, True)
        raise KeyboardInterrupt
    assert again("--resume").code == 0


def test_a_part_that_was_finished_while_it_was_opened_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, out = module._lock, tmp_path / "out"
    (tmp_path / "out.part").write_text("of another process", encoding="utf-8")

    def finished_first(file: object, part: Path) -> None:
        if not out.exists():
            os.replace(part, out)
        lock(file, part)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_lock", finished_first)
    with part_file(str(out), print, resume=False, overwrite=True) as part:
        assert part.begin(lambda: {}, iter([])) == 0
        assert out.read_text(encoding="utf-8") == "of another process"
        part.write("mine")
    assert out.read_text(encoding="utf-8") == "mine"


def test_a_full_disk_at_the_end_costs_nothing(
    stopped: Path, again: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(source: Path, target: Path) -> None:
        if target == stopped:
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        done = again("--resume")
    assert (done.code, "disk is full" in done.err, "--resume continues" in done.err) == (2, True, True)
    assert answered(stopped) == len(LINES)
    assert again("--resume").code == 0
    assert stopped.read_bytes().count(b"\n") == len(LINES)


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[PartFile]:
    (tmp_path / "private").touch(mode=0o600)
    with part_file(str(tmp_path / "private"), print, resume=False, overwrite=False) as part:
        part.begin(lambda: {}, iter([]))
        yield part


def test_a_private_output_has_a_private_part(growing: PartFile, tmp_path: Path) -> None:
    assert (tmp_path / "private.part").stat().st_mode & 0o777 == 0o600


def test_the_part_holds_whole_answers_after_each_mark(growing: PartFile, tmp_path: Path) -> None:
    growing.write("one\n")
    growing.mark(["eins"])
    assert (tmp_path / "private.part").read_text(encoding="utf-8") == "one\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--resume"],
        ["--overwrite"],
        ["-o", "OUT", "--resume", "--overwrite"],
        ["-o", "OUT", "--json", "--resume"],
        ["-o", "/dev/null", "--resume"],
        ["-o", "OUT", "-i", "OUT.part"],
    ],
)
def test_what_means_nothing_is_refused(tfm: Tfm, run: Path, tmp_path: Path, options: list[str]) -> None:
    chosen = [option.replace("OUT", str(tmp_path / "out")) for option in options]
    done = tfm("translate", "--run", run, *chosen, *([] if "-i" in options else ["one"]))
    assert (done.code, "error:" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_another_process_that_finishes_leaves_no_record(tmp_path: Path) -> None:
    left = {"job": {}, "lines": 3, "sha256": "", "bytes": 9}  # by a kill between two steps
    (tmp_path / "out.part.json").write_text(json.dumps(left), encoding="utf-8")
    with part_file(str(tmp_path / "out"), print, resume=False, overwrite=False) as part:
        part.begin(lambda: {}, iter([]))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(UserError), part_file(str(tmp_path / "no" / "out"), print, resume=False, overwrite=False):
        raise AssertionError("there is no such folder")


def test_overwrite_throws_nothing_away_before_the_job_can_begin(tmp_path: Path, tfm: Tfm, run: Path) -> None:
    part, record = tmp_path / "out.txt.part", tmp_path / "out.txt.part.json"
    part.write_text("eins\n", encoding="utf-8")
    record.write_text("{}", encoding="utf-8")
    text, jsonl = tmp_path / "no.jsonl", ["--input-format", "jsonl"]
    text.write_text("no JSON\n", encoding="utf-8")
    for wrong in (
        ["--run", tmp_path / "nowhere", "a dog ."],
        ["--run", run, "--glossary", tmp_path / "nowhere.tsv", "a dog ."],
        ["--run", run, "-i", tmp_path / "nowhere.txt"],
        ["--run", run, "-i", text, *jsonl],
    ):
        done = tfm("translate", *wrong, "-o", tmp_path / "out.txt", "--overwrite")
        assert done.code == 2
        assert part.read_text(encoding="utf-8") == "eins\n"
        assert record.exists()
    done = tfm("translate", "--run", run, "-o", tmp_path / "out.txt", "--overwrite", "one cats sleep .")
    assert done.code == 0, done.err
    assert not part.exists()
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()) == 1


def test_a_file_that_is_no_record_is_not_replaced_by_one(tmp_path: Path, tfm: Tfm, run: Path) -> None:
    mine = tmp_path / "out.part.json"
    mine.write_text('{"mine": 1}\n', encoding="utf-8")
    done = tfm("translate", "--run", run, "-o", tmp_path / "out", "a dog .")
    assert (done.code, "out.part.json: is in the way" in done.err) == (2, True)
    done = tfm("translate", "--run", run, "-i", mine, "-o", tmp_path / "out")
    assert (done.code, "the output would replace the input" in done.err) == (2, True)
    assert mine.read_text(encoding="utf-8") == '{"mine": 1}\n'
    assert list(tmp_path.iterdir()) == [mine]


def test_a_record_of_impossible_numbers_is_no_record(stopped: Path, again: Callable[..., Outcome]) -> None:
    path = stopped.with_name(f"{stopped.name}.part.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"lines": 10**21}), encoding="utf-8")
    done = again("--resume")
    assert (done.code, "has no readable record" in done.err) == (2, True)
