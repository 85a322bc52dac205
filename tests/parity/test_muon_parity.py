"""Muon against its formula, written out matrix by matrix in float64, and against torch's own (bfloat16) one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rig import tiny_model
from torch import nn

from transformer_cli.config import TrainConfig
from transformer_cli.training.muon import Muon, newton_schulz, orthogonal_updates
from transformer_cli.training.optimizer import build_optimizers

#: Nine that lie or stand on 6 x 12, more than go through one product.
SHAPES = [(8, 8), (3, 12), (1, 5), *[(6, 12), (12, 6), (6, 12)] * 3]


def reference_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Map the singular values by five times the polynomial, on the singular values themselves."""
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    s = s / max(np.sqrt((s**2).sum()), 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u * s @ vt


def reference_run(weights, gradients, rate, momentum, decay):
    """Jordan et al. 2024 with the scale of Liu et al. 2025, for one matrix."""
    w, m = weights.copy(), np.zeros_like(weights)
    for g in gradients:
        m = momentum * m + (1 - momentum) * g
        w = w * (1 - rate * decay)
        w = w - rate * 0.2 * max(w.shape) ** 0.5 * reference_orthogonal((1 - momentum) * g + momentum * m)
    return w


def trained(optimizer_of, dtype, steps=4):
    """Return start, gradients and result of a few steps on made-up gradients."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in SHAPES]
    given_ = [[torch.randn(w.shape, generator=generator, dtype=torch.float64) for w in start] for _ in range(steps)]
    matrices = [nn.Parameter(w.to(dtype, copy=True)) for w in start]
    optimizer = optimizer_of(matrices)
    for gradients in given_:
        for matrix, gradient in zip(matrices, gradients, strict=True):
            matrix.grad = gradient.to(dtype)
        optimizer.step()
    return start, given_, [matrix.detach().double() for matrix in matrices]


def ours(matrices, rate=0.05, momentum=0.9, decay=0.3):
    optimizer = Muon(matrices, momentum=momentum, weight_decay=decay)
    optimizer.param_groups[0]["lr"] = rate
    return optimizer


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_steps_are_those_of_the_formula(dtype, tolerance):
    start, gradients, result = trained(ours, dtype)
    for i, found in enumerate(result):
        expected = reference_run(start[i].numpy(), [step[i].numpy() for step in gradients], 0.05, 0.9, 0.3)
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=tolerance)


def test_steps_are_torchs_within_its_bfloat16():
    def theirs(matrices):
        return torch.optim.Muon(matrices, 0.05, 0.3, 0.9, adjust_lr_fn="match_rms_adamw")

    start, _, mine = trained(ours, torch.float32)
    *_, torchs = trained(theirs, torch.float32)
    for i, w in enumerate(start):
        moved, apart = (mine[i] - w).norm(), (mine[i] - torchs[i]).norm()
        assert apart < 0.02 * moved, SHAPES[i]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 999), st.floats(1e-3, 1e3))
def test_a_direction_not_its_length_matters_and_lying_matrices_are_standing_ones(rows, columns, seed, length):
    x = torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    (update,) = orthogonal_updates([x])
    (longer, turned) = orthogonal_updates([length * x, x.T])
    torch.testing.assert_close(longer, update, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(turned, update.T, rtol=1e-7, atol=1e-9)
    assert update.shape == x.shape


def test_all_singular_values_come_near_one():
    torch.manual_seed(0)
    x = torch.randn(4, 16, 24) * torch.logspace(-1, 0, 16)[:, None]
    values = torch.linalg.svdvals(newton_schulz(x))
    assert 0.6 < values.min() < values.max() < 1.3


def test_bfloat16_products_give_nearly_the_same():
    torch.manual_seed(0)
    x = torch.randn(4, 16, 24) * torch.logspace(-1, 0, 16)[:, None]
    exact, low = newton_schulz(x), newton_schulz(x, torch.bfloat16)
    assert low.dtype == torch.float32
    assert 0 < (low - exact).norm() < 0.05 * exact.norm()
    assert 0.6 < torch.linalg.svdvals(low).min() < torch.linalg.svdvals(low).max() < 1.3


@pytest.mark.parametrize(("amp_dtype", "rounded"), [(None, False), (torch.bfloat16, True), (torch.float16, False)])
def test_products_are_bfloat16_where_the_models_are(amp_dtype, rounded):
    train = TrainConfig(optimizer="muon", max_steps=1)
    layers = nn.ModuleList([tiny_model(dtype=torch.float32)])
    (_, muon) = build_optimizers(layers, train, amp_dtype)
    (matrix, *_) = muon.param_groups[0]["params"]
    matrix.grad, before = torch.randn_like(matrix), matrix.detach().clone()
    muon.param_groups[0]["lr"] = 1.0
    muon.step()
    (exact,) = orthogonal_updates([matrix.grad])
    assert torch.allclose(before - matrix, exact, atol=1e-6) == (not rounded)


def test_the_update_has_the_size_of_adamws():
    torch.manual_seed(0)
    for update in orthogonal_updates([torch.randn(32, 32), torch.randn(64, 32), torch.randn(16, 64)]):
        assert update.square().mean().sqrt().item() == pytest.approx(0.2, rel=0.25)


def test_no_gradient_moves_nothing():
    matrix = nn.Parameter(torch.ones(3, 4))
    optimizer = ours([matrix], decay=0.0)
    optimizer.step()
    assert not optimizer.state
    matrix.grad = torch.zeros(3, 4)
    optimizer.step()
    assert torch.equal(matrix, torch.ones(3, 4))
