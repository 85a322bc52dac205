"""Several processes train one model: the same steps as one process, the same end for all, one that writes."""

from itertools import chain

import pytest
import torch
from ranked_run import Death, OtherTeacher, Poison, PoisonForGood, Scene, Signal, run_ranks
from training_rig import hashes, small_config, small_pairs, small_tokenizer

from transformer_cli.checkpoint import RunFolder
from transformer_cli.checkpoint.follower import FollowedRun
from transformer_cli.checkpoint.snapshot import CheckpointState
from transformer_cli.commands.plan import plan_training
from transformer_cli.commands.train import TrainRequest
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.errors import RunError, UserError
from transformer_cli.runtime import RankPlace, Runtime
from transformer_cli.training.continuation import refuse_changes
from transformer_cli.training.data_order import DataOrder, Position, batches_per_step
from transformer_cli.training.ranks import Ranks, joined
from transformer_cli.training.validation import Validation

STEPS = 20


class Alone(Scene):
    world_size = 1


class Three(Scene):
    world_size = 3


class NoGain(Scene):
    def validate(self, model, step):
        return Validation(1.0, 2.7, 1.0, "sig|v:test", [("a", "b", "c")], 0.1)


def largest_difference(a: dict, b: dict) -> float:
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


def alike(outcomes: list[dict]) -> dict:
    """Check that all ranks ended in the same state to the bit; return the main one's."""
    first = outcomes[0]
    assert all("step" in outcome for outcome in outcomes), outcomes
    for other in outcomes[1:]:
        assert all(first[key] == other[key] for key in ("step", "skipped", "best", "loss", "total", "average"))
        assert largest_difference(first["weights"], other["weights"]) == 0
        assert largest_difference(first["ema"] or {"": torch.zeros(1)}, other["ema"] or {"": torch.zeros(1)}) == 0
    return first


@pytest.mark.parametrize(
    ("scene", "more"),
    [
        (Scene(), {}),
        (Three(), {}),
        (Scene(), {"optimizer": "muon", "muon_lr": 0.02}),
        (Three(), {"r_drop": 2.0, "optimizer": "muon"}),
        (Scene(), {"simcut": 2.0, "average_last": 3}),
    ],
    ids=["two", "three", "muon", "r-drop", "simcut"],
)
def test_ranks_are_accumulation(tmp_path, scene, more):
    world = scene.world_size
    order = DataOrder(EpochPairs(small_pairs()), 50, world, seed=1)
    assert any(len(order.epoch(epoch).batches) % world for epoch in range(2))  # so that a rank has no batch once
    settings = {"batch_tokens": 50, "max_steps": STEPS, "ema_decay": 0.9, **more}
    ranked = run_ranks(tmp_path / "ranked", scene, small_config(accumulate=1, **settings))
    alone = run_ranks(tmp_path / "alone", Alone(), small_config(accumulate=world, **settings))
    main = alike(ranked)
    assert [outcome["code"] for outcome in ranked] == [0] * world
    assert (main["step"], main["ended"]) == (STEPS, "finished")
    assert largest_difference(main["weights"], alone[0]["weights"]) < 1e-9
    assert main["best"] == pytest.approx(alone[0]["best"], rel=1e-9)
    own = [
        [r for r in RunFolder.open(tmp_path / name).metrics() if r["kind"] == "train"] for name in ("ranked", "alone")
    ]
    assert [r["loss"] for r in own[0]] == pytest.approx([r["loss"] for r in own[1]], rel=1e-9)
    assert [r["grad_norm"] for r in own[0][:-1]] == pytest.approx([r["grad_norm"] for r in own[1][:-1]], rel=1e-9)


def test_the_main_rank_tries_the_average_and_all_know_what_came_of_it(tmp_path):
    config = small_config(accumulate=1, max_steps=12, average_last=3)
    first = alike(run_ranks(tmp_path / "run", Scene(), config))
    alone = run_ranks(tmp_path / "alone", Alone(), small_config(accumulate=2, max_steps=12, average_last=3))[0]
    assert first["average"] is not None
    assert first["average"]["steps"] == alone["average"]["steps"] == [6, 9, 12]
    assert first["average"]["loss"] == pytest.approx(alone["average"]["loss"], rel=1e-9)
    run = RunFolder.open(tmp_path / "run")
    assert run.info["average"] == first["average"]
    assert [record.get("average") for record in run.metrics()].count([6, 9, 12]) == 1
    longer = small_config(accumulate=1, max_steps=STEPS, average_last=3)
    again = alike(run_ranks(tmp_path / "run", Scene(), longer))
    run_ranks(tmp_path / "calm", Scene(), longer)
    assert again["average"]["steps"] == [15, 18, 20]
    assert hashes(tmp_path / "run") == hashes(tmp_path / "calm")


def test_a_followed_run_writes_nothing(tmp_path):
    run = FollowedRun(tmp_path / "nowhere", small_config(), small_tokenizer(), {})
    weights = {"w": torch.zeros(1)}
    with run.lock():
        run.clean()
        run.update_info({"status": "training"})
        run.replace_config(small_config(max_steps=13))
        run.save_checkpoint(CheckpointState(3, weights, {}, None, {}))
        run.prune(3, 1, 1, "bleu", [3])
        run.save_model(weights)
        run.save_average(weights)
        run.forget_average()
        run.append_metrics({"step": 1})
        run.append_samples({"step": 1})
        run.append_log("line")
        run.truncate_records(0)
    assert not (tmp_path / "nowhere").exists()
    assert (run.info["status"], run.config.train.max_steps, run.steps(), run.best_steps(3, 2, "bleu")) == (
        "training", 13, [], [],
    )  # fmt: skip


def test_early_stopping_and_the_time_budget_are_the_main_ranks(tmp_path):
    early = alike(run_ranks(tmp_path / "early", NoGain(), small_config(max_steps=60, patience=2)))
    assert (early["ended"], early["step"]) == ("stopped early", 12)
    config = small_config(max_steps=None, max_minutes=0.02, validate_every=1000)
    timed = alike(run_ranks(tmp_path / "timed", Scene(), config))
    assert timed["step"] == timed["total"] >= 1


@pytest.mark.parametrize("amp", ["off", "fp16"])
def test_what_is_not_finite_on_one_rank_is_skipped_by_all(tmp_path, amp):
    main = alike(run_ranks(tmp_path / "run", Poison(), small_config(accumulate=1, max_steps=STEPS, amp=amp)))
    assert main["ended"] == "finished"
    assert (main["skipped"] == 1) if amp == "off" else (main["skipped"] >= 1)


def test_a_rank_that_never_has_a_batch_goes_along(tmp_path):
    config = small_config(accumulate=1, batch_tokens=500, max_steps=6, amp="fp16")
    assert (
        max(len(DataOrder(EpochPairs(small_pairs()), 500, 3, seed=1).epoch(epoch).batches) for epoch in range(6))
        < Three.world_size
    )
    assert alike(run_ranks(tmp_path / "run", Three(), config))["ended"] == "finished"


def test_ranks_with_other_teachers_do_not_begin(tmp_path):
    main, other = run_ranks(tmp_path / "run", OtherTeacher())
    assert "the processes of this run have different teachers (train.teachers)" in main["error"]
    assert (main["code"], other["error"], "step" in main) == (1, "SystemExit: 1", False)


def test_too_many_bad_steps_end_all_and_are_told_once(tmp_path):
    config = small_config(accumulate=1, max_steps=STEPS, max_bad_steps=3)
    main, other = run_ranks(tmp_path / "run", PoisonForGood(), config)
    assert "3 times in a row" in main["error"]
    assert other["error"] == "SystemExit: 1"
    assert RunFolder.open(tmp_path / "run").info["status"] == "failed"


def test_a_signal_to_one_rank_stops_all_at_the_same_step_and_the_run_goes_on_as_if_never_stopped(tmp_path):
    config = small_config(accumulate=2, max_steps=STEPS, ema_decay=0.9)
    stopped = run_ranks(tmp_path / "run", Signal(), config)
    main = alike(stopped)
    assert [outcome["code"] for outcome in stopped] == [143, 143]
    assert "stopped by SIGTERM" in main["error"]
    assert "SystemExit" in stopped[1]["error"]
    assert 0 < main["step"] < STEPS
    run = RunFolder.open(tmp_path / "run")
    assert (run.info["status"], run.steps()[-1]) == ("interrupted", main["step"])
    alike(run_ranks(tmp_path / "run", Scene(), config))
    run_ranks(tmp_path / "calm", Scene(), config)
    assert hashes(tmp_path / "run") == hashes(tmp_path / "calm")


def test_a_rank_that_dies_ends_the_others_with_a_message(tmp_path):
    main, other = run_ranks(tmp_path / "run", Death(), small_config(accumulate=1, max_steps=STEPS, save_every=1))
    assert other["code"] == 9
    assert main["code"] == 1
    assert "lost contact with the other processes" in main["error"]
    run = RunFolder.open(tmp_path / "run")
    assert run.info["status"] == "failed"
    assert run.load_checkpoint(main["step"]).step > 0


def test_an_error_of_the_main_rank_alone_ends_all(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("in the way")
    main, other = run_ranks(tmp_path / "run", Scene())
    assert (main["code"], other["code"]) == (2, 2)
    assert other["error"] == "SystemExit: 2"


def test_only_the_main_rank_validates_and_writes(tmp_path):
    outcomes = run_ranks(tmp_path / "run", Scene())
    assert outcomes[0]["validated"] == outcomes[1]["validated"] == 3  # told to both, looked at by one
    run = RunFolder.open(tmp_path / "run")
    assert [record["step"] for record in run.metrics()] == sorted(record["step"] for record in run.metrics())
    assert len([record for record in run.metrics() if record["kind"] == "validation"]) == 3
    assert run.info["runtime"]["world_size"] == 2


def test_another_number_of_ranks_continues_a_run_whose_steps_stay_the_same(tmp_path):
    two = small_config(accumulate=1, max_steps=10)
    run_ranks(tmp_path / "run", Scene(), two)
    longer = {"max_steps": STEPS}
    with pytest.raises(RunError, match=r"-s train.accumulate=2"):
        refuse_changes(RunFolder.open(tmp_path / "run"), small_config(accumulate=1, **longer), 1)
    with pytest.raises(RunError, match="number of batches in a step"):
        refuse_changes(RunFolder.open(tmp_path / "run"), small_config(accumulate=2, **longer), 2)
    one = run_ranks(tmp_path / "run", Alone(), small_config(accumulate=2, **longer))[0]
    assert "world_size was 2 and is 1 now" in " ".join(one["notes"])
    whole = alike(run_ranks(tmp_path / "whole", Scene(), small_config(accumulate=1, **longer)))
    assert largest_difference(one["weights"], whole["weights"]) < 1e-9
    with pytest.raises(RunError, match="label_smoothing"):
        refuse_changes(RunFolder.open(tmp_path / "run"), small_config(accumulate=1, label_smoothing=0.5, **longer), 2)


def test_every_batch_of_a_window_belongs_to_one_rank():
    for count in range(7):
        shares = [list(Ranks(rank, 3).share(count)) for rank in range(3)]
        assert sorted(chain.from_iterable(shares)) == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_windows_of_several_ranks_are_consecutive_batches():
    settings = small_config(accumulate=2).train
    order = DataOrder(EpochPairs(small_pairs()), 60, batches_per_step(settings, 3), seed=1)
    assert len(order.window(Position()).batches) == 6


def test_a_lone_process_needs_no_group(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined(RankPlace.from_environment()) as ranks:
        tensor = torch.tensor([1.0, 2.0])
        ranks.all_reduce_sum([tensor])
        assert tensor.tolist() == [1.0, 2.0]
        assert (ranks.largest(3), ranks.broadcast("x"), ranks.together(lambda: 4), ranks.from_main(lambda: 5)) == (
            3, "x", 4, 5,
        )  # fmt: skip
        assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, RankPlace()),
        ({"WORLD_SIZE": "1", "RANK": "0"}, RankPlace()),
        ({"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}, RankPlace(3, 4, 1)),
        ({"WORLD_SIZE": "4", "RANK": "3"}, RankPlace(3, 4, 3)),
    ],
)
def test_the_place_among_the_ranks_comes_from_the_environment(monkeypatch, given, expected):
    _set(monkeypatch, given)
    assert RankPlace.from_environment() == expected
    runtime = Runtime.resolve("cpu", place=expected)
    assert (runtime.rank, runtime.world_size) == (expected.rank, expected.world_size)


@pytest.mark.parametrize(
    "given",
    [{"WORLD_SIZE": "2"}, {"WORLD_SIZE": "2", "RANK": "2"}, {"WORLD_SIZE": "x", "RANK": "0"}, {"WORLD_SIZE": "0"}],
)
def test_an_environment_that_contradicts_itself_is_refused(monkeypatch, given):
    _set(monkeypatch, given)
    with pytest.raises(UserError, match="which process this is"):
        RankPlace.from_environment()


def _set(monkeypatch, given):
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
        if name in given:
            monkeypatch.setenv(name, given[name])


def test_each_process_has_the_gpu_of_its_local_rank(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Runtime.resolve("cuda", place=RankPlace(3, 4, 1)).device == torch.device("cuda:1")
    with pytest.raises(UserError, match="cannot share cuda:0"):
        Runtime.resolve("cuda:0", place=RankPlace(0, 4, 0))
    with pytest.raises(UserError, match="cuda:2 is not there"):
        Runtime.resolve("cuda", place=RankPlace(2, 4, 2))


def test_one_plan_is_enough(monkeypatch, capsys):
    _set(monkeypatch, {"WORLD_SIZE": "2", "RANK": "1"})
    with pytest.raises(SystemExit, match="0"):
        plan_training(TrainRequest("base.yaml"))
    assert capsys.readouterr() == ("", "")
