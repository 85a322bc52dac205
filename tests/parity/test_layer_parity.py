"""Layers and stacks equal torch's own, with copied weights: outputs and gradients."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch_twins import TOLERANCE, assert_same

from transformer_cli.benchmark.torch_model import copy_weights, layer_twins, stack_twins, torch_settings
from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import DecoderLayer, EncoderLayer
from transformer_cli.model.masks import causal_mask
from transformer_cli.model.transformer import Transformer

B, S, T = 2, 7, 5
REAL = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
KINDS = list(itertools.product(TOLERANCE, ["pre", "post"], ["relu", "gelu"], ["naive", "sdpa"]))


def config_of(norm_placement: str, activation: str, implementation: str) -> ModelConfig:
    widths = {"d_model": 12, "n_heads": 3, "d_ff": 20, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    kind = {"norm_placement": norm_placement, "activation": activation, "attention": implementation}
    return ModelConfig.model_validate(widths | kind)


def shaken(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Move biases and norms away from zero and one, where a forgotten one would go unnoticed."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return module.to(dtype)


def embedded(length: int, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randn(B, length, 12, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize(("dtype", "norm_placement", "activation", "implementation"), KINDS)
def test_encoder_layer(dtype: torch.dtype, norm_placement: str, activation: str, implementation: str) -> None:
    config = config_of(norm_placement, activation, implementation)
    ours = shaken(EncoderLayer(config), dtype)
    theirs = nn.TransformerEncoderLayer(**torch_settings(config), dtype=dtype)
    copy_weights(layer_twins(ours, theirs))
    assert_same(
        lambda x: ours(x, REAL[:, None, None]),
        lambda x: theirs(x, src_key_padding_mask=~REAL),
        [embedded(S, dtype)],
        layer_twins(ours, theirs),
    )


@pytest.mark.parametrize(("dtype", "norm_placement", "activation", "implementation"), KINDS)
def test_decoder_layer(dtype: torch.dtype, norm_placement: str, activation: str, implementation: str) -> None:
    config = config_of(norm_placement, activation, implementation)
    ours = shaken(DecoderLayer(config), dtype)
    theirs = nn.TransformerDecoderLayer(**torch_settings(config), dtype=dtype)
    copy_weights(layer_twins(ours, theirs))
    future = ~causal_mask(T)[0, 0]
    assert_same(
        lambda x, memory: ours(x, memory, REAL[:, None, None]),
        lambda x, memory: theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~REAL),
        [embedded(T, dtype), embedded(S, dtype)],
        layer_twins(ours, theirs),
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")  # torch on its own inference path
def test_whole_stacks_with_their_final_norms(dtype: torch.dtype) -> None:
    config = config_of("pre", "relu", "sdpa")
    ours = shaken(Transformer(config, 9, 9), dtype)
    theirs = nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, **torch_settings(config), dtype=dtype)
    for stack in ("encoder", "decoder"):
        copy_weights(stack_twins(getattr(ours, stack), getattr(theirs, stack)))
    real = REAL[:, None, None]
    hidden = {"src_key_padding_mask": ~REAL, "memory_key_padding_mask": ~REAL, "tgt_mask": ~causal_mask(T)[0, 0]}
    assert_same(
        lambda src, tgt: ours.decoder(tgt, ours.encoder(src, real), real),
        lambda src, tgt: theirs(src, tgt, **hidden),
        [embedded(S, dtype), embedded(T, dtype)],
        itertools.chain(
            *(stack_twins(getattr(ours, stack), getattr(theirs, stack)) for stack in ("encoder", "decoder"))
        ),
    )


def test_post_norm_stacks_end_in_the_norm_of_their_last_layer() -> None:
    model = Transformer(config_of("post", "relu", "sdpa"), 9, 9)
    assert isinstance(model.encoder.norm, nn.Identity)
    assert isinstance(model.decoder.norm, nn.Identity)
    memory = model.encode(torch.tensor([[4, 5, 6]]))
    assert torch.allclose(memory.mean(-1), torch.zeros(1, 3), atol=1e-6)
    assert torch.allclose(memory.var(-1, correction=0), torch.ones(1, 3), atol=1e-3)
