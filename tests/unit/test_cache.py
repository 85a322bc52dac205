"""Decoding step by step gives what decoding all at once gives."""

import pytest
import torch
import torch.nn.functional as F
from model_rig import sentences, tiny_model
from torch import Tensor

from transformer_cli.model.cache import padded_keys
from transformer_cli.model.kernels import cached_attention
from transformer_cli.model.linear import Linear
from transformer_cli.model.packed import Affine, PackedFeedForward
from transformer_cli.model.transformer import Transformer

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
KINDS = [
    {},
    {"norm_placement": "post", "activation": "gelu"},
    {"positions": "learned", "tie_embeddings": "none"},
    {"attention": "naive", "activation": "swiglu", "bias": False},
    {"d_k": 4, "d_v": 6, "attention_scale": False, "encoder_layers": 1, "decoder_layers": 3},
    {"qk_norm": True, "norm_placement": "post", "d_k": 6, "tie_embeddings": "decoder"},
    {"positions": "rotary", "qk_norm": True, "norm": "rms", "attention_scale": 0.3},
    {"positions": "transformer_xl", "norm_placement": "post"},
    {"positions": "transformer_xl", "attention": "naive", "d_k": 6, "n_heads": 3, "d_v": 4, "norm": "rms"},
    {"positions": "t5"},
    {"positions": "alibi", "n_heads": 3, "d_k": 4, "d_v": 4, "attention_scale": False},
    {"positions": "none"},
    {"d_ff": 600, "activation": "swiglu", "qk_norm": True, "bias": False},
    {"attention": {"encoder": "linformer", "decoder": "flash"}},
    {"attention": {"decoder": "sparse"}, "sparse": {"window": 2, "global_tokens": 1}},
    {"attention": {"decoder": "sparse"}, "sparse": {"pattern": "dilated", "window": 1}},
    {"attention": {"encoder": "sparse", "decoder": "sparse"}, "sparse": {"pattern": "blocks", "block": 2}},
    {"attention": {"decoder": "sparse"}, "sparse": {"pattern": "bigbird", "window": 1, "block": 2, "random_blocks": 2}},
]


def padded_source() -> Tensor:
    src = sentences(4, 6)
    src[0, 2:], src[1, 5:] = 0, 0
    return src


def stepwise(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    n = len(src)
    cache = model.new_cache(n, 1, src.size(1))
    model.admit(cache, list(range(n)), src)
    alone = torch.zeros(n, 1, dtype=torch.long)
    steps = [model.decode_step(tokens[:, None], alone, cache)[:, 0] for tokens in tgt.T]
    return torch.stack([model.project(hidden) for hidden in steps], dim=1)  # [B, T, V]


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


@pytest.mark.parametrize(
    ("n_hypotheses", "settings"),
    [
        *[(n, {"positions": p}) for p in ("sinusoidal", "rotary", "transformer_xl", "t5", "alibi") for n in (2, 5)],
        (3, {"attention": {"decoder": "sparse"}, "sparse": {"pattern": "bigbird", "window": 4, "block": 3}}),
    ],
)
@torch.no_grad()
def test_hypotheses_descend_from_their_parents_across_a_growing_cache(n_hypotheses: int, settings: dict) -> None:
    model, src, rng = tiny_model(**settings), padded_source(), torch.Generator().manual_seed(3)
    cache = model.new_cache(4, n_hypotheses, 6)
    model.admit(cache, [0, 1, 2, 3], src)
    prefixes = torch.empty(4, n_hypotheses, 0, dtype=torch.long)
    for step in range(45):  # past the room of the beginning
        parents = torch.randint(n_hypotheses, (4, n_hypotheses), generator=rng)
        tokens = sentences(4, n_hypotheses, seed=step)
        prefixes = torch.cat([prefixes.gather(1, parents[..., None].expand_as(prefixes)), tokens[..., None]], dim=2)
        hidden = model.decode_step(tokens, parents, cache)
    wide = src.repeat_interleave(n_hypotheses, 0)
    expected = model.decode(prefixes.flatten(0, 1), model.encode(wide), wide)[:, -1]
    torch.testing.assert_close(hidden.flatten(0, 1), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "transformer_xl", "t5", "alibi"])
@torch.no_grad()
def test_a_new_sentence_takes_a_place_while_the_others_go_on(positions: str) -> None:
    model, src, late = tiny_model(positions=positions), padded_source(), sentences(2, 9, seed=4)
    tgt, alone = sentences(4, 9, seed=1), torch.zeros(4, 1, dtype=torch.long)
    cache = model.new_cache(4, 1, 9)
    model.admit(cache, [0, 1, 2, 3], src)
    for tokens in tgt[:, :4].T:
        model.decode_step(tokens[:, None], alone, cache)
    cache.release([1, 3])
    model.decode_step(tgt[:, 4:5], alone, cache)  # released places rest
    model.admit(cache, [3, 1], late)
    new = sentences(4, 3, seed=2)
    for step in range(3):
        tokens = tgt[:, 5 + step].clone()
        tokens[[3, 1]] = new[[0, 1], step]
        hidden = model.decode_step(tokens[:, None], alone, cache)[:, 0]
    going_on = model.decode(tgt[[0, 2], :8], model.encode(src[[0, 2]]), src[[0, 2]])[:, -1]
    torch.testing.assert_close(hidden[[0, 2]], going_on, rtol=0, atol=1e-10)
    taken = model.decode(new[:2], model.encode(late), late)[:, -1]
    torch.testing.assert_close(hidden[[3, 1]], taken, rtol=0, atol=1e-10)
    cache.keep([3, 0])
    for _ in range(40):  # past the room of the beginning
        hidden = model.decode_step(torch.tensor([[7], [8]]), alone[:2], cache)[:, 0]
    more = model.decode(torch.cat([new[:1], torch.full((1, 40), 7)], dim=1), model.encode(late[:1]), late[:1])[:, -1]
    torch.testing.assert_close(hidden[:1], more, rtol=0, atol=1e-10)


@torch.no_grad()
def test_what_a_broken_sentence_left_behind_can_be_cleared() -> None:
    model, src, tgt, alone = tiny_model(), padded_source(), sentences(4, 6, seed=1), torch.zeros(4, 1, dtype=torch.long)
    cache = model.new_cache(4, 1, 6)
    for layer in [*cache.own, *cache.cross]:
        layer.keys[:] = float("nan")
        layer.values[:] = float("inf")
    cache.clear([0, 2])
    model.admit(cache, [0, 1, 2, 3], src)
    for tokens in tgt.T:
        hidden = model.decode_step(tokens[:, None], alone, cache)[:, 0]
    assert hidden[[0, 2]].isfinite().all()
    assert not hidden[[1, 3]].isfinite().any()


@torch.no_grad()
def test_a_step_computes_one_position_and_the_memory_is_projected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, src, calls = tiny_model(), padded_source(), []
    for layer in model.decoder.layers:
        project = layer.cross_attn.keys_values
        monkeypatch.setattr(layer.cross_attn, "keys_values", lambda *args, p=project: calls.append(1) or p(*args))
    rows: list[int] = []
    compute = PackedFeedForward.__call__
    monkeypatch.setattr(PackedFeedForward, "__call__", lambda self, x: rows.append(len(x)) or compute(self, x))
    stepwise(model, src, sentences(4, 7, seed=1))
    n_layers = len(model.decoder.layers)
    assert len(calls) == n_layers
    assert rows == [4] * n_layers * 7


@torch.no_grad()
def test_weights_are_packed_once_for_a_cache_and_anew_for_the_next() -> None:
    model, src, tgt = tiny_model(), padded_source(), sentences(4, 3, seed=1)
    stepwise(model, src, tgt)
    for parameter in model.decoder.parameters():
        parameter.mul_(1.5)
    torch.testing.assert_close(stepwise(model, src, tgt), model(src, tgt), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_inputs", [8, 512, 513])
@torch.no_grad()
def test_outputs_of_packed_layers_stand_head_by_head(n_inputs: int) -> None:
    first, second = Linear(n_inputs, 6), Linear(n_inputs, 4)
    packed, x = Affine.of(first, second, n_heads=2), torch.randn(3, n_inputs)
    a, b = first(x), second(x)
    expected = torch.cat([a[:, :3], b[:, :2], a[:, 3:], b[:, 2:]], dim=1)
    torch.testing.assert_close(packed(x), expected)
    assert packed.weight.is_contiguous() == (n_inputs <= 512)  # wider products are equal in every batch only so


@pytest.mark.parametrize(
    ("length", "d_head", "expected"),
    [(1, 32, 16), (17, 32, 32), (1, 16, 32), (33, 8, 64), (512, 8, 512), (513, 8, 576), (9, 1, 256), (1060, 32, 1072)],
)
def test_padded_keys(length: int, d_head: int, expected: int) -> None:
    assert padded_keys(length, d_head) == expected


@pytest.mark.parametrize("d_head", [8, 32])
@pytest.mark.parametrize("queries", [1, 2, 5])
@pytest.mark.parametrize("length", [17, 250, 272, 500, 528, 1030])
def test_hidden_keys_move_no_bit_of_what_is_attended_to(length: int, queries: int, d_head: int) -> None:
    generator = torch.Generator().manual_seed(0)
    own, lowest = padded_keys(length, d_head), torch.finfo(torch.float32).min
    found = []
    for columns in (own, *(padded_keys(length + more, d_head) for more in (16, 100, 256, 800))):
        generator.manual_seed(0)
        query = torch.randn(3, queries, d_head, generator=generator)
        key = F.pad(torch.randn(3, d_head, length, generator=generator), (0, columns - length), value=9.0)
        value = F.pad(torch.randn(3, length, d_head, generator=generator), (0, 0, 0, columns - length), value=9.0)
        bias = torch.zeros(3, queries, columns)
        bias[..., length:] = lowest
        found.append(cached_attention(query, key, value, bias))
    assert all(torch.equal(found[0], other) for other in found[1:])
    scores = (query @ key)[..., :length] / d_head**0.5
    torch.testing.assert_close(found[0], scores.softmax(-1) @ value[:, :length])


@torch.no_grad()
def test_a_source_of_padding_alone_stays_finite_and_says_nothing() -> None:
    model, tgt = tiny_model(), sentences(2, 4, seed=1)
    src = sentences(2, 5)
    src[0] = 0
    logits = stepwise(model, src, tgt)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits, model(src, tgt), rtol=0, atol=1e-10)
