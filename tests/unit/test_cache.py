"""Decoding step by step gives what decoding all at once gives."""

import pytest
import torch
from model_rig import sentences, tiny_model
from torch import Tensor

from transformer_cli.model.transformer import Transformer

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
KINDS = [
    {},
    {"norm_placement": "post", "activation": "gelu"},
    {"positions": "learned", "tie_embeddings": "none"},
    {"attention": "naive", "activation": "swiglu", "bias": False},
    {"d_k": 4, "d_v": 6, "attention_scale": False, "encoder_layers": 1, "decoder_layers": 3},
]


def padded_source() -> Tensor:
    src = sentences(4, 6)
    src[0, 2:], src[1, 5:] = 0, 0
    return src


def stepwise(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    cache = model.start_cache(model.encode(src), src)
    return torch.stack([model.project(model.decode_step(tokens, cache)) for tokens in tgt.T], dim=1)  # [B, T, V]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("settings", KINDS, ids=str)
@torch.no_grad()
def test_cached_logits_equal_uncached_ones(dtype: torch.dtype, settings: dict) -> None:
    model, src, tgt = tiny_model(dtype=dtype, **settings), padded_source(), sentences(4, 9, seed=1)
    torch.testing.assert_close(stepwise(model, src, tgt), model(src, tgt), rtol=0, atol=TOLERANCE[dtype])


@torch.no_grad()
def test_batch_of_one_and_target_of_one() -> None:
    model, src, tgt = tiny_model(), sentences(1, 1), sentences(1, 1, seed=1)
    torch.testing.assert_close(stepwise(model, src, tgt), model(src, tgt), rtol=0, atol=1e-10)


@pytest.mark.parametrize("rows", [[2, 0, 3, 1], [1], [0, 0, 3, 3, 3, 1], [0, 1, 2, 3]])
@torch.no_grad()
def test_select_reorders_drops_and_repeats_rows(rows: list[int]) -> None:
    model, src, tgt = tiny_model(), padded_source(), sentences(4, 3, seed=1)
    cache = model.start_cache(model.encode(src), src)
    for tokens in tgt.T:
        model.decode_step(tokens, cache)
    cache.select(torch.tensor(rows))
    follow = sentences(len(rows), 1, seed=2)
    hidden = model.decode_step(follow[:, 0], cache)
    expected = model.decode(torch.cat([tgt[rows], follow], dim=1), model.encode(src[rows]), src[rows])[:, -1]
    torch.testing.assert_close(hidden, expected, rtol=0, atol=1e-10)
    assert cache.length == 4


@torch.no_grad()
def test_select_before_the_first_step_widens_to_a_beam() -> None:
    model, src, beam = tiny_model(), padded_source(), 3
    cache = model.start_cache(model.encode(src), src)
    cache.select(torch.arange(4).repeat_interleave(beam))
    tokens = sentences(12, 1, seed=1)
    wide = src.repeat_interleave(beam, 0)
    expected = model.decode(tokens, model.encode(wide), wide)[:, 0]
    torch.testing.assert_close(model.decode_step(tokens[:, 0], cache), expected, rtol=0, atol=1e-10)


@torch.no_grad()
def test_memory_is_projected_once_and_copied_only_when_sentences_move(monkeypatch: pytest.MonkeyPatch) -> None:
    model, src = tiny_model(), padded_source()
    calls = []
    for layer in model.decoder.layers:
        project = layer.cross_attn.keys_values
        monkeypatch.setattr(layer.cross_attn, "keys_values", lambda *args, p=project: calls.append(1) or p(*args))
    cache = model.start_cache(model.encode(src), src)
    cache.select(torch.tensor([0, 0, 1, 1]))
    before = cache.layers[0].memory_k
    for tokens in sentences(4, 3, seed=1).T:
        model.decode_step(tokens, cache)
        cache.select(torch.tensor([1, 0, 3, 2]))  # within the sentences
    assert len(calls) == len(model.decoder.layers)
    assert cache.layers[0].memory_k is before
    cache.select(torch.tensor([2, 3, 0, 1]))
    assert torch.equal(cache.layers[0].memory_k, before[[2, 3, 0, 1]])


@torch.no_grad()
def test_a_source_of_padding_alone_stays_finite() -> None:
    model, tgt = tiny_model(), sentences(2, 4, seed=1)
    src = sentences(2, 5)
    src[0] = 0
    logits = stepwise(model, src, tgt)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[1:], model(src[1:], tgt[1:]), rtol=0, atol=1e-10)
