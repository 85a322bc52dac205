"""What the parameters look like before the first step."""

import math

import pytest
import torch
from torch import nn

from transformer_cli.config import ModelConfig
from transformer_cli.model.init import initialise
from transformer_cli.model.norms import LayerNorm
from transformer_cli.model.transformer import Transformer

VOCAB = 500


def fresh(seed: int = 0, **settings: object) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "d_ff": 96, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(ModelConfig.model_validate(sizes | settings), VOCAB, VOCAB)


@pytest.mark.parametrize("tie", ["none", "decoder", "all"])
def test_linear_layers_are_xavier_uniform_with_zero_bias(tie: str) -> None:
    model = fresh(tie_embeddings=tie, activation="swiglu")
    linears = [m for m in model.modules() if isinstance(m, nn.Linear) and (m is not model.output or tie == "none")]
    assert len(linears) > 10
    for linear in linears:
        bound = math.sqrt(6 / (linear.in_features + linear.out_features))
        assert bound * 0.98 < linear.weight.abs().max() <= bound
        assert linear.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert linear.bias is None or (linear.bias == 0).all()


@pytest.mark.parametrize("tie", ["none", "decoder", "all"])
def test_embeddings_are_normal_with_the_variance_of_one_over_the_width(tie: str) -> None:
    model = fresh(tie_embeddings=tie, positions="learned")
    for embedding in (m for m in model.modules() if isinstance(m, nn.Embedding)):
        assert embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.03)
        assert abs(embedding.weight.mean().item()) < 0.002


def test_embedded_tokens_and_tied_logits_have_variance_one() -> None:
    model = fresh()
    ids = torch.arange(4, 404).view(8, 50)
    tokens = model.src_embedding(ids) - model.src_embedding.positions(torch.zeros(8, 50, 64))
    assert tokens.std().item() == pytest.approx(1, rel=0.05)
    assert model(ids, ids).std().item() == pytest.approx(1, rel=0.1)


def test_norms_start_as_the_identity_of_their_input() -> None:
    norms = [module for module in fresh().modules() if isinstance(module, LayerNorm)]
    assert len(norms) == 7
    assert all((norm.weight == 1).all() and (norm.bias == 0).all() for norm in norms)


def test_the_seed_decides_and_initialise_starts_anew() -> None:
    first, second, other = fresh(1), fresh(1), fresh(2)
    same = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)
    assert not torch.equal(first.output.weight, other.output.weight)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.fill_(3.0)
    initialise(first)
    assert not any((parameter == 3.0).any() for parameter in first.parameters())


@pytest.mark.parametrize(
    ("depth", "positions"), [(1, "sinusoidal"), (6, "transformer_xl"), (12, "rotary"), (24, "sinusoidal")]
)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("placement", ["pre", "post"])
@torch.no_grad()
def test_every_layers_variance_starts_within_bounds(depth: int, norm: str, placement: str, positions: str) -> None:
    """The bounds of docs/positions.md: 1 after a norm, else a line that the sub-layers draw."""
    sizes = {"encoder_layers": depth, "decoder_layers": depth, "norm": norm, "norm_placement": placement}
    model = fresh(**sizes, positions=positions, d_ff=128)
    ids, found = torch.randint(4, VOCAB, (8, 24), generator=torch.Generator().manual_seed(0)), {}
    for n_attentions, stack in ((1, model.encoder), (2, model.decoder)):
        for number, layer in enumerate(stack.layers, start=1):
            layer.register_forward_hook(lambda _, x, y, key=(n_attentions, number): found.update({key: y.var().item()}))
    logits = model(ids, ids.flip(1))
    feed_forward = 2 * 64 * 128 / (64 + 128) ** 2  # of a normalised input
    assert len(found) == 2 * depth
    for (n_attentions, number), variance in found.items():
        low = 0.75 * (1 + feed_forward * number) if placement == "pre" else 0.75
        high = 1.5 * (1.5 + (n_attentions + feed_forward) * number) if placement == "pre" else 1.01
        assert low <= variance <= high, (n_attentions, number)
    assert 0.7 < logits.var().item() < 1.3
