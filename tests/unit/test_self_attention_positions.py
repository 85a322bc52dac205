"""Positions inside self-attention: against their formulas, term by term, and at the ends of their range."""

import math

import pytest
import torch
from model_rig import sentences, tiny_model

from transformer_cli.config import ModelConfig
from transformer_cli.model.init import initialise
from transformer_cli.model.kernels import naive_attention, sdpa_attention
from transformer_cli.model.positions import AlibiPositions, RotaryPositions, T5Positions, TransformerXLPositions
from transformer_cli.model.positions.relative import alibi_slopes, t5_buckets
from transformer_cli.model.positions.rotary import rotation_table
from transformer_cli.model.positions.transformer_xl import shifted
from transformer_cli.model.transformer import parameter_table

KINDS = ["rotary", "transformer_xl", "t5", "alibi", "none"]


def heads(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_rotary_turns_neighbours_as_complex_numbers() -> None:
    query, key = heads(2, 3, 5, 6), heads(2, 3, 5, 6, seed=1)
    turned = RotaryPositions(6)(query, key, None)
    frequencies = 10000.0 ** (-torch.arange(3, dtype=torch.float64) / 3)
    for given, found in zip((query, key), turned[:2], strict=True):
        pairs = torch.view_as_complex(given.unflatten(-1, (3, 2)))
        angle = torch.arange(5, dtype=torch.float64)[:, None] * frequencies
        expected = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert turned[2] is None


def test_rotary_angles_are_rounded_once_and_turned_in_float32() -> None:
    x = heads(1, 1, 3000, 4).bfloat16()
    turned = RotaryPositions(4)(x, x, None)[0]
    cos, sin = rotation_table(3000, 4).float().unbind(1)
    other = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2).float()
    assert torch.equal(turned, (x.float() * cos + other * sin).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rotary_rounds_alike_wherever_a_pair_lies_in_memory(dtype: torch.dtype) -> None:
    """One complex product would not: a CPU fuses its sums in some places of a tensor and not in others."""
    x = heads(3, 5, 7, 12).to(dtype)
    turned = RotaryPositions(12)(x, x.transpose(1, 2).contiguous().transpose(1, 2), None)
    assert torch.equal(turned[0], turned[1])
    cos, sin = rotation_table(7, 12).to(dtype).unbind(1)
    for at in range(7):
        for pair in range(6):
            first, second = 2 * pair, 2 * pair + 1
            a, b = x[:, :, at, first], x[:, :, at, second]
            c, s = cos[at, first], sin[at, first]
            assert torch.equal(turned[0][:, :, at, first], a * c + -b * s)
            assert torch.equal(turned[0][:, :, at, second], b * c + a * s)


def test_rotary_needs_pairs() -> None:
    with pytest.raises(ValueError, match="even d_k, got 5"):
        RotaryPositions(5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_transformer_xl_is_the_direct_sum(length: int, causal: bool, scale: float | None) -> None:
    d_model, d_k = 8, 4
    positions = TransformerXLPositions(d_model, 2, d_k, causal=causal).double()
    torch.nn.init.normal_(positions.u)
    torch.nn.init.normal_(positions.v)
    query, key = heads(3, 2, length, d_k), heads(3, 2, length, d_k, seed=1)
    with_u, same_key, bias = positions(query, key, scale)
    scores = with_u @ same_key.mT * (d_k**-0.5 if scale is None else scale) + bias
    u, v = positions.u.view(2, d_k), positions.v.view(2, d_k)
    for i in range(length):
        for j in range(i + 1 if causal else length):
            angle = (i - j) * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
            r = positions.r_proj(torch.stack([angle.sin(), angle.cos()], dim=-1).flatten()).view(2, d_k)
            found = ((query[:, :, i] + u) * key[:, :, j]).sum(-1) + ((query[:, :, i] + v) * r).sum(-1)
            expected = found * (1 / math.sqrt(d_k) if scale is None else scale)
            torch.testing.assert_close(scores[:, :, i, j], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("length", "columns"), [(1, 2), (4, 8), (4, 5)])
def test_the_shift_puts_every_distance_at_its_key(length: int, columns: int) -> None:
    distances = torch.arange(length - 1, length - 1 - columns, -1).expand(length, columns)
    found = shifted(distances)
    position = torch.arange(length)
    expected = position[:, None] - position
    seen = expected >= 0 if columns < 2 * length else torch.ones_like(expected, dtype=torch.bool)
    assert found.shape == (length, length)
    assert torch.equal(found[seen], expected[seen])


def test_t5_buckets_are_those_of_the_paper() -> None:
    """32 buckets up to 128: with both sides 16 for each, eight of them for a single distance."""
    both, causal = t5_buckets(300, 16, 128).tolist(), t5_buckets(300, 32, 128).tolist()
    assert both[:12] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]
    assert [both.index(bucket) for bucket in range(8, 16)] == [8, 12, 16, 23, 32, 46, 64, 91]
    assert causal[:20] == [*range(16), 16, 16, 16, 17]
    assert both[128:] == [15] * 172
    assert causal[128:] == [31] * 172
    assert both == sorted(both)


@pytest.mark.parametrize("causal", [False, True])
def test_t5_adds_the_number_of_head_and_bucket(causal: bool) -> None:
    positions, x = T5Positions(3, 16, causal=causal), heads(2, 3, 20, 4)
    query, key, bias = positions(x, x, None)
    assert query is x
    assert key is x
    table, side = positions.table.weight, 32 if causal else 16
    buckets = t5_buckets(20, side, 128).tolist()
    for i, j in [(0, 0), (19, 0), (7, 2), (19, 18)]:
        assert torch.equal(bias[:, i, j], table[buckets[i - j]])
        if not causal:
            assert torch.equal(bias[:, j, i], table[buckets[i - j] + (side if i > j else 0)])


def test_alibi_takes_away_slope_times_distance() -> None:
    x = heads(2, 4, 6, 4)
    bias = AlibiPositions(4)(x, x, None)[2]
    distance = (torch.arange(6)[:, None] - torch.arange(6)).abs().double()
    expected = -torch.tensor([2**-2, 2**-4, 2**-6, 2**-8], dtype=torch.float64)[:, None, None] * distance
    assert torch.equal(bias, expected)


@pytest.mark.parametrize(
    ("n_heads", "exponents"),
    [(1, [8]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [4, 8, 2]), (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5])],
)
def test_alibi_slopes_for_any_number_of_heads(n_heads: int, exponents: list[float]) -> None:
    assert alibi_slopes(n_heads).log2().neg().tolist() == pytest.approx(exponents, abs=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
def test_both_kernels_add_the_bias_to_the_scaled_scores(causal: bool, masked: bool, batch: int) -> None:
    results = []
    for kernel in (naive_attention, sdpa_attention, None):
        query, key, value, bias = (
            heads(n, 3, 7, 7, seed=seed).requires_grad_() for seed, n in enumerate((2, 2, 2, batch))
        )
        mask = heads(2, 1, 7, 7, seed=9) > 0 if masked else None
        if masked:
            mask[0, :, 3] = False  # sees nothing: zero, and no gradient
        if kernel is None:
            scores = query @ key.mT * 0.4 + bias
            seen = torch.ones(7, 7, dtype=torch.bool).tril() if causal else torch.ones(7, 7, dtype=torch.bool)
            seen = seen if mask is None else seen & mask
            hidden = scores.masked_fill(~seen, -1e30).exp() * seen
            out = hidden / hidden.sum(-1, keepdim=True).clamp(min=1e-300) @ value
        else:
            out = kernel(query, key, value, mask, causal=causal, scale=0.4, bias=bias)[0]
        results.append([out, *torch.autograd.grad(out.square().sum(), (query, key, value, bias))])
    for ours, expected in [(results[0], results[2]), (results[1], results[2])]:
        for one, other in zip(ours, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("positions", KINDS)
def test_naive_and_sdpa_are_one_model_and_maps_are_its_weights(positions: str) -> None:
    src, tgt = sentences(2, 6), sentences(2, 5, seed=1)
    src[0, 4:] = 0
    models = [tiny_model(positions=positions, attention=kernel) for kernel in ("naive", "sdpa")]
    logits = [model(src, tgt) for model in models]
    torch.testing.assert_close(*logits, rtol=0, atol=1e-12)
    gradients = [
        torch.autograd.grad(y.square().sum(), list(m.parameters())) for m, y in zip(models, logits, strict=True)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
    maps = [model.attention_maps(src, tgt) for model in models]
    for place in maps[0]:
        for ours, theirs in zip(maps[0][place], maps[1][place], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
            torch.testing.assert_close(ours.sum(-1), torch.ones_like(ours.sum(-1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", KINDS)
def test_embeddings_stay_bare_and_cross_attention_knows_no_distance(positions: str) -> None:
    model, ids = tiny_model(positions=positions), sentences(2, 5)
    assert torch.equal(model.src_embedding(ids), model.src_embedding.tokens(ids) * 4)  # √d_model
    assert all(layer.cross_attn.positions is None for layer in model.decoder.layers)
    assert all((layer.self_attn.positions is None) == (positions == "none") for layer in model.encoder.layers)


# Beyond the trained length


@pytest.mark.parametrize("positions", ["sinusoidal", *KINDS])
def test_any_length_goes(positions: str) -> None:
    model, src, tgt = tiny_model(positions=positions, dtype=torch.float32), sentences(1, 300), sentences(1, 200, seed=1)
    assert model.max_length is None
    assert model(src, tgt).isfinite().all()


@pytest.mark.parametrize("positions", ["sinusoidal", *KINDS])
def test_a_longer_target_leaves_what_came_before_as_it_was(positions: str) -> None:
    """Tables and caches that grow on the way round no number anew."""
    model, src, tgt = tiny_model(positions=positions), sentences(1, 9), sentences(1, 300, seed=1)
    short = model(src, tgt[:, :20])
    torch.testing.assert_close(model(src, tgt)[:, :20], short, rtol=0, atol=1e-10)


def test_learned_positions_end_with_the_length_that_they_were_made_for() -> None:
    model = tiny_model(positions="learned")
    assert model.max_length == 64
    model(sentences(1, 64), sentences(1, 64))
    with pytest.raises(ValueError, match="learned positions end at 64 tokens, got a sequence of 65"):
        model(sentences(1, 5), sentences(1, 65))


def test_penalties_of_far_keys_do_not_fit_into_16_bits() -> None:
    past = AlibiPositions(1).past(3000, torch.empty(0, dtype=torch.bfloat16))
    assert torch.equal(past[0], -torch.arange(3000) / 256)


def test_steps_project_every_distance_of_transformer_xl_as_all_at_once_do() -> None:
    positions = TransformerXLPositions(8, 2, 4, causal=True).double()
    steps = positions.stepwise()
    for needed in (1, 128, 129, 300):  # blocks of 128 are projected one after the other
        torch.testing.assert_close(steps._up_to(needed)[:needed], positions.project(0, needed), rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_far_keys_are_alike_for_t5_and_fade_away_for_alibi(causal: bool) -> None:
    like, far = torch.empty(0, dtype=torch.float64), torch.arange(128, 3000)
    t5, alibi = T5Positions(4, 16, causal=causal).double(), AlibiPositions(4)
    for side in (t5.past, t5.future):
        assert (side(3000, like)[:, far] == side(3000, like)[:, 128:129]).all()
    slopes = torch.tensor([2**-2, 2**-4, 2**-6, 2**-8], dtype=torch.float64)[:, None]
    assert torch.equal(alibi.past(3000, like)[:, far], -slopes * far)


@pytest.mark.parametrize(("positions", "n"), [("t5", 2 * 2 * 32 * 2), ("transformer_xl", 4 * (16 * 16 + 32))])
def test_their_parameters_have_a_row_of_their_own(positions: str, n: int) -> None:
    rows = dict(parameter_table(tiny_model(positions=positions)))
    assert rows["encoder.layers.*.self_attn.positions"] + rows["decoder.layers.*.self_attn.positions"] == n


def test_their_parameters_start_as_said() -> None:
    model = tiny_model(positions="transformer_xl", dtype=torch.float32)
    other = tiny_model(positions="t5", d_model=64, n_heads=16)
    with torch.no_grad():
        for parameter in [*model.parameters(), *other.parameters()]:
            parameter.fill_(3.0)
    initialise(model)
    initialise(other)
    positions = model.encoder.layers[0].self_attn.positions
    assert positions.u.abs().max() == positions.v.abs().max() == 0
    assert positions.r_proj.weight.std().item() == pytest.approx(16**-0.5, rel=0.1)
    table = other.encoder.layers[0].self_attn.positions.table.weight
    assert table.std().item() == pytest.approx(1 / 8, rel=0.15)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"positions": "rotary", "d_k": 5}, "rotary with an odd d_k"),
        ({"positions": "transformer_xl", "d_model": 9, "n_heads": 3}, "transformer_xl with an odd d_model"),
        ({"positions": "t5", "attention": "flash"}, "they add numbers to scores that this kernel never holds"),
        ({"positions": "alibi", "attention": {"encoder": "linformer"}}, "choose naive or sdpa, or rotary"),
        ({"positions": "transformer_xl", "attention": {"decoder": "sparse"}}, "choose naive or sdpa, or rotary"),
    ],
)
def test_what_means_nothing_is_refused_by_name(settings: dict, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        ModelConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("given", "factor"),
    [(True, None), ("true", None), (False, 1.0), ("1", 1.0), (1, 1.0), ("0.125", 0.125), (2.5, 2.5)],
)
def test_the_scale_is_a_factor_of_the_scores(given: object, factor: float | None) -> None:
    model = tiny_model(attention_scale=given)
    assert {layer.self_attn.scale for layer in model.encoder.layers} == {factor}
    x = heads(1, 4, 16)
    _, weights = model.encoder.layers[0].self_attn(x, x, x, return_weights=True)
    attention = model.encoder.layers[0].self_attn
    query, key = (p(x).view(1, 4, 2, 8).transpose(1, 2) for p in (attention.q_proj, attention.k_proj))
    expected = (query @ key.mT * (8**-0.5 if factor is None else factor)).softmax(-1)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", ["0", -1, "inf", float("nan"), "some", None, 1e7])
def test_a_scale_is_finite_and_above_zero(bad: object) -> None:
    with pytest.raises(ValueError, match="expected true, false, or a factor above 0"):
        ModelConfig.model_validate({"attention_scale": bad})
