"""What holds for every training must hold with many features switched on together."""

import random
import signal
from functools import partial
from pathlib import Path

import everything as rig
import killable_run
import numpy as np
import pytest
import torch
from ranked_run import Scene, Signal, run_ranks

from transformer_cli.config import Config
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import Interrupted
from transformer_cli.training.data_order import DataOrder, batches_per_step

#: In the first epoch (the bidirectional one, where there is one), in the second one, and so late that the checkpoint is among the newest when they are
#: averaged; multiples of nothing that happens every so many steps.
STOPS = (2, 7, 11)
LAST = rig.TRAIN["max_steps"]

State = dict[str, torch.Tensor]
Whole = tuple[Config, Path, State]


def equal(a: State, b: State) -> bool:
    return a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a)


def changed(config: Config, **train: object) -> Config:
    return Config.model_validate(config.model_dump() | {"train": config.train.model_dump() | train})


def largest_difference(a: State, b: State) -> float:
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rig.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module", params=rig.VARIANTS)
def whole(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A run that nothing has disturbed: its configuration, its folder and its last state."""
    config = rig.everything(corpus, **rig.VARIANTS[request.param])
    trainer = rig.trainer_at(tmp_path_factory.mktemp(request.param) / "whole", config)
    assert trainer.train().ended == "finished"
    return config, trainer.run.path, rig.state_of(trainer)


def test_everything_is_switched_on_and_the_stops_lie_where_they_should(whole: Whole) -> None:
    config, settings = whole[0], whole[0].train
    made = rig.prepared(config)
    assert [count for count in made.dropped.values() if count] == [1, 1, 1, 1]
    assert set(made.dropped) >= {"repeats an earlier pair"}
    order = DataOrder(made.train_pairs, settings.batch_tokens, batches_per_step(settings, 1), settings.seed)
    first, second = order.steps_per_epoch(0), order.steps_per_epoch(1)
    assert STOPS[0] < first < STOPS[1] < first + second < settings.max_steps
    assert bool(settings.bidirectional_epochs) != bool(config.data.more_targets)
    assert len(order.epoch(1).batches) % settings.accumulate, "no window is cut short by the end of an epoch"
    assert settings.accumulate >= rig.THREADS
    assert settings.max_steps - settings.save_every < STOPS[2] < settings.max_steps
    frequencies = settings.validate_every, settings.save_every, settings.log_every
    assert all(step % every for step in STOPS for every in frequencies)


def test_stopped_in_both_kinds_of_epoch_a_run_ends_bit_identical(whole: Whole, tmp_path: Path) -> None:
    config, calm, state = whole
    for step in STOPS:
        stopped = rig.trainer_at(tmp_path / "run", config)
        with pytest.raises(Interrupted):
            rig.listen(stopped, rig.Listener(stepped=rig.signal_at(step, signal.SIGTERM))).train()
        assert stopped.state.step == step
        assert equal(rig.state_of(stopped), rig.state_of(rig.trainer_at(tmp_path / "run", config)))
    last = rig.trainer_at(tmp_path / "run", config)
    last.train()
    assert equal(rig.state_of(last), state)
    assert rig.end_of(tmp_path / "run") == rig.end_of(calm)


def test_killed_while_it_computes_saves_and_validates_a_run_ends_bit_identical(whole: Whole, tmp_path: Path) -> None:
    config, calm, _ = whole
    begin = partial(killable_run.start, tmp_path / "run", config, made_by=rig.dying)
    for moment, step in (("computing", 2), ("saving", 6), ("validated", 8)):
        process = begin(moment, step)
        process.join(60)
        assert process.exitcode == -signal.SIGKILL, (moment, (tmp_path / "run.out").read_text())
    process = begin("validated", LAST + 1)
    process.join(60)
    assert process.exitcode == 0, (tmp_path / "run.out").read_text()
    assert rig.end_of(tmp_path / "run") == rig.end_of(calm)


def test_a_seed_decides_everything_and_what_is_kept_in_memory_nothing(whole: Whole, tmp_path: Path) -> None:
    config, calm, state = whole
    for kept in sorted({"none", "attention", "layer"} - {config.train.checkpointing}):
        again = rig.trainer_at(tmp_path / kept, changed(config, checkpointing=kept))
        again.train()
        assert equal(rig.state_of(again), state)
        assert rig.end_of(tmp_path / kept) == rig.end_of(calm)
    first, other = (
        rig.trainer_at(tmp_path / f"seed {seed}", changed(config, seed=seed, max_steps=1)) for seed in (1, 2)
    )
    assert first.train().steps == other.train().steps == 1
    assert not equal(rig.state_of(first), rig.state_of(other))


def test_validating_saving_and_logging_move_nothing(whole: Whole, tmp_path: Path) -> None:
    config, _, state = whole
    often = {"validate_every": 2, "save_every": 1, "log_every": 1, "keep_last": 1, "average_last": 2}
    never = {"validate_every": 100, "save_every": 100, "log_every": 100, "average_last": None, "average_best": 2}
    other = changed(config, **(often if config.train.r_drop else never))
    trainer = rig.trainer_at(tmp_path / "run", other)
    rig.listen(trainer, rig.Listener(validated=disturb_generators)).train()
    assert equal(rig.state_of(trainer), state)


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif("not torch.cuda.is_available()")])],
)
def test_in_fp16_a_run_goes_on_where_it_stopped(corpus: Path, tmp_path: Path, device: str) -> None:
    config = rig.everything(corpus, **rig.VARIANTS["simcut"], amp="fp16")
    calm, stopped = (rig.trainer_at(tmp_path / name, config, device=device) for name in ("calm", "run"))
    for trainer in (calm, stopped):
        trainer._updater.scaler._scale.fill_(2.0**24)  # overflows, so that it has changed before the stop
    with pytest.raises(Interrupted):
        rig.listen(stopped, rig.Listener(stepped=rig.signal_at(STOPS[1], signal.SIGTERM))).train()
    assert stopped.state.skipped > 0
    again = rig.trainer_at(tmp_path / "run", config, device=device)
    assert equal(rig.state_of(stopped), rig.state_of(again))
    assert stopped._updater.scaler.state_dict() == again._updater.scaler.state_dict()
    assert again._updater.scaler.get_scale() < 2.0**24
    assert again.train().steps == LAST
    assert all(bool(tensor.isfinite().all()) for tensor in rig.state_of(again).values())
    if device == "cpu":  # a GPU promises no order of its sums
        assert calm.train().steps == LAST
        assert equal(rig.state_of(again), rig.state_of(calm))
        assert rig.end_of(tmp_path / "run") == rig.end_of(tmp_path / "calm")


def disturb_generators(step: int) -> None:
    """Do what a validation might do."""
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(step)


def test_batches_side_by_side_draw_what_they_draw_one_by_one(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = changed(whole[0], amp="off", max_steps=7)
    seeds: dict[int, list[list[int]]] = {1: [], 2: []}
    states = []
    for threads, drawn in seeds.items():
        trainer = rig.trainer_at(tmp_path / str(threads), config, threads=threads, dtype=torch.float64)
        accumulate = trainer._updater.accumulate
        monkeypatch.setattr(
            trainer._updater, "accumulate", lambda b, s, n, do=accumulate, to=drawn: to.append(s) or do(b, s, n)
        )
        trainer.train()
        states.append(rig.state_of(trainer))
    assert seeds[1] == seeds[2]
    assert len({seed for step in seeds[1] for seed in step}) == sum(map(len, seeds[1])) > 7
    assert largest_difference(*states) < 1e-9  # sums are taken in another order: equal but for the last bits


class Everything(Scene):
    """Ranks that read the corpus of this file; each computes two batches at a time."""

    threads = rig.THREADS

    def __init__(self, world_size: int, dtype: torch.dtype = torch.float32) -> None:
        self.world_size, self.dtype = world_size, dtype

    def data(self, config: Config) -> tuple[Tokenizer, EpochPairs]:
        made = rig.prepared(config)
        return made.tokenizer, made.train_pairs


class Stopped(Signal, Everything):
    """Rank 1 is asked to stop in its last batch of an epoch that is not the first."""

    passes = range(14, 15)


@pytest.mark.parametrize(
    ("variant", "amp", "per_rank", "rounding"),
    [
        ("r-drop", "off", 1, 1e-9),
        ("simcut", "off", 4, 1e-9),  # each rank computes two batches side by side, twice
        ("targets", "bf16", 2, 0.0),  # two threads of two ranks, or of one, add (a + c) + (b + d)
        ("simcut", "bf16", 4, 0.03),  # other last bits are rounded to other bf16 numbers; other masks are 0.08 away
    ],
)
def test_ranks_are_accumulation(
    corpus: Path, tmp_path: Path, variant: str, amp: str, per_rank: int, rounding: float
) -> None:
    batch_tokens = {1: 300, 2: 150, 4: 70}[per_rank]
    steps, dtype = (20, torch.float64) if amp == "off" else (7, torch.float32)
    settings = rig.VARIANTS[variant] | {"amp": amp, "max_steps": steps, "batch_tokens": batch_tokens}
    configs = (rig.everything(corpus, **settings | {"accumulate": count}) for count in (per_rank, 2 * per_rank))
    ranked = run_ranks(tmp_path / "ranked", Everything(2, dtype), next(configs))
    (alone,) = run_ranks(tmp_path / "alone", Everything(1, dtype), next(configs))
    assert [outcome["code"] for outcome in (*ranked, alone)] == [0, 0, 0], ranked
    for part in ("weights", "ema"):
        assert largest_difference(ranked[0][part], ranked[1][part]) == 0
        assert largest_difference(ranked[0][part], alone[part]) <= rounding
    assert ranked[0]["step"] == alone["step"] == steps
    assert ranked[0]["average"]["loss"] == pytest.approx(alone["average"]["loss"], rel=max(rounding / 100, 1e-9))


def test_ranks_that_a_signal_stopped_end_bit_identical_whatever_they_compute_again(
    corpus: Path, tmp_path: Path
) -> None:
    def trained(name: str, scene: Scene, checkpointing: str) -> list[dict]:
        config = rig.everything(corpus, **rig.VARIANTS["r-drop"], checkpointing=checkpointing)
        return run_ranks(tmp_path / name, scene, config)

    stopped = trained("run", Stopped(2), "attention")
    assert [(outcome["code"], outcome["step"]) for outcome in stopped] == [(143, 7), (143, 7)]
    continued, calm = trained("run", Everything(2), "layer"), trained("calm", Everything(2), "none")
    assert [outcome["code"] for outcome in (*continued, *calm)] == [0, 0, 0, 0]
    assert largest_difference(continued[0]["weights"], continued[1]["weights"]) == 0
    assert rig.end_of(tmp_path / "run") == rig.end_of(tmp_path / "calm")
