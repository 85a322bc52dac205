"""What holds for every training: how a step is cut, what a skipped step leaves, what averaging means."""

import copy
import functools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from training_rig import MODEL, best_weights, look, runtime, small_config, small_pairs, small_tokenizer, small_trainer

from transformer_cli.checkpoint import build_model
from transformer_cli.data.batching import collate
from transformer_cli.errors import TrainingFailed
from transformer_cli.runtime import seed_stream
from transformer_cli.training import objective, update
from transformer_cli.training.ema import Ema
from transformer_cli.training.optimizer import gradients
from transformer_cli.training.update import Updater


def state_of(trainer):
    """Return weights and moments."""
    snapshot = trainer._updater.snapshot(trainer.state.step, {})
    return {**snapshot.weights, **snapshot.optimizer, **(snapshot.ema or {})}


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@functools.cache
def teacher(dtype):
    seed_stream(99)
    return build_model(small_config(), small_tokenizer()).to(dtype).eval().requires_grad_(False)


def differing_views(self, model, batch, views=objective.Objective._views):
    """The passes over a batch, which differ without chance."""
    return [view * (1 + 0.3 * i) for i, view in enumerate(views(self, model, batch))]


OBJECTIVES = {
    "plain": {},
    "r-drop": {"r_drop": 2.0},
    "simcut": {"simcut": 2.0},
    "distillation": {"distill": 0.5, "teachers": ["teacher"]},
    "layers": {"checkpointing": "layer"},
}


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 99))
def test_micro_batches_are_one_batch(kind, monkeypatch, sizes, seed):
    monkeypatch.setattr(objective, "uncut_tokens", lambda ids, cutoff: ids % 7 != 0)
    monkeypatch.setattr(objective.Objective, "_views", differing_views)
    monkeypatch.setattr(update, "load_teachers", lambda paths, device: [teacher(torch.float64) for _ in paths])
    config = small_config(**OBJECTIVES[kind])
    model = build_model(small_config(model={"dropout": 0.0}), small_tokenizer()).double()
    pairs = small_pairs(sum(sizes), seed)

    def gradient(windows):
        updater = Updater(copy.deepcopy(model), config.train, runtime())
        batches = [collate(pairs, rows) for rows in windows]
        loss = updater.accumulate(batches, range(len(batches)), sum(batch.n_tokens for batch in batches))
        return loss, gradients(updater.model)

    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    cut = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    (loss_cut, cut_up), (loss_whole, whole) = gradient(cut), gradient([list(range(len(pairs)))])
    torch.testing.assert_close(loss_cut, loss_whole, rtol=1e-9, atol=1e-9)
    for a, b in zip(cut_up, whole, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


class Poisoned(nn.Module):
    """A model whose hidden states are not numbers in some forward passes."""

    def __init__(self, model, bad):
        super().__init__()
        self.model, self.bad, self.calls = model, bad, 0
        self.encode, self.project, self.output = model.encode, model.project, model.output

    def forward(self, src, tgt_in):
        return self.model(src, tgt_in)

    def decode(self, *args):
        self.calls += self.training
        hidden = self.model.decode(*args)
        return hidden * float("nan") if self.training and self.calls in self.bad else hidden


@pytest.mark.parametrize(("ema_decay", "optimizer"), [(None, "adamw"), (0.9, "adamw"), (None, "muon")])
def test_a_skipped_step_moves_nothing(tmp_path, ema_decay, optimizer):
    config = small_config(accumulate=1, ema_decay=ema_decay, optimizer=optimizer)
    model = Poisoned(build_model(config, small_tokenizer()), bad={3})
    trainer = small_trainer(tmp_path / "run", config, model=model)
    trainer._advance()
    trainer._advance()
    before, counters = {k: v.clone() for k, v in state_of(trainer).items()}, trainer.state.copy()
    trainer._advance()
    assert equal(before, state_of(trainer))
    assert (trainer.state.step, trainer.state.skipped) == (counters.step, 1)
    assert trainer.state.position != counters.position
    trainer._advance()
    assert (trainer.state.step, trainer.state.bad_in_a_row) == (3, 0)


def test_too_many_bad_steps_end_the_run_and_leave_the_checkpoint(tmp_path):
    config = small_config(accumulate=1, max_bad_steps=3, save_every=2)
    model = Poisoned(build_model(config, small_tokenizer()), bad=set(range(5, 100)))
    trainer = small_trainer(tmp_path / "run", config, model=model)
    with pytest.raises(TrainingFailed, match="3 times in a row"):
        trainer.train()
    assert trainer.state.skipped == 3
    assert trainer.run.info["status"] == "failed"
    assert trainer.run.load_checkpoint(4).step == 4


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_fp16_scales_unscales_before_clipping_and_recovers_from_overflow(tmp_path, optimizer):
    config = small_config(amp="fp16", accumulate=1, max_steps=8, max_bad_steps=1, optimizer=optimizer)
    trainer = small_trainer(tmp_path / "run", config)
    scaler = trainer._updater.scaler
    assert scaler.is_enabled()
    scaler._scale.fill_(2.0**40)  # it is there already: threads would each make one
    # This overflows in fp16: the first steps must be skipped, and are no failure.
    trainer.train()
    assert trainer.state.step == 8
    assert trainer.state.skipped > 0
    assert scaler.get_scale() < 2.0**40
    norms = [record.grad_norm for record in trainer._journal._listeners[0].records if record.grad_norm is not None]
    plain = small_trainer(tmp_path / "plain", small_config(accumulate=1, max_steps=8))
    plain.train()
    expected = [record.grad_norm for record in plain._journal._listeners[0].records]
    assert norms[0] == pytest.approx(expected[0], rel=0.5)  # of true gradients: scaled ones are 2**20 times as large


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 0.999), st.integers(1, 30))
def test_averaged_weights_follow_the_formula(decay, steps):
    model = nn.Linear(1, 1, bias=False).double()
    ema, expected = Ema(model, decay), model.weight.item()
    for step in range(1, steps + 1):
        model.weight.data.fill_(float(step))
        ema.update(model, step)
        d = min(decay, (1 + step) / (10 + step))
        expected = d * expected + (1 - d) * step
    assert ema.shadow["weight"].item() == pytest.approx(expected, rel=1e-9)
    with ema.applied(model):
        assert model.weight.item() == pytest.approx(expected, rel=1e-9)
    assert model.weight.item() == steps


def test_validating_saving_and_logging_do_not_move_the_training(tmp_path):
    def noisy(model, step):
        torch.manual_seed(step)  # a validation may do anything to the generators
        torch.rand(step)
        model.eval()
        return look(model, step)

    results = []
    for i, every in enumerate(
        ({}, {"validate_every": 1, "save_every": 1, "log_every": 1, "keep_last": 1}, {"log_every": 5})
    ):
        trainer = small_trainer(tmp_path / str(i), small_config(**every), validate=noisy)
        trainer.train()
        results.append(state_of(trainer))
    assert equal(results[0], results[1])
    assert equal(results[0], results[2])


@pytest.mark.parametrize(
    ("stop", "settings_"),
    [
        (1, {}),
        (5, {"ema_decay": 0.9}),
        (8, {"amp": "bf16"}),
        (11, {"ema_decay": 0.9, "amp": "fp16"}),
        (7, {"ema_decay": 0.9, "optimizer": "muon"}),
        (2, {"amp": "fp16", "optimizer": "muon"}),
        (5, {"r_drop": 2.0, "checkpointing": "layer"}),
        (5, {"simcut": 2.0, "amp": "bf16", "model": {"word_dropout": 0.1, "qk_norm": True, "zero_init": True}}),
        (5, {"distill": 0.5, "teachers": ["teacher"], "model": {"attention_dropout": 0.1}}),
    ],
    ids=str,
)
def test_resuming_is_never_having_stopped(tmp_path, monkeypatch, stop, settings_):
    monkeypatch.setattr(update, "load_teachers", lambda paths, device: [teacher(torch.float32) for _ in paths])
    folder = tmp_path
    whole = small_trainer(folder / "whole", small_config(**settings_))
    whole.train()
    first = small_trainer(folder / "halves", small_config(**settings_))
    for _ in range(stop):
        first._advance()
    first._save("interrupted")
    second = small_trainer(folder / "halves", small_config(**settings_))
    second.resume()
    assert second.state == first.state
    second.train()
    assert equal(state_of(whole), state_of(second))
    assert whole.state == second.state
    for name in ("model.safetensors", "checkpoints/step-12/state.json", "checkpoints/step-12/optimizer.safetensors"):
        assert (folder / "whole" / name).read_bytes() == (folder / "halves" / name).read_bytes()


def test_the_rig_has_dropout():
    assert MODEL["dropout"] > 0  # without it the tests above would not see a wrong random stream


def test_averaged_weights_are_validated_and_saved(tmp_path):
    seen = []

    def remember(model, step):
        seen.append({name: p.clone() for name, p in model.named_parameters()})
        return look(model, step)

    trainer = small_trainer(tmp_path / "run", small_config(ema_decay=0.9, max_steps=4), validate=remember)
    trainer.train()
    assert equal(seen[-1], trainer._updater.ema.shadow)
    assert equal(best_weights(trainer.run), trainer._updater.ema.shadow)
    assert not equal(trainer._updater.weights(), trainer._updater.ema.shadow)
    assert equal(trainer.run.load_checkpoint(4).weights, trainer._updater.weights())
