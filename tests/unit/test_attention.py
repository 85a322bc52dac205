"""Attention and its two implementations: shapes, masks, kernels, precision."""

import pytest
import torch
from model_rig import VOCAB, sentences, tiny_model
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_cli.config import ModelConfig
from transformer_cli.model.attention import MultiHeadAttention, flash_refusal, recorded_weights
from transformer_cli.model.dropout import dropout_stream
from transformer_cli.model.kernels import masked_softmax, naive_attention, sdpa_attention
from transformer_cli.model.masks import causal_mask
from transformer_cli.model.transformer import Transformer

BOTH = [naive_attention, sdpa_attention]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def heads(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> list[torch.Tensor]:
    """Query, key and value of the same shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
@pytest.mark.parametrize("bias", [True, False])
def test_widths_of_keys_and_values_may_differ(implementation: str, bias: bool) -> None:
    attention = MultiHeadAttention(10, 3, d_k=4, d_v=6, bias=bias, implementation=implementation)
    out, weights = attention(torch.randn(2, 5, 10), torch.randn(2, 7, 10), torch.randn(2, 7, 10), return_weights=True)
    assert out.shape == (2, 5, 10)
    assert weights.shape == (2, 3, 5, 7)
    assert attention.q_proj.weight.shape == attention.k_proj.weight.shape == (12, 10)
    assert attention.v_proj.weight.shape == (18, 10)
    assert attention.out_proj.weight.shape == (10, 18)
    assert (attention.out_proj.bias is not None) is bias


def test_indivisible_heads_are_refused() -> None:
    with pytest.raises(ValueError, match="10 is not divisible by n_heads 3"):
        MultiHeadAttention(10, 3, d_k=4)


def test_weights_only_on_request() -> None:
    for implementation in ("naive", "sdpa"):
        x = torch.randn(2, 5, 8)
        attention = MultiHeadAttention(8, 2, implementation=implementation)
        plain, none = attention(x, x, x)
        out, weights = attention(x, x, x, return_weights=True)
        assert none is None
        assert torch.allclose(plain, out, atol=1e-6)
        assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 5), atol=1e-6)


def test_scale_is_one_over_the_root_of_the_key_width_or_none() -> None:
    query, key, value = heads(2, 3, 5, 4)
    scores = query @ key.transpose(-2, -1)
    for attention in BOTH:
        assert torch.allclose(attention(query, key, value)[0], (scores / 2).softmax(-1) @ value)
        assert torch.allclose(attention(query, key, value, scale=1.0)[0], scores.softmax(-1) @ value)
    assert MultiHeadAttention(8, 2, scale=False).scale == 1.0


@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
def test_attention_scale_reaches_the_scores(implementation: str) -> None:
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    unscaled = MultiHeadAttention(8, 2, scale=False, implementation=implementation).double()
    scaled = MultiHeadAttention(8, 2, implementation=implementation).double()
    scaled.load_state_dict(unscaled.state_dict())
    assert not torch.allclose(unscaled(x, x, x)[0], scaled(x, x, x)[0])
    with torch.no_grad():
        scaled.q_proj.weight.mul_(2.0)  # √d_k
        scaled.q_proj.bias.mul_(2.0)
    assert torch.allclose(unscaled(x, x, x)[0], scaled(x, x, x)[0])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_sdpa_equals_naive(dtype: torch.dtype, causal: bool, masked: bool, length: int) -> None:
    query, key, value = (x.requires_grad_() for x in heads(2, 3, 7, 4, dtype=dtype))
    mask = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1] * 7], dtype=torch.bool)[:, None, None] if masked else None
    results = []
    for attention in BOTH:
        out, _ = attention(query[:, :, 7 - length :], key, value, mask, causal=causal)
        results.append([out, *torch.autograd.grad(out.square().sum(), [query, key, value])])
    for naive, sdpa in zip(*results, strict=True):
        assert naive.dtype == sdpa.dtype == dtype
        assert torch.allclose(naive, sdpa, rtol=10 * TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("attention", BOTH)
def test_a_single_query_behind_cached_keys_sees_them_all(attention: object) -> None:
    query, key, value = heads(1, 2, 6, 4)
    all_of_them = attention(query[:, :, -1:], key, value)[0]
    assert torch.allclose(attention(query[:, :, -1:], key, value, causal=True)[0], all_of_them)
    assert torch.allclose(attention(query, key, value, causal=True)[0][:, :, -1:], all_of_them)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("attention", BOTH)
@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif("not torch.cuda.is_available()")])],
)
def test_a_row_that_sees_nothing_is_zero_and_leaves_its_neighbours_alone(
    dtype: torch.dtype, attention: object, device: str
) -> None:
    query, key, value = (x.to(device).requires_grad_() for x in heads(2, 3, 5, 4, dtype=dtype))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool, device=device).tril()
    blind = mask.clone()
    blind[0, :, 2] = False
    seen, none = (attention(query, key, value, m)[0] for m in (mask, blind))
    assert (none[0, :, 2] == 0).all()
    others = torch.ones(2, 1, 5, 1, dtype=torch.bool, device=device)
    others[0, :, 2] = False
    assert torch.equal(none * others, seen * others)
    gradients = [torch.autograd.grad((out * others).square().sum(), [query, key, value]) for out in (seen, none)]
    for expected, got in zip(*gradients, strict=True):
        assert torch.equal(expected, got)
    for gradient in torch.autograd.grad(attention(query, key, value, blind)[0].sum(), [query, key, value]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("attention", BOTH)
def test_causal_queries_before_the_first_key_see_nothing(attention: object) -> None:
    """The queries are the last positions: of five, two stand before the first of three keys."""
    (query, _, _), (_, key, value) = heads(1, 2, 5, 4), heads(1, 2, 3, 4, seed=1)
    out = attention(query, key, value, causal=True)[0]
    assert (out[:, :, :2] == 0).all()
    torch.testing.assert_close(out[:, :, 2], value[:, :, 0])


def test_weights_are_float32_whatever_the_rest_is() -> None:
    for dtype, wide in (
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float64, torch.float64),
    ):
        out, weights = naive_attention(*heads(1, 2, 5, 4, dtype=dtype))
        assert (out.dtype, weights.dtype) == (dtype, wide)


@pytest.mark.parametrize("attention", BOTH)
def test_dropout_reaches_the_weights_and_keeps_their_mean(attention: object) -> None:
    torch.manual_seed(0)
    query, key, value = heads(1, 1, 8, 4, dtype=torch.float32)
    plain = attention(query, key, value)[0]
    drawn = torch.stack([attention(query, key, value, dropout=0.3)[0] for _ in range(1500)])
    assert (drawn[0] - plain).abs().max() > 1e-3
    torch.testing.assert_close(drawn.mean(0), plain, rtol=0, atol=0.1)


def test_a_mask_that_allows_nothing_at_all() -> None:
    query, key, value = (x.requires_grad_() for x in heads(2, 3, 5, 4))
    for attention in BOTH:
        out, weights = attention(query, key, value, torch.zeros(1, 1, 1, 5, dtype=torch.bool))
        assert (out == 0).all()
        assert weights is None or (weights == 0).all()
        assert all((g == 0).all() for g in torch.autograd.grad(out.sum(), [query, key, value]))


def test_huge_scores_stay_finite() -> None:
    scores = torch.tensor([[1e30, -1e30, 0.0], [-1e30, -1e30, -1e30]])
    assert masked_softmax(scores, torch.tensor([True, True, False])).tolist() == [[1, 0, 0], [0.5, 0.5, 0]]


def test_softmax_is_float32_under_autocast() -> None:
    attention, x = MultiHeadAttention(32, 2, implementation="naive"), torch.randn(2, 40, 32)
    with torch.autocast("cpu", torch.bfloat16):
        out, weights = attention(x, x, x, return_weights=True)
    assert out.dtype == torch.bfloat16  # that of the output projection
    assert weights.dtype == torch.float32
    assert (weights.sum(-1) - 1).abs().max() < 1e-6  # in bfloat16 the sum is off by a thousand times as much


def test_attention_dropout_acts_in_training_only() -> None:
    for implementation in ("naive", "sdpa"):
        attention = MultiHeadAttention(8, 2, dropout=0.5, implementation=implementation)
        x = torch.randn(2, 5, 8)
        assert not torch.equal(attention(x, x, x)[0], attention(x, x, x)[0])
        attention.eval()
        assert torch.equal(attention(x, x, x)[0], attention(x, x, x)[0])


def test_weights_are_returned_before_dropout() -> None:
    attention, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(2, 5, 8)
    _, weights = attention(x, x, x, return_weights=True)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 5))


def test_recorded_weights_leave_no_hook_behind() -> None:
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    with recorded_weights([attention]) as weights:
        attention(x, x, x, causal_mask(5))
    assert torch.equal(weights[attention], attention(x, x, x, causal_mask(5), return_weights=True)[1])
    assert attention(x, x, x)[1] is None
    assert not attention._forward_hooks
    assert not attention._forward_pre_hooks


def test_the_default_model_stays_on_the_flash_kernel() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(), VOCAB, VOCAB)
    src, tgt = sentences(3, 6), sentences(3, 5, seed=1)
    src[0, 4:] = 0
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # anything else raises
        model(src, tgt).sum().backward()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, None),
        ({"d_k": 4, "d_v": 8}, "d_k 4 differs from d_v 8"),
        ({"d_k": 4}, "d_k 4 differs from d_v 8"),
        ({"d_k": 6, "d_v": 6}, None),
        ({"positions": "t5"}, "positions t5 learn what they add"),
        ({"positions": "transformer_xl"}, "positions transformer_xl learn"),
        ({"positions": "alibi"}, None),
        ({"positions": "rotary"}, None),
        ({"bias": False, "attention_scale": False, "norm_placement": "post"}, None),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # torch says one by one which kernels it may not use
def test_flash_refusal_tells_what_torch_does(settings: dict, reason: str | None) -> None:
    model = tiny_model(dtype=torch.float32, **settings).train()
    told = flash_refusal(ModelConfig.model_validate({"d_model": 16, "n_heads": 2, **settings}))
    assert told is None if reason is None else reason in told
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        if reason is None:
            model(sentences(2, 5), sentences(2, 4)).sum().backward()
        else:
            with pytest.raises(RuntimeError, match="No available kernel"):
                model(sentences(2, 5), sentences(2, 4))


def test_dropout_of_weights_on_a_cpu_never_reaches_the_generator_that_threads_share() -> None:
    assert "attention_dropout is 0.1" in str(flash_refusal(ModelConfig(attention_dropout=0.1)))
    model = tiny_model(attention_dropout=0.1).train()
    before = torch.get_rng_state()
    with dropout_stream(1):
        first = model(sentences(2, 5), sentences(2, 4))
    with dropout_stream(1):
        second = model(sentences(2, 5), sentences(2, 4))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


def test_flash_refusal_is_silent_where_flash_was_not_asked_for() -> None:
    assert flash_refusal(ModelConfig(attention_dropout=0.1, attention="naive")) is None
    assert flash_refusal(ModelConfig(attention_dropout=0.1), "cuda") is None
    only_cross = {"encoder": "naive", "decoder": "naive", "cross": "sdpa"}
    assert flash_refusal(ModelConfig.model_validate({"positions": "t5", "attention": only_cross})) is None
    assert flash_refusal(ModelConfig.model_validate({"attention_dropout": 0.1, "attention": only_cross}))
