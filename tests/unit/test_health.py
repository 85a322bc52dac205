"""The stability list: what is planted is named, and a sound training is not."""

from collections.abc import Iterable

import pytest
import torch
from model_rig import sentences, tiny_model

from transformer_cli.config import Config
from transformer_cli.inspection.heads import HeadStatistics
from transformer_cli.inspection.health import (
    Check,
    dead_heads,
    heads_check,
    layer_variances,
    log_checks,
    settings_checks,
    variance_check,
)


def config(**keys: object) -> Config:
    sections: dict = {"data": {"corpus": "phrasebook"}, "model": {}, "train": {"max_steps": 1000}}
    for key, value in keys.items():
        section, name = key.split("__")
        sections[section][name] = value
    return Config.model_validate(sections)


def unsound(checks: Iterable[Check]) -> list[str]:
    checks = list(checks)
    assert all(check.evidence and (check.sound or check.advice) for check in checks)
    return [check.name for check in checks if not check.sound]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({}, []),
        ({"train__lr": 0.03}, ["learning rate"]),
        ({"train__lr": 0.003, "model__d_model": 1024, "train__warmup_steps": 4000}, ["learning rate"]),
        ({"train__lr": 0.03, "train__optimizer": "muon"}, []),
        ({"train__warmup_steps": 10, "train__lr": 0.001}, ["warm-up"]),
        ({"model__norm_placement": "post", "model__encoder_layers": 12}, ["norm placement"]),
        ({"model__norm_placement": "post"}, []),
        ({"model__encoder_layers": 24}, []),
    ],
)
def test_settings(keys: dict[str, object], named: list[str]) -> None:
    assert unsound(settings_checks(config(**keys), 10_000)) == named


def test_a_warm_up_must_end_before_the_run() -> None:
    for steps in (190, 200):
        assert unsound(settings_checks(config(train__warmup_steps=200), steps)) == ["warm-up"]
    assert unsound(settings_checks(config(train__warmup_steps=200), None)) == []


def record(step: int, norm: float | None = 0.5, skipped: int = 0) -> dict[str, object]:
    return {"kind": "train", "step": step, "grad_norm": norm, "skipped": skipped}


@pytest.mark.parametrize(
    ("records", "named"),
    [
        ([], []),
        ([{"kind": "validation", "step": 5}], []),
        ([record(step) for step in range(300, 900, 50)], []),
        ([record(step, 7.0 if step == 600 else 0.5) for step in range(300, 900, 50)], ["gradient norms"]),
        ([record(50, 7.0), *(record(step) for step in range(300, 900, 50))], []),  # in the warm-up that is usual
        ([record(step, 3.0) for step in range(300, 900, 50)], ["clipping"]),
        ([record(step, skipped=step // 20) for step in range(300, 900, 50)], ["skipped steps"]),
        ([record(300, None)], []),
    ],
)
def test_log(records: list[dict[str, object]], named: list[str]) -> None:
    torn: list[dict[str, object]] = [{"step": 1}, {"kind": "train"}, {"kind": "train", "step": 3, "skipped": 0}]
    assert unsound(log_checks([*torn, *records], config(train__warmup_steps=200))) == named


def test_no_clipping_is_no_fault() -> None:
    checks = list(log_checks([record(300, 30.0)], config(train__clip_norm=None)))
    assert unsound(checks) == []
    assert "off" in next(check.evidence for check in checks if check.name == "clipping")


@pytest.mark.parametrize("factor", [1e4, 1e-9, 0.0, float("nan")])
def test_variances_that_explode_or_vanish(factor: float) -> None:
    model = tiny_model(norm_placement="post", encoder_layers=3)
    batch = sentences(4, 6), sentences(4, 5, seed=1)
    assert variance_check(model, *batch).sound
    with torch.no_grad():
        norm = model.encoder.layers[1].feed_forward_residual.norm
        norm.weight.mul_(factor)
        norm.bias.mul_(factor)
    found = variance_check(model, *batch)
    assert not found.sound
    assert "encoder layer 1 to 2" in found.evidence or "encoder layer 2 to 3" in found.evidence


def test_a_variance_that_only_shrinks() -> None:
    model = tiny_model(norm_placement="post")
    with torch.no_grad():
        for part in model.decoder.layers[-1].feed_forward_residual.norm.parameters():
            part.mul_(1e-2)
    found = variance_check(model, sentences(4, 6), sentences(4, 5, seed=1))
    assert (found.sound, "decoder layer 1 to 2" in found.evidence) == (False, True)


def test_variances_leave_padding_and_the_model_alone() -> None:
    model = tiny_model().train()
    src, tgt = sentences(2, 6), sentences(2, 5, seed=1)
    more = torch.cat([src, torch.zeros(2, 3, dtype=torch.long)], 1)
    for stack, variances in layer_variances(model, src, tgt).items():
        assert variances == pytest.approx(layer_variances(model, more, tgt)[stack])
        assert len(variances) == 2
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_dead_heads() -> None:
    model = tiny_model()
    assert dead_heads(model) == []
    with torch.no_grad():
        model.encoder.layers[1].self_attn.out_proj.weight[:, 8:] *= 1e-4
        model.decoder.layers[0].cross_attn.v_proj.weight[:8] *= 1e-4
    expected = ["encoder layer 2, self-attention head 2", "decoder layer 1, cross-attention head 1"]
    assert dead_heads(model) == expected
    found = heads_check(model, [])
    assert not found.sound
    assert all(name in found.evidence for name in expected)


def test_heads_that_do_the_same() -> None:
    statistics = HeadStatistics()
    weights = torch.rand(1, 5, 5).softmax(-1)
    other = torch.eye(5)[None]
    statistics.add("encoder", 1, torch.cat([weights, other, weights]), torch.zeros(5, dtype=torch.bool))
    found = heads_check(tiny_model(), statistics.heads())
    assert not found.sound
    assert "encoder layer 1 head 3 as 1" in found.evidence
