"""RMSNorm against its formula, in every dtype."""

import pytest
import torch
import torch.nn.functional as F
from model_rig import sentences, tiny_model

from transformer_cli.model.head_norm import HeadNorm
from transformer_cli.model.norms import LayerNorm, RMSNorm


def test_rms_norm_is_its_formula_with_its_gradients() -> None:
    norm, x = RMSNorm(6).double(), torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    torch.nn.init.normal_(norm.weight)
    expected = norm.weight * x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(norm(x), expected, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(y.pow(3).sum(), (x, norm.weight)) for y in (norm(x), expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_16_bit_model_rounds_only_at_the_end(dtype: torch.dtype) -> None:
    norm, x = RMSNorm(64).to(dtype), (torch.randn(5, 64) * 100).to(dtype)
    assert torch.equal(norm(x), F.rms_norm(x.float(), (64,), eps=1e-5).to(dtype))


def test_it_is_float32_under_autocast() -> None:
    norm, x = RMSNorm(64), torch.randn(5, 64).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = norm(x)
    assert torch.equal(y, F.rms_norm(x.float(), (64,), norm.weight, 1e-5))


def test_a_head_norm_may_be_either() -> None:
    x = torch.randn(2, 3, 2, 8, dtype=torch.float64)
    torch.testing.assert_close(HeadNorm(8, "rms")(x), x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt())
    torch.testing.assert_close(HeadNorm(8)(x), F.layer_norm(x, (8,)))
    assert HeadNorm(8, "rms")(x.bfloat16()).dtype is torch.bfloat16


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_norm_is_the_same_everywhere_in_a_model(placement: str) -> None:
    model = tiny_model(norm="rms", norm_placement=placement, qk_norm=True)
    assert not [module for module in model.modules() if isinstance(module, LayerNorm)]
    norms = [module for module in model.modules() if isinstance(module, RMSNorm)]
    assert len(norms) == 2 * 2 + 2 * 3 + (2 if placement == "pre" else 0)
    assert model(sentences(2, 3), sentences(2, 4, seed=1)).isfinite().all()
    mean = torch.ones(16, dtype=torch.float64)
    centred, moved = (layer(mean * 5) for layer in (LayerNorm(16).double(), RMSNorm(16).double()))
    assert centred.abs().max() == 0  # what all elements have in common is lost in the one and kept in the other
    assert moved.mean().item() == pytest.approx(1, abs=1e-4)
