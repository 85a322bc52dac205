import json
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import killable_run
import pytest
import torch
from training_rig import Silent, hashes, look, small_config, small_pairs, small_tokenizer, small_trainer

from transformer_cli.checkpoint import RunFolder, build_model, snapshot
from transformer_cli.errors import DataError, DiskFull, Interrupted, RunError, TrainingFailed
from transformer_cli.training import trainer as trainer_module
from transformer_cli.training.trainer import Trainer
from transformer_cli.training.update import Updater

STEPS = 30  # ten epochs of the rig


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed; tests may read it."""
    path = tmp_path_factory.mktemp("calm") / "run"
    small_trainer(path).train()
    return path


def finish(path: Path) -> float:
    """Run to the end; return the seconds that it took."""
    began = time.monotonic()
    process = killable_run.start(path, STEPS)
    process.join(120)
    assert process.exitcode == 0, path.with_suffix(".out").read_text()
    return time.monotonic() - began


def train_records(path: Path) -> list[dict]:
    timing = ("tokens_per_second", "seconds_left")
    return [{k: v for k, v in record.items() if k not in timing} for record in RunFolder.open(path).metrics()]


def test_killed_five_times_the_run_ends_bit_identical(tmp_path):
    finish(tmp_path / "warm")
    seconds = finish(tmp_path / "calm")
    reached = []
    for _ in range(5):
        process = killable_run.start(tmp_path / "killed", STEPS)
        time.sleep(random.uniform(0.0, seconds / 2))  # the moment is what is tested
        process.kill()
        process.join()
        reached.append(RunFolder.open(tmp_path / "killed").steps()[-1:] if (tmp_path / "killed").exists() else [])
    finish(tmp_path / "killed")
    assert hashes(tmp_path / "killed") == hashes(tmp_path / "calm"), reached
    assert train_records(tmp_path / "killed") == train_records(tmp_path / "calm"), reached


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(tmp_path, number, code):
    process = killable_run.start(tmp_path / "run", 100_000)
    while not (tmp_path / "run" / "metrics.jsonl").exists():
        time.sleep(0.01)
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == code
    run = RunFolder.open(tmp_path / "run")
    assert f"tfm train --resume --run {run.path}" in (tmp_path / "run.out").read_text()
    assert run.info["status"] == "interrupted"
    assert run.steps()[-1] == run.info["step"] > 0


def test_a_second_signal_stops_at_once(tmp_path):
    def hang(model, step):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second signal did nothing")

    trainer = small_trainer(tmp_path / "run", validate=hang)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_run_continues_to_the_same_end(calm, tmp_path):
    def interrupt(model, step):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return look(model, step)

    with pytest.raises(Interrupted) as caught:
        small_trainer(tmp_path / "run", validate=interrupt).train()
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert 4 in RunFolder.open(tmp_path / "run").steps()
    second = small_trainer(tmp_path / "run")
    second.resume()
    assert second.state.step == 4
    assert second.train().ended == "finished"
    assert hashes(tmp_path / "run") == hashes(calm)


def test_a_finished_run_says_so_and_changes_nothing(tmp_path):
    small_trainer(tmp_path / "run").train()
    before = hashes(tmp_path / "run")
    again = small_trainer(tmp_path / "run")
    again.resume()
    report = again.train()
    assert (report.ended, report.steps) == ("already finished", 12)
    assert hashes(tmp_path / "run") == before


def test_a_finished_run_is_extended_as_if_it_had_been_longer(tmp_path):
    small_trainer(tmp_path / "long", small_config(max_steps=20)).train()
    small_trainer(tmp_path / "run").train()
    longer = small_trainer(tmp_path / "run", small_config(max_steps=20))
    longer.resume()
    assert longer.train().steps == 20
    assert hashes(tmp_path / "run") == hashes(tmp_path / "long")
    assert RunFolder.open(tmp_path / "run").config.train.max_steps == 20


def test_an_extended_decay_is_announced(tmp_path):
    small_trainer(tmp_path / "run", small_config(schedule="linear")).train()
    notes = []
    longer = small_trainer(tmp_path / "run", small_config(schedule="linear", max_steps=16), note=notes.append)
    longer.resume()
    longer.train()
    assert any("linear schedule now ends at step 16 instead of 12" in note for note in notes)


def test_a_trapezoid_stopped_before_its_decay_is_extended_as_if_it_had_been_longer(tmp_path):
    def config(steps):
        return small_config(schedule="trapezoidal", decay_share=0.5, max_steps=steps)

    small_trainer(tmp_path / "long", config(20)).train()
    first = small_trainer(tmp_path / "run", config(12))
    first._limits.settle(None)
    first._begin()
    for _ in range(6):
        first._advance()
    first._save("interrupted")
    notes = []
    longer = small_trainer(tmp_path / "run", config(20), note=notes.append)
    longer.resume()
    longer.train()
    assert hashes(tmp_path / "run") == hashes(tmp_path / "long")
    assert not any("schedule now ends" in note for note in notes)


def test_other_settings_are_refused_by_name(tmp_path):
    small_trainer(tmp_path / "run").train()
    other = small_config(model={"d_ff": 64}, lr=0.5, log_every=7)
    with pytest.raises(RunError) as caught:
        small_trainer(tmp_path / "run", other).resume()
    assert caught.value.got == "other values for model.d_ff, train.lr"


def test_an_edited_config_yaml_changes_no_training(tmp_path):
    run = small_trainer(tmp_path / "run", small_config(max_steps=4)).train().run
    text = (run / "config.yaml").read_text()
    assert "lr: 0.01" in text
    (run / "config.yaml").write_text(text.replace("lr: 0.01", "lr: 0.3").replace("max_steps: 4", "max_steps: 6"))
    edited = RunFolder.open(run).config
    assert (edited.train.lr, edited.train.max_steps) == (0.3, 6)
    with pytest.raises(RunError, match=r"other values for train\.lr\n"):  # a limit may be changed, even by hand
        small_trainer(run, edited).resume()


def test_a_run_whose_checkpoints_were_deleted_is_not_started_over(tmp_path):
    run = small_trainer(tmp_path / "run", small_config(max_steps=4)).train().run
    shutil.rmtree(run / "checkpoints")
    weights = (run / "model.safetensors").read_bytes()
    with pytest.raises(RunError, match=r"checkpoints are gone, at step 4[\s\S]*init_from"):
        small_trainer(run, small_config(max_steps=6)).resume()
    assert (run / "model.safetensors").read_bytes() == weights


def test_a_run_killed_before_its_first_checkpoint_starts_over(calm, tmp_path):
    RunFolder.create(tmp_path / "run", small_config(), small_tokenizer(), {}, overwrite=False).append_metrics(
        {"step": 1}
    )
    trainer = small_trainer(tmp_path / "run")
    trainer.resume()
    trainer.train()
    assert hashes(tmp_path / "run") == hashes(calm)
    assert train_records(tmp_path / "run") == train_records(calm)


def test_a_damaged_newest_checkpoint_is_passed_over_and_replaced(calm, tmp_path):
    small_trainer(tmp_path / "run").train()
    (tmp_path / "run" / "checkpoints" / "step-12" / "optimizer.safetensors").write_bytes(b"gone")
    notes = []
    trainer = small_trainer(tmp_path / "run", note=notes.append)
    trainer.resume()
    assert trainer.state.step == 9
    assert "step-12 cannot be used" in notes[0]
    trainer.train()
    assert hashes(tmp_path / "run") == hashes(calm)


def test_a_newest_checkpoint_that_could_not_be_read_once_is_not_lost(tmp_path, monkeypatch):
    """A disk that fails for a moment looks like a damaged file."""
    config = small_config(keep_last=2, keep_best=0)
    small_trainer(tmp_path / "run", config).train()
    whole, read = hashes(tmp_path / "run"), snapshot._hash
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "_hash", lambda path: None if path.parent.name == "step-12" else read(path))
        trainer = small_trainer(tmp_path / "run", config)
        trainer.resume()
        trainer._advance()
        trainer._save("interrupted")
    assert RunFolder.open(tmp_path / "run").steps() == [9, 10, 12]
    assert hashes(tmp_path / "run") == whole
    again = small_trainer(tmp_path / "run", config)
    again.resume()
    assert again.state.step == 12


def test_a_run_killed_between_its_last_records_and_its_last_checkpoint_writes_none_twice(tmp_path, monkeypatch):
    """Step 12 is a multiple of save_every, and neither of log_every nor of validate_every."""
    config = small_config(validate_every=5, log_every=5)
    small_trainer(tmp_path / "calm", config).train()
    trainer = small_trainer(tmp_path / "run", config)
    save = Trainer._save

    def killed_at_the_second_save_of_12(self, *status):
        if self.state.step == 12 and self.state.validation is not None:
            raise KeyboardInterrupt
        save(self, *status)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_save", killed_at_the_second_save_of_12)
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
    again = small_trainer(tmp_path / "run", config)
    again.resume()
    again.train()
    assert train_records(tmp_path / "run") == train_records(tmp_path / "calm")
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == (tmp_path / "calm" / "samples.jsonl").read_bytes()


def test_when_all_checkpoints_are_damaged_nothing_is_overwritten(tmp_path):
    small_trainer(tmp_path / "run").train()
    for state in (tmp_path / "run" / "checkpoints").glob("*/state.json"):
        state.unlink()
    with pytest.raises(RunError, match="all checkpoints are damaged"):
        small_trainer(tmp_path / "run").resume()


def test_another_machine_is_announced(tmp_path):
    small_trainer(tmp_path / "run").train()
    run = RunFolder.open(tmp_path / "run")
    run.update_info({"runtime": run.info["runtime"] | {"threads": 64, "torch": "1.0"}})
    notes = []
    small_trainer(tmp_path / "run", note=notes.append).resume()
    assert [note.split(":")[1].split(" was ")[0].strip() for note in notes] == ["threads", "torch"]


def test_early_stopping_counts_validations_across_a_resume(tmp_path):
    def worse(model, step):
        return look(model, step).__class__(5.0 + step, 1.0, 50.0 - step, "sig", [], 0.1)

    config = small_config(max_steps=100, validate_every=2, patience=3)
    whole = small_trainer(tmp_path / "whole", config, validate=worse).train()
    assert (whole.ended, whole.steps, whole.best["step"]) == ("stopped early", 8, 2)
    first = small_trainer(tmp_path / "run", config, validate=worse)
    for _ in range(5):
        first._advance()
    first._save()
    second = small_trainer(tmp_path / "run", config, validate=worse)
    second.resume()
    assert second.train().steps == 8
    assert hashes(tmp_path / "run") == hashes(tmp_path / "whole")


def test_minutes_become_steps_once_and_are_stored(tmp_path, monkeypatch):
    clock = iter(range(10**9))  # every look at the clock takes a second
    monkeypatch.setattr(trainer_module.time, "monotonic", lambda: float(next(clock)))
    config = small_config(
        max_steps=None, max_minutes=1.5, accumulate=1, validate_every=50, save_every=50, schedule="linear"
    )
    first = small_trainer(tmp_path / "run", config)
    while first.state.step < 24:
        first._advance()
    stored = RunFolder.open(tmp_path / "run").info["time_budget"]
    assert stored["minutes"] == 1.5
    assert 24 < stored["steps"] < 90
    monkeypatch.setattr(trainer_module.time, "monotonic", lambda: 0.0)  # from now on the clock says nothing
    second = small_trainer(tmp_path / "run", config)
    second.resume()
    assert second.train().steps == stored["steps"]
    longer = small_trainer(tmp_path / "run", small_config(**config.train.model_dump() | {"max_minutes": 3.0}))
    longer.resume()
    assert longer.train().steps == 2 * stored["steps"]


def test_a_stop_gives_no_minutes_back(tmp_path, monkeypatch):
    now, step = [0.0], Updater.step

    def a_second_long(*arguments):
        now[0] += 1.0
        step(*arguments)

    monkeypatch.setattr(trainer_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Updater, "step", a_second_long)
    config = small_config(max_steps=None, max_minutes=1.5, accumulate=1, validate_every=500, save_every=500)
    small_trainer(tmp_path / "run", config)
    for stopped_at in (10, 20, 30):
        progress = Silent()
        progress.stepped = lambda at, _, end=stopped_at: os.kill(os.getpid(), signal.SIGINT) if at == end else None
        trainer = small_trainer(tmp_path / "run", config, progress=progress)
        trainer.resume()
        with pytest.raises(Interrupted):
            trainer.train()
        assert RunFolder.open(tmp_path / "run").info["time_budget_spent"] == stopped_at
        now[0] += 1000.0  # nobody trains
    trainer = small_trainer(tmp_path / "run", config)
    trainer.resume()
    assert trainer.train().steps == pytest.approx(90, abs=3)  # the mean step is not quite that of the timed ones


def test_a_warmup_longer_than_the_run_is_announced_once(tmp_path):
    notes = []
    small_trainer(tmp_path / "run", small_config(warmup_steps=50), note=notes.append).train()
    assert sum("warmup_steps 50 exceeds the run's 12 steps" in note for note in notes) == 1


def test_equal_translations_are_warned_about(tmp_path):
    def same(model, step):
        return look(model, step).__class__(1.0, 1.0, 1.0, "sig", [], 0.9)

    notes = []
    small_trainer(tmp_path / "run", validate=same, note=notes.append).train()
    assert sum("90% of the translations are the same sentence" in note for note in notes) == 3


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
        MemoryError(),
    ],
)
def test_out_of_memory_names_the_batch_and_the_key(tmp_path, error):
    class Greedy(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def encode(self, src):
            raise error

        def decode(self, *args):
            raise AssertionError("never reached: the encoder comes first")

    model = Greedy(build_model(small_config(), small_tokenizer()))
    with pytest.raises(TrainingFailed, match=r"batch of \d+ rows, each of \d+ source and \d+ target tokens") as caught:
        small_trainer(tmp_path / "run", model=model).train()
    assert "train.batch_tokens (now 60)" in caught.value.hint


def test_a_full_disk_ends_the_run_and_it_goes_on_as_if_nothing_had_been(calm, tmp_path):
    trainer = small_trainer(tmp_path / "run")
    for _ in range(3):
        trainer._advance()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # no file of weights gets through
    try:
        with pytest.raises(DiskFull, match="disk is full") as full:
            trainer.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (full.value.exit_code, full.value.where) == (2, str(tmp_path / "run" / "model.safetensors"))
    assert RunFolder.open(tmp_path / "run").steps() == [3]
    assert RunFolder.open(tmp_path / "run").info["status"] == "failed"
    again = small_trainer(tmp_path / "run")
    again.resume()
    again.train()
    assert hashes(tmp_path / "run") == hashes(calm)


def test_no_pairs_is_an_error_and_no_finished_run(tmp_path):
    empty = small_pairs(0)
    with pytest.raises(DataError, match="nothing to train on"):
        small_trainer(tmp_path / "run", pairs=empty)


def test_epochs_end_a_run(tmp_path):
    report = small_trainer(tmp_path / "run", small_config(max_steps=None, max_epochs=2)).train()
    assert report.epochs == 2.0


def test_the_weights_of_another_run_are_stored_before_the_first_step(tmp_path):
    config = small_config(init_from="elsewhere", keep_last=50, keep_best=0)
    small_trainer(tmp_path / "run", config).train()
    assert RunFolder.open(tmp_path / "run").steps()[0] == 0


def test_the_metrics_hold_everything(tmp_path):
    small_trainer(tmp_path / "run").train()
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records if r["kind"] == "train"] == [2, 4, 6, 8, 10, 12]
    assert [r["step"] for r in records if r["kind"] == "validation"] == [4, 8, 12]
    assert {"loss", "lr", "grad_norm", "tokens_per_second", "epoch", "skipped"} <= records[0].keys()
    validation = next(r for r in records if r["kind"] == "validation")
    assert {"loss", "perplexity", "bleu", "signature", "decoding"} <= validation.keys()
    assert "BLEU" in (tmp_path / "run" / "train.log").read_text()


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ({"max_steps": 12}, {"max_steps": 11}, "max_steps"),
        ({"max_steps": 12}, {"max_steps": 40, "max_epochs": 1}, "max_epochs"),
        ({"max_steps": 12}, {"max_steps": 12, "max_epochs": 4}, None),
        ({"max_steps": 12}, {"max_steps": 14}, None),
    ],
)
def test_a_limit_below_what_is_done_is_refused_and_not_stored(tmp_path, before, after, named):
    small_trainer(tmp_path / "run", small_config(**before)).train()
    stored = (tmp_path / "run" / "config.yaml").read_bytes()
    again = small_trainer(tmp_path / "run", small_config(**after))
    if named is None:
        again.resume()
        assert RunFolder.open(tmp_path / "run").config.train.max_steps == after["max_steps"]
        return
    with pytest.raises(RunError, match=f"train.{named} is lower than what the run has done"):
        again.resume()
    assert (tmp_path / "run" / "config.yaml").read_bytes() == stored


@pytest.mark.parametrize("schedule", ["linear", "cosine", "trapezoidal", "inverse_sqrt"])
def test_minutes_do_not_lift_a_rate_that_has_begun_to_fall(tmp_path, schedule):
    """Until they are steps nobody knows where the run ends, so the rate would be the peak again."""
    small_trainer(tmp_path / "run", small_config(max_steps=12, schedule=schedule)).train()
    timed = small_trainer(tmp_path / "run", small_config(max_steps=None, max_minutes=5.0, schedule=schedule))
    if schedule in ("linear", "cosine"):
        with pytest.raises(RunError, match=r"train\.max_minutes cannot become the only limit"):
            timed.resume()
    else:
        timed.resume()
    both = small_trainer(tmp_path / "run", small_config(max_steps=15, max_minutes=5.0, schedule=schedule))
    both.resume()
    assert both.train().steps == 15


def test_minutes_below_what_is_done_are_refused(tmp_path):
    run = small_trainer(tmp_path / "run")
    run.train()
    run.run.update_info({"time_budget": {"minutes": 6.0, "steps": 12}})
    less = small_trainer(tmp_path / "run", small_config(max_minutes=5.0))
    with pytest.raises(RunError, match=r"train\.max_minutes is lower") as caught:
        less.resume()
    assert caught.value.got == "train.max_minutes 5, which comes to 10"
    small_trainer(tmp_path / "run", small_config(max_minutes=6.0)).resume()
