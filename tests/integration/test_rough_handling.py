"""What testers broke once: each kind of mishap, and what must come of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from command_line import Tfm, tfm_process
from forked_tfm import ForkedTfm
from toy_language import TINY

from transformer_cli import load
from transformer_cli.checkpoint import RunFolder, newest_run, run_folders
from transformer_cli.cli import main
from transformer_cli.commands.shared.boundary import run_guarded

TFM = f"{sys.executable} -m transformer_cli"


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A run that a test may damage."""
    return Path(shutil.copytree(run, tmp_path / "copy"))


# Output files


def test_an_output_that_is_a_pipe_or_a_link_stays_one(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert tfm("translate", "--run", run, "-o", pipe, "one cats sleep.").code == 0
        assert reader.communicate()[0].count(b"\n") == 1
    assert pipe.is_fifo()
    assert tfm("translate", "--run", run, "-o", link, "one cats sleep.").code == 0
    assert link.is_symlink()
    assert target.read_bytes().count(b"\n") == 1


def test_no_file_but_the_output_is_touched(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    mine = ["out.part~", ".out.part", "out.json", "out.tmp"]
    for name in mine:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    assert tfm("translate", "--run", run, "-o", tmp_path / "out", "one cats sleep.").code == 0
    assert {(tmp_path / name).read_text(encoding="utf-8") for name in mine} == {"mine"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["out", *mine])


def test_the_input_is_never_replaced(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one cats sleep.\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    done = tfm("translate", "--run", run, "-i", tmp_path / "text", "-o", tmp_path / "link")
    assert (done.code, "replace the input" in done.err) == (2, True)


def test_a_full_disk_is_said_and_replaces_nothing(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "out").write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "replace", full)
    done = tfm("translate", "--run", run, "-o", tmp_path / "out", "one cats sleep.")
    assert (done.code, "disk is full" in done.err) == (2, True)
    done = tfm("init", "--src", files / "train.en", "--tgt", files / "train.de", "-o", tmp_path / "my.yaml")
    assert (done.code, "disk is full" in done.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_sigterm_cleans_up(run: Path, tmp_path: Path) -> None:
    folder, stdin = tmp_path / "out", tmp_path / "io" / "stdin"
    folder.mkdir()
    stdin.parent.mkdir()
    os.mkfifo(stdin)
    process = ForkedTfm.start(stdin.parent, "translate", "--run", run, "-o", folder / "text")
    with stdin.open("wb"):  # a line that never comes
        assert process.send_when(lambda: any(folder.iterdir()) and process.sleeps, signal.SIGTERM) == 143
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_waiting_for_a_line(run: Path, tmp_path: Path, number: signal.Signals, code: int) -> None:
    os.mkfifo(tmp_path / "stdin")
    process = ForkedTfm.start(tmp_path, "translate", "--run", run)
    with (tmp_path / "stdin").open("wb", buffering=0) as stdin:
        stdin.write(b"one cats sleep.\n")
        ended = process.send_when(lambda: process.out.endswith("\n"), number)
    assert (ended, process.err) == (code, f"stopped by {number.name}\n")


# Streams


STREAMS = {"<&-": 0, ">&-": 0, "2>&-": 0, "2>/dev/full": 0, ">/dev/full": 2}


@pytest.fixture(scope="module")
def ended(run: Path) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """What became of a process with each redirection; two at a time, for they mostly import."""

    def end(redirection: str) -> subprocess.CompletedProcess[bytes]:
        command = f"{TFM} translate --run {run} -b 1 'one cats sleep.' {redirection}"
        return subprocess.run(["bash", "-c", command], capture_output=True, check=False)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(STREAMS, pool.map(end, STREAMS), strict=True))


@pytest.mark.parametrize(("redirection", "code"), STREAMS.items())
def test_closed_and_full_streams(
    ended: dict[str, subprocess.CompletedProcess[bytes]], redirection: str, code: int
) -> None:
    done = ended[redirection]
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") == (0 if ">" in redirection and "2>" not in redirection else 1)


def test_messages_never_reach_stdout(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{TFM} translate --run {tmp_path}/none x 2>&-"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_path_with_other_letters_in_a_plain_locale(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "ü 跑")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = tfm_process("translate", "--run", tmp_path / "ü 跑", "one cats sleep.", **plain)
    assert (done.code, done.err) == (0, "")


# Run folders


def test_two_processes_never_train_in_one_folder(tfm: Tfm, copy: Path, files: Path) -> None:
    with RunFolder.open(copy).lock():
        for arguments in (["--resume", "-s", "train.max_steps=110"], ["-c", files / "my.yaml", "--overwrite", *TINY]):
            done = tfm("train", "--run", copy, *arguments)
            assert (done.code, "another process trains" in done.err) == (2, True)
            assert "continuing" not in done.err  # nothing was read that the other process may still change
    done = tfm("train", "--run", copy, "--resume")
    assert (done.code, "continuing" in done.err) == (0, True)


def test_unfinished_writes_are_no_runs(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "real")
    ghost = Path(shutil.copytree(run, tmp_path / ".tmp-ghost"))
    info = json.loads((ghost / "run.json").read_text(encoding="utf-8"))
    (ghost / "run.json").write_text(json.dumps(info | {"created": "9999"}), encoding="utf-8")
    assert run_folders(tmp_path) == [tmp_path / "real"]
    assert newest_run(tmp_path) == tmp_path / "real"


@pytest.fixture(scope="module")
def extended(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints of steps 102 and 104."""
    copy = Path(shutil.copytree(run, tmp_path_factory.mktemp("extended") / "run"))
    settings = ["-s", "train.max_steps=104", "-s", "train.save_every=2", "-s", "train.keep_last=9"]
    with pytest.raises(SystemExit) as left:
        main(["train", "--resume", "--run", str(copy), "--quiet", *settings])
    assert not left.value.code
    return copy


@pytest.mark.parametrize(
    "damage", [{"step": "x"}, {"step": 10**30}, {"sha256": {}}, {"counters": {}}, {"format": 2}, None]
)
def test_a_damaged_state_is_named_and_the_one_before_used(
    tfm: Tfm, extended: Path, tmp_path: Path, damage: dict | None
) -> None:
    copy = Path(shutil.copytree(extended, tmp_path / "copy"))
    state = copy / "checkpoints" / "step-104" / "state.json"
    document = json.loads(state.read_text(encoding="utf-8"))
    state.write_text("[" * 100_000 if damage is None else json.dumps(document | damage), encoding="utf-8")
    done = tfm("train", "--resume", "--run", copy, "-s", "train.max_steps=105")
    assert done.code == 0
    assert "step-104 cannot be used, trying the one before" in done.err


def test_strange_names_among_checkpoints_are_passed_over(tfm: Tfm, copy: Path) -> None:
    for name in ("step-²", "step-x", "step-"):
        (copy / "checkpoints" / name).mkdir()
    (copy / "checkpoints" / "step-999").write_text("a file", encoding="utf-8")
    assert tfm("train", "--resume", "--run", copy, "-s", "train.max_steps=101").code == 0


@pytest.mark.parametrize("key", ["created", "status", "step", "tokenizer_sha256", "corpus_sha256"])
@pytest.mark.parametrize("value", [None, [], "gone"])
def test_damaged_run_information_is_one_message(tfm: Tfm, copy: Path, key: str, value: object) -> None:
    info = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    changed = {name: entry for name, entry in info.items() if name != key} if value == "gone" else info | {key: value}
    (copy / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    done = tfm("train", "--resume", "--run", copy, "-s", "train.max_steps=101")
    assert done.code == 2
    assert done.err.count("error:") == 1


def test_a_mistake_in_the_dev_set_leaves_no_run(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    (tmp_path / "long.en").write_text("one cats sleep. " * 99, encoding="utf-8")
    dev = f"{{src: {tmp_path}/long.en, tgt: {tmp_path}/long.en}}"
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, "-s", f"data.dev={dev}")
    assert (done.code, "every dev pair" in done.err) == (2, True)
    assert not (tmp_path / "r").exists()


def test_stopped_before_its_first_validation_a_run_translates(files: Path, tmp_path: Path) -> None:
    endless = ["-s", "train.max_steps=100000", "-s", "train.validate_every=99999", "-s", "train.log_every=1"]
    command = ["train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, *endless]
    process = ForkedTfm.start(tmp_path / "io", *command)
    assert process.send_when((tmp_path / "r/metrics.jsonl").exists, signal.SIGINT) == 130
    assert "\nstopped by SIGINT after step " in process.err
    assert "error" not in process.err
    assert len(load(str(tmp_path / "r")).translate(["one cats sleep."])) == 1


def test_a_finished_run_names_the_limit_that_ended_it(tfm: Tfm, copy: Path) -> None:
    done = tfm("train", "--resume", "--run", copy, "-s", "train.max_epochs=99")
    assert b"already finished" in done.out
    assert "ended by train.max_steps 100" in done.err


# Settings


@pytest.mark.parametrize("text", ["a: &a [*a]", "data: &d {train: *d}", "data: " + "[" * 20_000, "? [a, b]\n: 3\n"])
def test_yaml_without_end_is_one_message(tfm: Tfm, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    done = tfm("train", "-c", tmp_path / "bad.yaml")
    assert done.code == 2
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "setting",
    [
        "tokenizer.vocab_size=2147483648",
        "train.warmup_steps=1" + "0" * 400,
        "train.max_steps=1" + "0" * 400,
        "data.max_length=1000000000",
        "model.d_model=10000000",
        "model.encoder_layers=1000000",
        "train.batch_tokens=99999999999999999999999",
        "decode.beam_size=100000",
        "decode.length_penalty=1e308",
        "decode.max_length_ratio=1e308",
        "data.corpus=null",
        "data.train.src=[" + "a" * 5000 + "]",
    ],
)
def test_numbers_beyond_sense_are_refused(tfm: Tfm, files: Path, tmp_path: Path, setting: str) -> None:
    base = ["-c", "base.yaml"] if setting == "data.corpus=null" else ["-c", files / "my.yaml"]
    done = tfm("train", *base, "--run", tmp_path / "r", "-s", setting)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert len(done.err) < 20_000
    assert not (tmp_path / "r").exists()


def test_an_empty_section_means_its_defaults(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    recipe = (files / "my.yaml").read_text(encoding="utf-8") + "decode:\nmodel:\n"
    (tmp_path / "my.yaml").write_text(recipe, encoding="utf-8")
    assert tfm("train", "-c", tmp_path / "my.yaml", *TINY, "--dry-run").code == 0


def test_options_that_exclude_each_other_are_refused(tfm: Tfm, run: Path) -> None:
    assert tfm("translate", "--run", run, "--json", "--format", "tsv", "x").code == 2
    assert tfm("translate", "--run", run, "-i", "").code == 2
    assert tfm("train", "--resume", "--dry-run").code == 2


def test_one_string_is_not_a_list_of_lines(run: Path) -> None:
    with pytest.raises(TypeError, match="list of lines"):
        load(str(run)).translate("one cats sleep.")


def test_no_output_replaces_what_a_command_reads_or_a_run_consists_of(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    (tmp_path / "in.txt").write_text("a\tb\n", encoding="utf-8")
    text = tmp_path / "in.txt"
    before = {file: file.read_bytes() for file in [*copy.rglob("*"), text] if file.is_file()}
    checkpoint = next(copy.glob("checkpoints/step-*"))
    own = [copy / "model.safetensors", copy / "tokenizer.model", copy / "run.json", checkpoint / "model.safetensors"]
    commands = [("translate", "--run", copy, "-o", place, "a dog .") for place in own]
    commands += [("translate", "--run", copy, wish, text, "-o", text, "a dog .") for wish in ("--glossary", "--forbid")]
    commands += [("score", "--run", copy, text, text, "-o", text), ("score", text, text, "-o", own[0])]
    commands += [("eval", "--run", copy, "--split", "test", "-o", own[0])]
    for command in commands:
        done = tfm(*command)
        assert done.code == 2, command
        assert "would" in done.err
        assert "replace" in done.err
    assert before == {file: file.read_bytes() for file in [*copy.rglob("*"), text] if file.is_file()}
    assert tfm("translate", "--run", copy, "-b", "1", "-o", copy / "out.txt", "a dog .").code == 0


@pytest.mark.parametrize("option", ["--batch-tokens", "--workers", "--device"])
@pytest.mark.parametrize("number", ["9" * 5000, "٣"], ids=["long", "of another script"])
def test_a_number_that_cannot_be_read_is_the_users_to_mend(tfm: Tfm, run: Path, option: str, number: str) -> None:
    done = tfm("translate", "--run", run, option, f"cuda:{number}" if option == "--device" else number, "a")
    assert (done.code, "error: " in done.err, len(done.err) < 1200) == (2, True, True)


def test_an_error_does_not_command_the_terminal(tfm: Tfm) -> None:
    done = tfm("train", "-c", "base.yaml", "-s", "train.lr=\x1b[31m你好")
    assert (done.code, "\x1b" in done.err, "你好" in done.err) == (2, False, True)


@pytest.mark.parametrize("buffering", ["PYTHONUNBUFFERED=", "PYTHONUNBUFFERED=1"])
def test_a_full_disk_behind_stdout_is_said(buffering: str) -> None:
    command = f"{buffering} {TFM} demo >/dev/full"
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (2, "error: stdout: No space left on device\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 549755813888 bytes."),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    ],
)
def test_memory_that_runs_out_is_one_message_wherever_it_does(error: Exception, capsys: pytest.CaptureFixture) -> None:
    def command() -> None:
        raise error

    assert run_guarded(command, debug=False) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "error: memory ran out"
    assert said[1].startswith("  hint: take a smaller model")


def test_another_error_of_torch_keeps_its_traceback() -> None:
    def command() -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError):
        run_guarded(command, debug=False)
