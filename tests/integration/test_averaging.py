"""The average at the end of a run: which checkpoints, whose weights, and what a run says and keeps of it."""

import json
import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training_rig import Silent, best_weights, hashes, look, small_config, small_trainer

from transformer_cli.checkpoint import RunFolder, load_model
from transformer_cli.commands.train import print_report
from transformer_cli.errors import Interrupted
from transformer_cli.training import trainer as trainer_module
from transformer_cli.training.averaging import mean_weights

#: The rig saves at 3, 6, 9 and 12, validates at 4, 8 and 12, and would keep one checkpoint.
LAST = {"average_last": 3, "keep_last": 1, "keep_best": 0}


class Stopper(Silent):
    """Asks the run to stop after a step."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def stepped(self, step, total_steps):
        if step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


def judged(*losses):
    """A validation that finds these losses, one after the other, and the last one from then on."""
    left = list(losses)

    def validate(model, step):
        loss = left.pop(0) if len(left) > 1 else left[0]
        return look(model, step).__class__(loss, 1.0, 50.0 - loss, "sig", [("a", "b", "c")], 0.1)

    return validate


def mean_of(path, steps, kind="weights"):
    states = [RunFolder.open(path).load_checkpoint(step) for step in steps]
    return {
        name: np.mean([getattr(state, kind)[name].double().numpy() for state in states], axis=0)
        for name in getattr(states[0], kind)
    }


def assert_is(weights, expected):
    assert weights.keys() == expected.keys()
    for name, tensor in weights.items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], rtol=1e-6, atol=1e-8)


def records(path):
    """Return the records without what only a clock knows."""
    timing = ("tokens_per_second", "seconds_left")
    return [{k: v for k, v in record.items() if k not in timing} for record in RunFolder.open(path).metrics()]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_mean_is_rounded_once(models):
    steps, mean = mean_weights((i, {"w": torch.tensor(w)}) for i, w in enumerate(models))
    assert steps == list(range(len(models)))
    assert mean["w"].dtype == torch.float32
    np.testing.assert_array_equal(mean["w"].numpy(), np.float32(sum(np.float64(w) for w in models) / len(models)))


def test_the_mean_of_the_last_checkpoints_becomes_the_model_if_it_is_better(tmp_path, capsys):
    progress = Silent()
    trainer = small_trainer(tmp_path / "run", small_config(**LAST), validate=judged(9, 8, 7, 6.5), progress=progress)
    report = trainer.train()
    run = RunFolder.open(tmp_path / "run")
    assert run.steps() == [6, 9, 12]  # keep_last 1 notwithstanding
    assert_is(best_weights(run), mean_of(tmp_path / "run", [6, 9, 12]))
    assert report.average == {"steps": [6, 9, 12], "loss": 6.5, "bleu": 43.5, "is_model": True}
    assert report.best == {"step": 12, "loss": 7, "bleu": 43}
    assert run.info["average"] == report.average
    assert run.info["best"] == {"step": 12, "loss": 6.5, "bleu": 43.5}  # what tfm runs shows
    record = run.metrics()[-1]
    assert (record["kind"], record["step"], record["average"]) == ("average", 12, [6, 9, 12])
    assert (record["loss"], record["is_best"]) == (6.5, True)
    assert progress.validations[-1].average == [6, 9, 12]
    assert "validation of the average of steps 6, 9, 12: loss 6.500" in (run.path / "train.log").read_text()
    print_report(report, as_json=False)
    assert (
        "average of steps 6, 9, 12: dev BLEU 43.50 (greedy), loss 6.500, better: it is the run's"
        in capsys.readouterr().out
    )
    print_report(report, as_json=True)
    assert json.loads(capsys.readouterr().out)["average"]["is_model"] is True


def test_a_worse_mean_is_told_and_changes_nothing(tmp_path, capsys):
    plain = small_trainer(tmp_path / "plain", small_config(), validate=judged(9, 8, 7))
    plain.train()
    trainer = small_trainer(tmp_path / "run", small_config(**LAST), validate=judged(9, 8, 7, 7))
    report = trainer.train()
    assert hashes(tmp_path / "run") == hashes(tmp_path / "plain")
    assert RunFolder.open(tmp_path / "run").info["best"] == report.best == {"step": 12, "loss": 7, "bleu": 43}
    assert report.average["is_model"] is False
    assert not (tmp_path / "run" / "single.safetensors").exists()
    print_report(report, as_json=False)
    assert "not better: the best step stays the model" in capsys.readouterr().out


def test_the_mean_is_what_is_validated_and_the_training_weights_stay(tmp_path):
    seen = []

    def remember(model, step):
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})
        return look(model, step)

    trainer = small_trainer(tmp_path / "run", small_config(**LAST), validate=remember)
    trainer.train()
    assert_is(seen[-1], mean_of(tmp_path / "run", [6, 9, 12]))
    final = RunFolder.open(tmp_path / "run").load_checkpoint(12).weights
    assert all(torch.equal(final[name], weights) for name, weights in trainer._updater.weights().items())


def test_a_run_that_goes_on_says_of_its_model_what_holds_for_the_single_one(tmp_path):
    small_trainer(tmp_path / "run", small_config(**LAST), validate=judged(9, 8, 7, 6)).train()
    averaged = RunFolder.open(tmp_path / "run").info["best"]
    longer = small_trainer(tmp_path / "run", small_config(**LAST, max_steps=15))
    longer.resume()
    longer._begin()
    info = RunFolder.open(tmp_path / "run").info
    assert info["average"] is None
    assert info["best"] == longer.state.best != averaged


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_the_best_checkpoints_are_the_best_validated_ones(tmp_path, metric):
    config = small_config(average_best=2, keep_last=1, keep_best=0, stop_metric=metric, validate_every=2)
    trainer = small_trainer(tmp_path / "run", config, validate=judged(9, 3, 8, 4, 7, 6, 1))
    report = trainer.train()
    assert report.average["steps"] == [4, 8]  # both off the beat of save_every
    assert RunFolder.open(tmp_path / "run").steps() == [4, 8, 12]
    assert_is(best_weights(RunFolder.open(tmp_path / "run")), mean_of(tmp_path / "run", [4, 8]))


def test_with_a_moving_average_its_weights_are_averaged(tmp_path):
    small_trainer(tmp_path / "run", small_config(**LAST, ema_decay=0.9), validate=judged(9, 8, 7, 6)).train()
    assert_is(best_weights(RunFolder.open(tmp_path / "run")), mean_of(tmp_path / "run", [6, 9, 12], "ema"))


def test_a_last_step_off_the_beat_counts(tmp_path):
    report = small_trainer(tmp_path / "run", small_config(**LAST, max_steps=11), validate=look).train()
    assert report.average["steps"] == [6, 9, 11]


@pytest.mark.parametrize("stop", [2, 7, 11])
def test_an_interrupted_run_averages_what_an_undisturbed_one_does(tmp_path, stop):
    small_trainer(tmp_path / "calm", small_config(**LAST)).train()
    with pytest.raises(Interrupted):
        small_trainer(tmp_path / "run", small_config(**LAST), progress=Stopper(stop)).train()
    second = small_trainer(tmp_path / "run", small_config(**LAST))
    second.resume()
    assert second.train().average["steps"] == [6, 9, 12]
    assert hashes(tmp_path / "run") == hashes(tmp_path / "calm")
    assert records(tmp_path / "run") == records(tmp_path / "calm")


@pytest.mark.parametrize("method", ["save_average", "update_info"])
def test_killed_while_averaging_it_is_done_again(tmp_path, monkeypatch, method):
    small_trainer(tmp_path / "calm", small_config(**LAST), validate=judged(9, 8, 7, 6)).train()
    trainer = small_trainer(tmp_path / "run", small_config(**LAST), validate=judged(9, 8, 7, 6))
    original = getattr(trainer.run, method)

    def die(argument):
        original(argument)
        if method == "save_average" or argument.get("average"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer.run, method, die)
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
    second = small_trainer(tmp_path / "run", small_config(**LAST), validate=judged(6))
    second.resume()
    second.train()
    assert hashes(tmp_path / "run") == hashes(tmp_path / "calm")
    assert records(tmp_path / "run") == records(tmp_path / "calm")
    assert RunFolder.open(tmp_path / "run").info["average"] == RunFolder.open(tmp_path / "calm").info["average"]


@pytest.mark.parametrize("later", [5, 10], ids=["better later", "never better"])
def test_an_averaged_run_is_extended_as_if_it_had_been_longer(tmp_path, later):
    def config(steps):
        return small_config(**LAST, max_steps=steps, validate_every=6)

    small_trainer(tmp_path / "long", config(18), validate=judged(9, 7, later, 8)).train()
    small_trainer(tmp_path / "run", config(12), validate=judged(9, 7, 2)).train()
    assert RunFolder.open(tmp_path / "run").info["average"]["is_model"]
    longer = small_trainer(tmp_path / "run", config(18), validate=judged(later, 8))
    longer.resume()
    assert longer.train().average["steps"] == [12, 15, 18]
    assert hashes(tmp_path / "run") == hashes(tmp_path / "long")
    assert [(r["kind"], r["step"]) for r in records(tmp_path / "run") if r["kind"] != "train"] == [
        ("validation", 6), ("validation", 12), ("validation", 18), ("average", 18),
    ]  # fmt: skip
    assert not (tmp_path / "run" / "single.safetensors").exists()


def test_an_averaged_run_is_finished_and_one_that_was_not_can_be_averaged_later(tmp_path):
    config = small_config(keep_last=9)
    small_trainer(tmp_path / "run", config, validate=judged(9, 8, 7)).train()
    wish = small_trainer(tmp_path / "run", small_config(average_last=3, keep_last=9), validate=judged(6))
    wish.resume()
    assert wish.train().average["is_model"] is True
    before = hashes(tmp_path / "run"), records(tmp_path / "run")
    again = small_trainer(tmp_path / "run", small_config(average_last=3, keep_last=9), validate=judged(0))
    again.resume()
    report = again.train()
    assert (report.ended, report.average["steps"]) == ("already finished", [6, 9, 12])
    assert (hashes(tmp_path / "run"), records(tmp_path / "run")) == before
    assert_is(
        {name: p.detach() for name, p in load_model(tmp_path / "run")[0].named_parameters()},
        mean_of(tmp_path / "run", [6, 9, 12]),
    )


def test_a_damaged_checkpoint_is_named_and_left_out(tmp_path):
    notes = []

    def damage(model, step):
        if step == 12:
            (tmp_path / "run" / "checkpoints" / "step-9" / "model.safetensors").write_bytes(b"gone")
        return look(model, step)

    trainer = small_trainer(tmp_path / "run", small_config(**LAST), validate=damage, note=notes.append)
    assert trainer.train().average["steps"] == [6, 12]
    assert any("step-9 is left out of the average" in note for note in notes)
    assert any("only 2 of 3 checkpoints found: they are averaged" in note for note in notes)


def test_a_single_checkpoint_is_no_average(tmp_path):
    notes = []
    trainer = small_trainer(tmp_path / "run", small_config(**LAST, save_every=50), note=notes.append)
    assert trainer.train().average is None
    assert any("only 1 of 3 checkpoints found: nothing is averaged" in note for note in notes)


def test_weights_from_elsewhere_are_not_averaged(tmp_path):
    config = small_config(average_last=9, keep_last=9, init_from="elsewhere")
    assert small_trainer(tmp_path / "run", config).train().average["steps"] == [3, 6, 9, 12]


def test_a_signal_while_averaging_is_too_late(tmp_path):
    def interrupt(model, step):
        if (tmp_path / "run" / "checkpoints" / "step-12").exists():
            os.kill(os.getpid(), signal.SIGTERM)
        return look(model, step)

    report = small_trainer(tmp_path / "run", small_config(**LAST), validate=interrupt).train()
    assert (report.ended, report.average["steps"]) == ("finished", [6, 9, 12])
    assert RunFolder.open(tmp_path / "run").info["status"] == "finished"


def test_a_time_budget_leaves_room_for_the_validation_of_the_average(tmp_path, monkeypatch):
    settled = []
    for name, keys in {"without": {}, "with": {"average_last": 2}}.items():
        clock = iter(range(10**9))  # every look at the clock takes a second
        monkeypatch.setattr(trainer_module.time, "monotonic", lambda clock=clock: float(next(clock)))
        config = small_config(max_steps=None, max_minutes=1.5, accumulate=1, validate_every=50, save_every=50, **keys)
        trainer = small_trainer(tmp_path / name, config)
        while trainer.state.step < 24:
            trainer._advance()
        settled.append(trainer.run.info["time_budget"]["steps"])
    assert settled[1] < settled[0]
