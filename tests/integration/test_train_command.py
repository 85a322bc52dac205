"""``tfm train``: from files to a run folder, interrupted, continued, extended, fine-tuned; and what is refused."""

import hashlib
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from command_line import Tfm
from forked_tfm import ForkedTfm
from toy_language import TINY

from transformer_cli import load
from transformer_cli.commands import train
from transformer_cli.model import attention
from transformer_cli.recipe import load_recipe


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def records(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_run_is_self_contained_and_movable(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(run, moved)
    text = "one cats sleep."
    assert load(str(moved)).translate([text]) == tfm("translate", "--run", run, text).lines
    info = json.loads((moved / "run.json").read_text(encoding="utf-8"))
    assert (info["format"], info["status"], info["step"], info["recipe"]) == (1, "finished", 100, "my")
    assert info["versions"]["torch"]
    assert load_recipe(str(moved / "config.yaml")).train.max_steps == 100


def test_it_learns_the_toy_language(run: Path) -> None:
    found = [record for record in records(run) if record["kind"] == "validation"]
    assert found[-1]["bleu"] > 30
    assert found[-1]["signature"].startswith("nrefs:1")
    assert "beam 1" in found[-1]["decoding"]


def test_dev_bleu_of_the_log_equals_eval_of_that_checkpoint(tfm: Tfm, run: Path) -> None:
    logged = [record for record in records(run) if record["kind"] == "validation"][-1]
    checkpoint = run / "checkpoints" / f"step-{logged['step']}"
    done = tfm("eval", "--run", checkpoint, "--split", "dev", "--beam-size", "1", "--json")
    assert done.code == 0
    assert done.json["score"] == pytest.approx(logged["bleu"], abs=0.051)  # sacreBLEU's JSON has one decimal


def test_equal_training_gives_equal_bytes(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    assert tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "again", "--quiet", *TINY).code == 0
    assert sha256(tmp_path / "again" / "model.safetensors") == sha256(run / "model.safetensors")


def test_a_run_is_extended_as_if_it_had_been_longer_from_the_start(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    short, whole = tmp_path / "short", tmp_path / "whole"
    assert tfm("train", "-c", files / "my.yaml", "--run", short, *TINY, "-s", "train.max_steps=20").code == 0
    done = tfm("train", "--resume", "--run", short, "-s", "train.max_steps=30")
    assert (done.code, b"finished: 30 steps" in done.out) == (0, True)
    assert re.search(rb" s since it was resumed\nbest: dev BLEU [0-9.]+ \(greedy\), loss ", done.out)
    assert tfm("train", "-c", files / "my.yaml", "--run", whole, *TINY, "-s", "train.max_steps=30").code == 0
    last = Path("checkpoints") / "step-30"
    assert sha256(short / last / "model.safetensors") == sha256(whole / last / "model.safetensors")


def test_resuming_a_finished_run_says_so(tfm: Tfm, run: Path) -> None:
    before = sha256(run / "model.safetensors")
    done = tfm("train", "--resume", "--run", run)
    assert done.code == 0
    assert b"already finished" in done.out
    assert sha256(run / "model.safetensors") == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_tells_how_to_go_on(files: Path, tmp_path: Path, number: int) -> None:
    folder = tmp_path / "stopped"
    endless = ["-s", "train.max_steps=100000", "-s", "train.log_every=1"]
    process = ForkedTfm.start(tmp_path / "io", "train", "-c", files / "my.yaml", "--run", folder, *TINY, *endless)
    assert process.send_when((folder / "metrics.jsonl").exists, number) == 128 + number
    assert process.out == ""
    assert f"tfm train --resume --run {folder}" in process.err
    assert "Traceback" not in process.err
    step = json.loads((folder / "run.json").read_text(encoding="utf-8"))["step"]
    assert (folder / "checkpoints" / f"step-{step}").is_dir()


def test_fine_tuning_takes_weights_and_tokenizer(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned"
    settings = ["-s", f"train.init_from={run}", "-s", "train.max_steps=1", "-s", "train.lr=1e-9"]
    assert tfm("train", "-c", files / "my.yaml", "--run", tuned, *TINY, *settings).code == 0
    assert (tuned / "tokenizer.model").read_bytes() == (run / "tokenizer.model").read_bytes()
    texts = ["one cats sleep.", "two dogs wait."]
    assert load(str(tuned)).translate(texts) == load(str(run)).translate(texts)
    other = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "x", *TINY, *settings, "-s", "model.d_ff=32")
    assert other.code == 2
    assert "model.d_ff 32" in other.err
    assert not (tmp_path / "x").exists()


def test_dry_run_plans_and_writes_nothing(
    tfm: Tfm, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfm("train", "-c", files / "my.yaml", *TINY, "--dry-run")
    assert done.code == 0
    text = done.out.decode()
    assert [
        part for part in ("max_steps: 100", "training pairs", "total", "100 steps of", "minutes") if part not in text
    ] == []
    assert list(tmp_path.iterdir()) == []
    plan = tfm("train", "-c", files / "my.yaml", *TINY, "--dry-run", "--json").json
    assert plan["data"]["train"] > 0
    assert plan["estimate"]["steps"] == 100


def test_plain_progress_has_no_carriage_return_and_stdout_only_the_result(files: Path, tmp_path: Path) -> None:
    short = ["-s", "train.max_steps=4", "--json"]
    process = ForkedTfm.start(tmp_path / "io", "train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, *short)
    assert process.wait() == 0
    assert json.loads(process.out)["steps"] == 4
    assert "step 4/4" in process.err
    assert "\r" not in process.err
    assert "\x1b" not in process.err


def test_the_default_run_folder_is_recipe_and_time(
    tfm: Tfm, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tfm("train", "-c", files / "my.yaml", *TINY, "-s", "train.max_steps=2").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("my-2")
    listed = tfm("runs", "--json").json
    assert [(run["name"], run["pair"], run["steps"], run["status"]) for run in listed] == [
        (folder.name, "en-de", 2, "finished")
    ]
    assert re.search(rf" \d+\.\d \(greedy\) .* runs/{folder.name}$", tfm("runs").out.decode(), re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no recipe was given"),
        (["-c", "no-such.yaml"], "base.yaml"),
        (["-c", "base.yaml", "-s", "train.lrr=1"], "did you mean train.lr?"),
        (["-c", "base.yaml", "--device", "gpu"], "unknown device 'gpu'"),
        (["-c", "base.yaml", "--resume", "--overwrite"], "exclude each other"),
        (["--resume", "--run", "nowhere"], "there is no such run folder"),
        (["--resume"], "no run to continue"),
        (["-c", "base.yaml", "-s", "train.init_from=nowhere"], "there is no such run folder"),
        (["-c", "base.yaml", "-s", "tokenizer.model=none.model"], "none.model"),
    ],
)  # fmt: skip
def test_mistakes_are_one_message_and_exit_code_2(
    tfm: Tfm, arguments: list, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfm("train", *arguments)
    assert done.code == 2
    assert part in done.err
    assert "Traceback" not in done.err
    assert done.out == b""
    assert list(tmp_path.glob("runs/*")) == []


def test_debug_shows_the_traceback(tfm: Tfm) -> None:
    assert "Traceback" in tfm("train", "-c", "none.yaml", "--debug").err


def test_an_existing_run_is_never_replaced_by_accident(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    before = sha256(run / "model.safetensors")
    done = tfm("train", "-c", files / "my.yaml", "--run", run, *TINY)
    assert (done.code, "--overwrite" in done.err) == (2, True)
    assert sha256(run / "model.safetensors") == before
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    assert tfm("train", "-c", files / "my.yaml", "--run", tmp_path, "--overwrite", *TINY).code == 2
    assert (tmp_path / "thesis.txt").exists()


def test_only_some_keys_may_change_in_a_continued_run(tfm: Tfm, run: Path) -> None:
    done = tfm("train", "--resume", "--run", run, "-s", "model.d_model=64", "-s", "train.lr=1")
    assert done.code == 2
    assert "model.d_model" in done.err
    assert "train.lr" in done.err


def test_changed_data_are_noticed_even_with_equal_size_and_time(tfm: Tfm, run: Path, files: Path) -> None:
    path = files / "train.de"
    content, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(content.replace(b"Katzen", b"Kitzen"))
    os.utime(path, ns=times)
    try:
        done = tfm("train", "--resume", "--run", run, "-s", "train.max_steps=110")
    finally:
        path.write_bytes(content)
    assert done.code == 2
    assert "data are not those" in done.err


def test_unequal_files_start_nothing(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    (tmp_path / "short.de").write_text("eins\n", encoding="utf-8")
    done = tfm(
        "train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, "-s", f"data.train.tgt={tmp_path}/short.de"
    )
    assert done.code == 2
    assert [part for part in ("train.en", "400", "short.de", "1") if part not in done.err] == []
    assert not (tmp_path / "r").exists()


def test_when_nothing_is_left_the_counts_say_why(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, "-s", "data.max_length=2")
    assert done.code == 2
    assert "no training pair is left" in done.err
    assert re.search(r"- longer than data.max_length 2 +400\n", done.err)
    assert re.search(r"left +0\n", done.err)
    assert not (tmp_path / "r").exists()


def test_a_run_needs_no_data_to_translate(tfm: Tfm, files: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    shutil.copytree(files, copies)
    sides = f"{{src: {copies}/train.en, tgt: {copies}/train.de}}"
    assert (
        tfm(
            "train",
            "-c",
            files / "my.yaml",
            "--run",
            tmp_path / "r",
            *TINY,
            "-s",
            f"data.train={sides}",
            "-s",
            "train.max_steps=2",
        ).code
        == 0
    )
    shutil.rmtree(copies)
    assert tfm("translate", "--run", tmp_path / "r", "one cats sleep.").code == 0
    done = tfm("train", "--resume", "--run", tmp_path / "r", "-s", "train.max_steps=3")
    assert (done.code, f"{copies}/train.en" in done.err) == (2, True)


def test_a_pickle_is_refused_and_not_executed(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    import pickle

    class Payload:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "executed"),)

    bad = tmp_path / "bad"
    shutil.copytree(run, bad)
    (bad / "model.safetensors").write_bytes(pickle.dumps(Payload()))
    done = tfm("translate", "--run", bad, "hello")
    assert (done.code, "pickle" in done.err) == (2, True)
    assert not (tmp_path / "executed").exists()


def test_a_strangers_tokenizer_is_refused(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    other, mixed = tmp_path / "other", tmp_path / "mixed"
    tfm(
        "train",
        "-c",
        files / "my.yaml",
        "--run",
        other,
        *TINY,
        "-s",
        "train.max_steps=1",
        "-s",
        "tokenizer.vocab_size=310",
    )
    shutil.copytree(run, mixed)
    shutil.copy(other / "tokenizer.model", mixed / "tokenizer.model")
    done = tfm("translate", "--run", mixed, "hello")
    assert (done.code, "tokenizer" in done.err) == (2, True)


def test_a_read_only_place_is_the_users_mistake(tfm: Tfm, files: Path) -> None:
    done = tfm("train", "-c", files / "my.yaml", "--run", "/proc/run", *TINY, "-s", "train.max_steps=1")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_a_model_that_sees_the_future_is_not_trained(
    tfm: Tfm, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = attention.MultiHeadAttention.forward
    monkeypatch.setattr(
        attention.MultiHeadAttention, "forward", lambda *args, causal=False, **rest: whole(*args, **rest)
    )
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "blind", *TINY)
    assert done.code == 1
    assert "this model is not trained: decoder layer 1, masked self-attention, sees the future" in done.err
    assert not (tmp_path / "blind").exists()


def test_what_training_would_refuse_a_dry_run_refuses(tfm: Tfm, run: Path, files: Path) -> None:
    recipe = ["-c", files / "my.yaml", *TINY]
    done = tfm("train", *recipe, "--dry-run", "--run", run)
    assert (done.code, "--overwrite" in done.err) == (2, True)
    assert tfm("train", *recipe, "--dry-run", "--run", run, "--overwrite").code == 0
    for more in ([], ["--dry-run"]):
        done = tfm("train", *recipe, "--overwrite", *more)
        assert (done.code, "--overwrite has nothing to replace" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (["data.dev.src={dev}", "data.dev.tgt={dev}"], ["the dev set has no pairs", "data.dev: src", "data.dev_size"]),
        (["data.dev=null", "data.train={{tsv: {one}}}"], ["taken out as the dev split", "data.dev_size", "data.dev "]),
    ],
)
def test_without_pairs_the_place_and_the_key_are_named(
    tfm: Tfm, files: Path, tmp_path: Path, data: list[str], parts: list[str]
) -> None:
    (tmp_path / "dev").write_text("", encoding="utf-8")
    (tmp_path / "one").write_text("one cat.\teine Katze.\n", encoding="utf-8")
    options = [f"-s{key.format(dev=tmp_path / 'dev', one=tmp_path / 'one')}" for key in data]
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "r", *TINY, *options)
    assert done.code == 2
    assert [part for part in parts if part not in done.err] == []
    if "left" in done.err.split("hint")[0].splitlines()[-1]:
        assert re.search(r"left +0$", done.err.split("\n  hint")[0])


def test_batches_of_one_pair_are_announced(tfm: Tfm, files: Path) -> None:
    recipe = ["train", "-c", files / "my.yaml", *TINY, "--dry-run"]
    assert "make a batch of one" not in tfm(*recipe).err
    done = tfm(*recipe, "-s", "train.batch_tokens=1")
    assert "400 of 400 pairs make a batch of one: two have more than train.batch_tokens 1" in done.err


def test_a_plan_warns_of_what_training_would(tfm: Tfm, files: Path) -> None:
    sparse = "model.attention={encoder: sparse, decoder: sparse, cross: sdpa}"
    recipe = ["train", "-c", files / "my.yaml", *TINY, "-s", sparse, "-s", "train.warmup_steps=500", "--dry-run"]
    told = tfm(*recipe).err
    assert "warning: model.sparse.window 128 reaches across every text" in told
    assert "warning: train.warmup_steps 500 exceeds the run's 100 steps" in told
    assert "reaches across" not in tfm(*recipe, "-s", "model.sparse.window=2").err


def test_stopped_before_the_first_step_it_says_how_to_go_on(
    tfm: Tfm, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = ["train", "-c", files / "my.yaml", *TINY, "--run", tmp_path / "r"]

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(train, "prepare", stop)
        done = tfm(*recipe)
    assert (done.code, "before the first step; no run was made" in done.err) == (130, True)
    assert "error:" not in done.err
    assert not (tmp_path / "r").exists()
    with monkeypatch.context() as patch:
        patch.setattr(train.Trainer, "train", stop)
        done = tfm(*recipe)
    assert (done.code, f"tfm train --resume --run {tmp_path / 'r'}" in done.err) == (130, True)
    assert tfm("train", "--resume", "--run", tmp_path / "r", "-s", "train.max_steps=2").code == 0


def test_the_table_says_which_epoch_its_batches_are_of(tfm: Tfm, files: Path) -> None:
    def row(name: str, *more: str) -> int:
        out = tfm("train", "-c", files / "my.yaml", *TINY, "--dry-run", *more).out.decode()
        return int(re.search(rf"^{name} +([\d,]+)$", out, re.MULTILINE)[1].replace(",", ""))

    both = "-strain.bidirectional_epochs=1"
    assert row("target tokens of an epoch") < row("target tokens of the first epoch", both)
    first, later = row("batches of the first epoch", both), row("batches after epoch 1", both)
    assert later < first
    assert row("target tokens of the first epoch", "-strain.subword_sampling=0.1") > 0


@pytest.mark.parametrize(
    ("key", "value", "overrides"),
    [
        ("train.init_from", "{run}", []),
        ("train.init_from", "{link}/checkpoints/step-100", []),
        ("train.teachers", "[{run}]", ["train.distill=0.5"]),
        ("tokenizer.model", "{run}/tokenizer.model", []),
        ("data.train.src", "{parent}/*/my.en", []),
        (
            "data.more_targets.train.tsv",
            "{run}/my.tsv",
            ["data.more_targets=[{{lang: fr, train: {{tsv: '{run}/my.tsv'}}}}]"],
        ),
    ],
)
def test_a_run_does_not_replace_what_it_reads(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path, key: str, value: str, overrides: list[str]
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "runs" / "k"))
    (copy / "my.en").touch()
    (tmp_path / "link").symlink_to(copy)
    names = {"run": copy, "link": tmp_path / "link", "parent": copy.parent}
    told = [*overrides] if "more_targets" in key else [f"{key}={value}", *overrides]
    options = [word for override in told for word in ("-s", override.format(**names))]
    before = sorted(copy.rglob("*"))
    for also in ([], ["--dry-run"]):
        done = tfm("train", "-c", files / "my.yaml", "--run", copy, "--overwrite", *options, *also)
        assert (done.code, f"would be replaced, but {key} reads from it" in done.err) == (2, True), done.err
    assert sorted(copy.rglob("*")) == before


def test_a_run_does_not_replace_files_that_are_not_of_a_run(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "k"))
    asked = ("train", "-c", files / "my.yaml", "--run", copy, "--overwrite")
    own = ["scores.jsonl", "confidence.json", ".tmp-run.json", "checkpoints/.tmp-old-step-1/state.json"]
    for name in own:
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).touch()
    assert tfm(*asked, "--dry-run").code == 0
    mine = [
        "a.txt",
        "checkpoints/step-100/b.txt",
        "ctranslate2/c.txt",
        "d/e/f.txt",
        "model.safetensors.old",
        "notes.txt",
    ]
    for name in mine:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).touch()
    (copy / "link").symlink_to(files)
    before = sorted(copy.rglob("*"))
    for also in ([], ["--dry-run"]):
        done = tfm(*asked, *also)
        assert (done.code, "holds files that are not of a run, and would be lost" in done.err) == (2, True), done.err
        assert f"got: 7 files: {', '.join(sorted([*mine, 'link'])[:5])}, and 2 more\n" in done.err
        assert "hint: move them" in done.err
    assert sorted(copy.rglob("*")) == before


def test_a_run_does_not_replace_its_recipe_unless_it_is_its_own(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "k"))
    shutil.copy(copy / "config.yaml", copy / "my.yaml")
    done = tfm("train", "-c", copy / "my.yaml", "--run", copy, "--overwrite", "--dry-run")
    assert (done.code, "would be replaced, but --config reads from it" in done.err) == (2, True), done.err
    (copy / "my.yaml").unlink()  # a file of the user's, which would be lost
    assert tfm("train", "-c", copy / "config.yaml", "--run", copy, "--overwrite", "--dry-run").code == 0
