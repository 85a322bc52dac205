"""Norm, feed-forward, residual wrapper and layers, one by one."""

import pytest
import torch
import torch.nn.functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from transformer_cli.model.norms import LayerNorm


def config(**settings: object) -> ModelConfig:
    return ModelConfig.model_validate({"d_model": 8, "n_heads": 2, "d_ff": 12, "dropout": 0.0} | settings)


def test_layer_norm_is_float32_under_autocast() -> None:
    norm, x = LayerNorm(64), torch.randn(5, 64).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        y = norm(x)
    assert y.dtype == torch.float32
    assert torch.equal(y, F.layer_norm(x.float(), (64,), norm.weight, norm.bias))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_of_a_16_bit_model_rounds_only_at_the_end(dtype: torch.dtype) -> None:
    norm, x = LayerNorm(64).to(dtype), (torch.randn(5, 64) * 100).to(dtype)
    assert torch.equal(norm(x), F.layer_norm(x.float(), (64,)).to(dtype))


def test_layer_norm_keeps_float64() -> None:
    norm, x = LayerNorm(64).double(), torch.randn(5, 64).double()
    expected = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    assert torch.allclose(norm(x), expected, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward_is_its_formula(activation: str, bias: bool) -> None:
    ffn = FeedForward(config(activation=activation, bias=bias))
    x, zero = torch.randn(2, 3, 8), torch.zeros(())
    h = x @ ffn.w_1.weight.T + (ffn.w_1.bias if bias else zero)
    if activation == "swiglu":
        gate = x @ ffn.w_g.weight.T + (ffn.w_g.bias if bias else zero)
        h = gate * torch.sigmoid(gate) * h
    elif activation == "gelu":
        h = h * 0.5 * (1 + torch.erf(h / 2**0.5))
    else:
        h = torch.maximum(h, zero)
    expected = h @ ffn.w_2.weight.T + (ffn.w_2.bias if bias else zero)
    assert torch.allclose(ffn(x), expected, atol=1e-6)
    assert (ffn.w_1.bias is not None) is bias


def test_feed_forward_drops_inside() -> None:
    ffn = FeedForward(config(dropout=0.5))
    x = torch.randn(2, 3, 8)
    assert not torch.equal(ffn(x), ffn(x))
    ffn.eval()
    assert torch.equal(ffn(x), ffn(x))


def test_residual_places_the_norm() -> None:
    x, sublayer = torch.randn(2, 3, 8), torch.nn.Linear(8, 8)
    pre, post = Residual(config(norm_placement="pre")), Residual(config(norm_placement="post"))
    assert torch.allclose(pre(x, sublayer), x + sublayer(F.layer_norm(x, (8,))), atol=1e-6)
    assert torch.allclose(post(x, sublayer), F.layer_norm(x + sublayer(x), (8,)), atol=1e-6)


def test_residual_drops_the_branch_and_not_the_stream() -> None:
    wrapper, x = Residual(config(dropout=0.5)), torch.randn(2, 30, 8)
    branch = wrapper(x, torch.ones_like) - x
    assert sorted(branch.round(decimals=3).unique().abs().tolist()) == [0.0, 2.0]


def test_each_place_has_its_own_implementation() -> None:
    places = config(attention={"encoder": "naive", "decoder": "sdpa", "cross": "naive"})
    decoder = DecoderLayer(places)
    assert EncoderLayer(places).self_attn.implementation == "naive"
    assert (decoder.self_attn.implementation, decoder.cross_attn.implementation) == ("sdpa", "naive")


def test_attention_settings_reach_the_layers() -> None:
    layer = EncoderLayer(config(attention_dropout=0.3, attention_scale=False, bias=False, d_k=3, d_v=5))
    assert layer.self_attn.dropout == 0.3
    assert layer.self_attn.scale == 1.0
    assert layer.self_attn.q_proj.bias is None
    assert layer.self_attn.k_proj.weight.shape == (6, 8)
    assert layer.self_attn.v_proj.weight.shape == (10, 8)
