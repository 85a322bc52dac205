"""The assembled model: options, sharing, gradients, maps, counts."""

import copy
import itertools

import pytest
import torch
from model_rig import VOCAB, sentences, tiny_model
from torch import nn

from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer, parameter_table

OPTIONS = list(
    itertools.product(
        ["relu", "gelu", "swiglu"],
        ["pre", "post"],
        ["none", "decoder", "all"],
        ["sinusoidal", "learned"],
        [True, False],
    )
)


@pytest.mark.parametrize(("activation", "norm_placement", "tie", "positions", "bias"), OPTIONS)
def test_gradients_reach_every_parameter(
    activation: str, norm_placement: str, tie: str, positions: str, bias: bool
) -> None:
    options = {"activation": activation, "norm_placement": norm_placement, "tie_embeddings": tie}
    model = tiny_model(positions=positions, bias=bias, **options).train()
    logits = model(sentences(3, 6), sentences(3, 5, seed=1))
    assert logits.shape == (3, 5, VOCAB)
    nn.functional.cross_entropy(logits.flatten(0, 1), sentences(3, 5, seed=2).flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name.endswith("k_proj.bias"):  # adds the same to all scores of a query, which softmax does not see
            assert parameter.grad.abs().max() < 1e-10, name
        else:
            assert parameter.grad.abs().max() > 1e-8, name


@pytest.mark.parametrize(("tie", "distinct"), [("none", 3), ("decoder", 2), ("all", 1)])
def test_tied_embeddings_are_one_parameter(tie: str, distinct: int) -> None:
    model = tiny_model(tie_embeddings=tie)
    for tied in (model, copy.deepcopy(model)):
        weights = {tied.src_embedding.tokens.weight, tied.tgt_embedding.tokens.weight, tied.output.weight}
        assert len(weights) == distinct
        assert sum(p.shape == (VOCAB, 16) for _, p in tied.named_parameters()) == distinct


def test_vocabularies_of_two_sizes() -> None:
    model = Transformer(ModelConfig(tie_embeddings="decoder"), 9, 11)
    assert model(torch.tensor([[8, 4]]), torch.tensor([[10]])).shape == (1, 1, 11)
    with pytest.raises(ValueError, match="sizes 9 and 11"):
        Transformer(ModelConfig(tie_embeddings="all"), 9, 11)


def test_depths_are_independent() -> None:
    model = tiny_model(encoder_layers=3, decoder_layers=1)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (3, 1)
    maps = model.attention_maps(sentences(2, 6), sentences(2, 5))
    assert {place: len(layers) for place, layers in maps.items()} == {"encoder": 3, "decoder": 1, "cross": 1}


@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
def test_attention_maps_are_distributions_that_respect_the_masks(implementation: str) -> None:
    model = tiny_model(attention=implementation, dropout=0.5, attention_dropout=0.5).train()
    src, tgt = sentences(2, 6), sentences(2, 5, seed=1)
    src[0, 3:] = 0
    maps = model.attention_maps(src, tgt)
    shapes = {"encoder": (2, 2, 6, 6), "decoder": (2, 2, 5, 5), "cross": (2, 2, 5, 6)}
    for place, shape in shapes.items():
        for weights in maps[place]:
            assert weights.shape == shape
            assert not weights.requires_grad
            torch.testing.assert_close(weights.sum(-1), torch.ones(shape[:-1], dtype=weights.dtype))
    assert all((weights.triu(1) == 0).all() for weights in maps["decoder"])
    assert all((weights[0, :, :, 3:] == 0).all() for weights in maps["encoder"] + maps["cross"])
    assert model.training
    again = model.attention_maps(src, tgt)
    assert all(torch.equal(a, b) for place in maps for a, b in zip(maps[place], again[place], strict=True))


def test_naive_and_sdpa_give_the_same_model() -> None:
    naive, sdpa = tiny_model(attention="naive"), tiny_model(attention="sdpa")
    src, tgt = sentences(3, 6), sentences(3, 5, seed=1)
    src[0, 3:] = 0
    torch.testing.assert_close(naive(src, tgt), sdpa(src, tgt), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_logits_in_float32_and_close(dtype: torch.dtype) -> None:
    model, src, tgt = tiny_model(dtype=torch.float32), sentences(3, 6), sentences(3, 5, seed=1)
    with torch.autocast("cpu", dtype):
        logits = model(src, tgt)
    assert logits.dtype == torch.float32
    assert (logits - model(src, tgt)).abs().max() < 0.1
    logits.sum().backward()


def test_dropout_acts_in_training_only_and_follows_the_seed() -> None:
    model, src, tgt = tiny_model(dropout=0.3), sentences(3, 6), sentences(3, 5, seed=1)
    assert torch.equal(model(src, tgt), model(src, tgt))
    model.train()
    torch.manual_seed(1)
    first, second = model(src, tgt), model(src, tgt)
    torch.manual_seed(1)
    assert torch.equal(model(src, tgt), first)
    assert not torch.equal(first, second)


def test_sinusoids_take_any_length_and_learned_positions_say_where_they_end() -> None:
    long = sentences(1, 70)
    assert tiny_model().max_length is None
    assert tiny_model()(long, long).shape == (1, 70, VOCAB)
    learned = tiny_model(positions="learned")
    assert learned.max_length == 64
    with pytest.raises(ValueError, match="end at 64 tokens, got a sequence of 70"):
        learned(long, long)


def test_the_parameter_table_adds_up() -> None:
    for tie in ("none", "decoder", "all"):
        model = tiny_model(tie_embeddings=tie, positions="learned")
        table = parameter_table(model)
        assert sum(count for _, count in table) == sum(p.numel() for p in model.parameters())
        names = [name for name, _ in table]
        assert len(names) == len(set(names))
    assert dict(parameter_table(model))["encoder.layers.*.self_attn"] == 2 * 4 * (16 * 16 + 16)
    assert dict(parameter_table(model))["src_embedding.tokens"] == VOCAB * 16
    assert "output.weight" not in names


def test_named_parameters_are_enough_to_restore_the_model() -> None:
    model, other = tiny_model(seed=1), tiny_model(seed=2)
    src, tgt = sentences(3, 6), sentences(3, 5, seed=1)
    other.load_state_dict(dict(model.named_parameters()), strict=False)
    assert torch.equal(model(src, tgt), other(src, tgt))
