import math

import pytest
import torch
from training_rig import runtime, small_config, small_pairs, small_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.training import data_order
from transformer_cli.training.budget import StepTimer, last_step, steps_in_budget, stored_budget
from transformer_cli.training.data_order import DataOrder, Position
from transformer_cli.training.estimate import estimate
from transformer_cli.training.update import Updater


def settings(**limits):
    return small_config(**({"max_steps": None} | limits)).train


@pytest.mark.parametrize(
    ("limits", "budget", "expected"),
    [
        ({"max_steps": 7}, None, 7),
        ({"max_epochs": 3}, None, 30),
        ({"max_epochs": 3, "max_steps": 12}, None, 12),
        ({"max_epochs": 3, "max_steps": 99}, None, 30),
        ({"max_minutes": 1.0}, None, None),
        ({"max_minutes": 1.0}, 11, 11),
        ({"max_minutes": 1.0, "max_steps": 9}, None, 9),
        ({"max_minutes": 1.0, "max_steps": 9, "max_epochs": 1}, 5, 5),
    ],
)
def test_the_smallest_limit_counts(limits, budget, expected):
    assert last_step(settings(**limits), lambda epoch: 10, budget) == expected


def test_epochs_are_asked_only_as_far_as_needed():
    asked = []
    last_step(settings(max_epochs=1000, max_steps=15), lambda epoch: asked.append(epoch) or 10, None)
    assert asked == [0, 1]


def test_the_first_steps_are_not_timed():
    timer = StepTimer()
    for _ in range(3):
        timer.add(100.0, 10)
    assert not timer.is_ready(True, 1e9)
    for _ in range(20):
        timer.add(2.0, 10)
    assert timer.is_ready(True, 1e9)
    assert timer.seconds_per_token() == pytest.approx(0.2)


def test_all_of_the_warm_up_is_timed():
    timer = StepTimer()
    for _ in range(29):
        timer.add(2.0, 10)
    assert not timer.is_ready(False, 1e9)
    timer.add(22.0, 10)
    assert timer.is_ready(True, 1e9)
    assert timer.seconds_per_token() == pytest.approx((26 * 2.0 + 22.0) / 270)


def test_a_quarter_of_a_small_budget_is_enough_timing():
    timer = StepTimer()
    timer.add(3.0, 10)
    assert timer.is_ready(False, 12.0)
    assert timer.seconds_per_token() == pytest.approx(0.3)


def test_steps_in_budget_leave_time_for_validations():
    assert steps_in_budget(20, 100.0, 1.0, 0.0, 10) == 120
    assert steps_in_budget(20, 110.0, 1.0, 10.0, 10) == 70  # every step costs 1 + 10 / 10, and the last validation 10
    assert steps_in_budget(20, -5.0, 1.0, 1.0, 10) == 20


def test_other_minutes_change_the_stored_steps_in_proportion():
    info = {"time_budget": {"minutes": 0.1, "steps": 1001}}
    assert stored_budget(info, 0.1) == 1001
    assert stored_budget(info, 0.3) == 3003
    assert stored_budget(info, None) is None
    assert stored_budget({}, 0.1) is None


def test_windows_read_every_batch_once_and_end_with_the_epoch():
    order = DataOrder(EpochPairs(small_pairs()), 60, 4, seed=1)
    batches, at, seen = order.epoch(0).batches, Position(), []
    for _ in range(order.steps_per_epoch(0)):
        assert at.epoch == 0
        window = order.window(at).batches
        seen += window
        at = order.after(at)
    assert at == Position(1, 0)
    assert [list(rows) for rows in seen] == [list(rows) for rows in batches]
    assert len(window) == len(batches) % 4 or 4
    assert order.steps_per_epoch(0) == -(-len(batches) // 4)
    assert sorted(i for rows in seen for i in rows) == list(range(60))


def test_the_steps_of_coming_epochs_are_counted_without_cutting_them(monkeypatch):
    wanted = [len(DataOrder(EpochPairs(small_pairs()), 60, 1, seed=1).epoch(number).batches) for number in range(20)]
    assert len(set(wanted)) > 1
    monkeypatch.setattr(data_order, "epoch_batches", lambda *_, **__: pytest.fail("an epoch was cut"))
    order = DataOrder(EpochPairs(small_pairs()), 60, 1, seed=1)
    assert last_step(settings(max_epochs=20), order.steps_per_epoch, None) == sum(wanted)


@pytest.mark.parametrize("overflows", [False, True])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_estimate_counts_the_steps_of_the_limits_and_leaves_the_weights(monkeypatch, optimizer, overflows):
    """Also where a gradient overflows, as it does in the first step of fp16: 0 · inf is no number."""

    def overflown(self):
        next(self.model.parameters()).grad.fill_(math.inf)
        return torch.tensor(math.inf)

    if overflows:
        monkeypatch.setattr(Updater, "unscale_and_clip", overflown)
    config = small_config(optimizer=optimizer, weight_decay=0.1)
    model = build_model(config, small_tokenizer())
    before = [parameter.detach().clone() for parameter in model.parameters()]
    found = estimate(model, EpochPairs(small_pairs()), config.train, runtime())
    assert (found.steps, found.epochs) == (12, 4.0)
    assert found.minutes == pytest.approx(12 * found.seconds_per_step / 60)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
