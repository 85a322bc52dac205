"""Dropout by place and by word, normalised queries and keys, sub-layers that start at zero."""

import math

import pytest
import torch
from model_rig import sentences, tiny_model
from torch import nn
from training_rig import small_config, small_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.config import ModelConfig
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.head_norm import HeadNorm
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import seed_stream

PLACES = {"embedding": "embedding", "residual": "_residual", "feed_forward": ".feed_forward"}


def probabilities(model: Transformer) -> dict[str, set[float]]:
    """The dropout probabilities at each place, by the names of the modules that own them."""
    found: dict[str, set[float]] = {}
    for name, module in model.named_modules():
        if isinstance(module, Dropout):
            owner = name.removesuffix(".dropout")
            found.setdefault(next(p for p, end in PLACES.items() if owner.endswith(end)), set()).add(module.p)
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("own", [0.0, 0.4])
def test_a_place_has_its_own_dropout_or_that_of_all(place: str, own: float) -> None:
    assert probabilities(tiny_model(dropout=0.25)) == {place: {0.25} for place in PLACES}
    model = tiny_model(dropout=0.25, **{f"{place}_dropout": own})
    assert probabilities(model) == {other: {own if other == place else 0.25} for other in PLACES}


@pytest.mark.parametrize("place", [*PLACES, "word", "attention"])
def test_each_dropout_alone_makes_training_random_and_leaves_evaluation_alone(place: str) -> None:
    model, ids = tiny_model(**{f"{place}_dropout": 0.5}), sentences(2, 6)
    assert torch.equal(model(ids, ids), tiny_model()(ids, ids))
    model.train()
    assert not torch.equal(model(ids, ids), model(ids, ids))


@pytest.mark.parametrize("side", ["src_embedding", "tgt_embedding"])
def test_word_dropout_drops_whole_tokens_scales_the_others_and_keeps_positions(side: str) -> None:
    embedding = getattr(tiny_model(word_dropout=0.25, positions="learned").train(), side)
    ids = sentences(200, 50)
    seed_stream(1)
    tokens = embedding(ids) - embedding.positions(torch.zeros(200, 50, 16, dtype=torch.float64))
    expected = embedding.tokens(ids) * math.sqrt(16) / (1 - 0.25)
    dropped = (tokens.abs() < 1e-12).all(-1)
    torch.testing.assert_close(tokens[~dropped], expected[~dropped], rtol=1e-6, atol=1e-9)
    assert dropped.double().mean().item() == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 10_000) ** 0.5)
    assert dropped[:, 0].any()
    assert not dropped[:, 0].all()  # of tokens, not of columns


# Queries and keys


def test_scores_are_products_of_normalised_queries_and_keys() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, d_k=3, qk_norm=True).double().eval()
    with torch.no_grad():
        attention.q_norm.weight.uniform_(0.5, 2)
        attention.k_norm.weight.uniform_(0.5, 2)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    _, weights = attention(x, x, x, return_weights=True)

    def heads(projection: nn.Linear, gain: torch.Tensor) -> torch.Tensor:
        y = projection(x).view(2, 5, 2, 3).transpose(1, 2)
        y = y - y.mean(-1, keepdim=True)
        return gain * y / (y.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    q, k = heads(attention.q_proj, attention.q_norm.weight), heads(attention.k_proj, attention.k_norm.weight)
    expected = torch.einsum("bhtk,bhsk->bhts", q, k).div(math.sqrt(3)).softmax(-1)
    torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", [False, True])
def test_scores_grow_with_the_projections_only_without_the_norm(norm: bool) -> None:
    model, ids = tiny_model(qk_norm=norm, bias=False), sentences(2, 6)
    before = model(ids, ids)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.q_proj.weight *= 1000
                module.k_proj.weight *= 1000
    assert ((model(ids, ids) - before).abs().max() < 1e-3) == norm


def test_gains_are_learned_one_per_width_and_start_at_one() -> None:
    model, ids = Transformer(ModelConfig(d_model=16, n_heads=2, d_k=6, d_v=8, qk_norm=True), 17, 17), sentences(2, 6)
    norms = [module for module in model.modules() if isinstance(module, HeadNorm)]
    assert len(norms) == 2 * (4 + 2 * 4)
    assert all(norm.weight.shape == (6,) and (norm.weight == 1).all() for norm in norms)
    model(ids, ids).square().sum().backward()
    assert all(norm.weight.grad.abs().sum() > 0 for norm in norms)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_norm_is_computed_in_float32_and_keeps_the_dtype(dtype: torch.dtype) -> None:
    x = (torch.randn(2, 2, 5, 8) * 300).to(dtype)  # squares are beyond float16
    y = HeadNorm(8)(x)
    assert y.dtype == dtype
    torch.testing.assert_close(y.double().pow(2).mean(-1).sqrt(), torch.ones(2, 2, 5).double(), rtol=0.01, atol=0)


# Starting at zero


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_every_layer_starts_as_the_identity(activation: str) -> None:
    torch.manual_seed(0)
    config = small_config(model={"zero_init": True, "activation": activation, "encoder_layers": 2, "bias": False}).model
    model, ids = Transformer(config, 17, 17).eval(), sentences(2, 6)
    assert torch.equal(model.encode(ids), model.encoder.norm(model.src_embedding(ids)))
    assert torch.equal(model.decode(ids, model.encode(ids), ids), model.decoder.norm(model.tgt_embedding(ids)))


def test_only_the_last_matrices_differ_and_all_learn() -> None:
    def made(zero_init: bool) -> Transformer:
        seed_stream(1)
        return build_model(small_config(model={"zero_init": zero_init, "dropout": 0.0}), small_tokenizer()).double()

    model, plain, ids = made(True), dict(made(False).named_parameters()), sentences(4, 6)
    zeroed = {name for name, p in model.named_parameters() if not torch.equal(p, plain[name])}
    assert zeroed == {name for name in plain if name.endswith(("out_proj.weight", "w_2.weight"))}
    assert all((p == 0).all() for name, p in model.named_parameters() if name in zeroed)
    optimizer, before = torch.optim.SGD(model.parameters(), lr=0.1), {n: p.clone() for n, p in model.named_parameters()}
    for _ in range(3):  # the last matrices of the decoder, then those of the encoder, then what stands before them
        optimizer.zero_grad()
        model(ids, ids).square().mean().backward()
        optimizer.step()
    assert [n for n, p in model.named_parameters() if torch.equal(p, before[n]) and "k_proj.bias" not in n] == []
