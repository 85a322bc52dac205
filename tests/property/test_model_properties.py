"""What holds for every sentence, every mask and every shape of the model."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from model_rig import sentences, tiny_model
from torch import Tensor, nn

from transformer_cli.model.kernels import naive_attention, sdpa_attention
from transformer_cli.model.masks import padding_mask
from transformer_cli.model.positions import NoPositions
from transformer_cli.model.transformer import Transformer

BOTH = pytest.mark.parametrize("attention", [naive_attention, sdpa_attention])
DENSE = {
    "default": {},
    "post-naive": {"norm_placement": "post", "attention": "naive", "tie_embeddings": "none"},
    "learned-swiglu-qk-norm": {"positions": "learned", "activation": "swiglu", "d_k": 4, "d_v": 6, "qk_norm": True},
    "transformer-xl-rms": {"positions": "transformer_xl", "norm": "rms"},
}
SPARSE = {"encoder": "sparse", "decoder": "sparse"}
OTHERS = {
    "linformer": {"attention": {"encoder": "linformer"}},
    "window": {"attention": SPARSE, "sparse": {"window": 2, "global_tokens": 1}},
    "bigbird": {"attention": SPARSE, "sparse": {"pattern": "bigbird", "window": 1, "block": 2, "random_blocks": 2}},
    "blocks": {"attention": SPARSE, "sparse": {"pattern": "blocks", "block": 2}},
}
KINDS = pytest.mark.parametrize("kind", DENSE.values(), ids=DENSE)
ALL_KINDS = pytest.mark.parametrize("kind", (DENSE | OTHERS).values(), ids=DENSE | OTHERS)
few = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 10_000)
lengths = st.integers(1, 9)


def loss_gradients(model: Transformer, logits: Tensor, real: Tensor) -> list[Tensor]:
    """Gradients of all parameters for a loss that reads the logits of real target tokens."""
    loss = logits[real].square().sum()
    return list(torch.autograd.grad(loss, list(model.parameters())))


@KINDS
@few
@given(seed=seeds, length=st.integers(2, 9), data=st.data())
def test_no_future_token_changes_a_past_logit(kind: dict, seed: int, length: int, data: st.DataObject) -> None:
    model, src = tiny_model(**kind), sentences(2, 5, seed=seed)
    tgt, other = sentences(2, length, seed=seed + 1), sentences(2, length, seed=seed + 2)
    now = data.draw(st.integers(0, length - 2), label="now")
    changed = torch.cat([tgt[:, : now + 1], other[:, now + 1 :]], dim=1)
    torch.testing.assert_close(model(src, tgt)[:, : now + 1], model(src, changed)[:, : now + 1], rtol=0, atol=1e-12)

    memory, mask = model.encode(src), padding_mask(src, 0)
    x = model.tgt_embedding(tgt).detach().requires_grad_()
    logits = model.project(model.decoder(x, memory, mask))
    (gradient,) = torch.autograd.grad(logits[:, now].square().sum(), x)
    assert (gradient[:, now + 1 :] == 0).all()
    assert (gradient[:, : now + 1] != 0).any(-1).all()  # and every past one may


@ALL_KINDS
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@few
@given(seed=seeds, src_length=lengths, tgt_length=lengths, src_more=st.integers(0, 5), tgt_more=st.integers(0, 5))
def test_padding_changes_nothing(
    kind: dict,
    dtype: torch.dtype,
    tolerance: float,
    seed: int,
    src_length: int,
    tgt_length: int,
    src_more: int,
    tgt_more: int,
) -> None:
    model = tiny_model(dtype=dtype, **kind)
    src, tgt = sentences(2, src_length, seed=seed), sentences(2, tgt_length, seed=seed + 1)
    logits = model(src, tgt)
    padded = model(nn.functional.pad(src, (0, src_more)), nn.functional.pad(tgt, (0, tgt_more)))[:, :tgt_length]
    torch.testing.assert_close(padded, logits, rtol=tolerance, atol=tolerance)
    real = torch.ones_like(tgt, dtype=torch.bool)
    gradients = loss_gradients(model, logits, real), loss_gradients(model, padded, real)
    for plain, with_padding in zip(*gradients, strict=True):
        largest = plain.abs().max().item() + 1
        torch.testing.assert_close(with_padding, plain, rtol=0, atol=tolerance * largest)


@ALL_KINDS
@few
@given(seed=seeds, shapes=st.lists(st.tuples(lengths, lengths), min_size=1, max_size=5))
def test_a_batch_is_its_sentences_one_by_one(kind: dict, seed: int, shapes: list[tuple[int, int]]) -> None:
    model = tiny_model(**kind)
    pairs = [(sentences(1, s, seed=seed + s)[0], sentences(1, t, seed=seed + 20 + t)[0]) for s, t in shapes]
    src, tgt = (nn.utils.rnn.pad_sequence(list(side), batch_first=True) for side in zip(*pairs, strict=True))
    logits = model(src, tgt)
    for row, (one_src, one_tgt) in enumerate(pairs):
        alone = model(one_src[None], one_tgt[None])[0]
        torch.testing.assert_close(logits[row, : len(one_tgt)], alone, rtol=0, atol=1e-10)


@KINDS
@few
@given(seed=seeds, data=st.data())
def test_cached_decoding_with_any_parents_and_places_equals_uncached(
    kind: dict, seed: int, data: st.DataObject
) -> None:
    model, src = tiny_model(**kind), sentences(3, 5, seed=seed)
    src[0, 2:] = 0
    n_hypotheses = data.draw(st.integers(1, 3), label="hypotheses")
    cache = model.new_cache(3, n_hypotheses, 5)
    model.admit(cache, [0, 1, 2], src)
    past = torch.empty(3, n_hypotheses, 0, dtype=torch.long)
    one = st.lists(st.integers(0, n_hypotheses - 1), min_size=n_hypotheses, max_size=n_hypotheses)
    for step in range(4):
        drawn = data.draw(st.lists(one, min_size=len(src), max_size=len(src)), label="parents")
        parents = torch.tensor(drawn)
        tokens = sentences(len(src), n_hypotheses, seed=seed + step)
        past = torch.cat([past.gather(1, parents[..., None].expand_as(past)), tokens[..., None]], dim=2)
        hidden = model.decode_step(tokens, parents, cache)
        wide = src.repeat_interleave(n_hypotheses, 0)
        expected = model.decode(past.flatten(0, 1), model.encode(wide), wide)[:, -1]
        torch.testing.assert_close(hidden.flatten(0, 1), expected, rtol=0, atol=1e-10)
        kept = data.draw(st.lists(st.integers(0, len(src) - 1), min_size=1, unique=True), label="places")
        cache.keep(kept)
        src, past = src[kept], past[kept]


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@few
@given(seed=seeds, share=st.floats(0, 1), factor=st.sampled_from([0.1, 1.0, 30.0]))
def test_fully_masked_rows_are_finite_and_leave_their_neighbours_alone(
    attention: object, dtype: torch.dtype, seed: int, share: float, factor: float
) -> None:
    torch.manual_seed(seed)
    query, key, value = ((torch.randn(2, 2, 5, 4) * factor).to(dtype).requires_grad_() for _ in range(3))
    mask = torch.rand(2, 1, 5, 5) > 0.5
    mask[..., 0] = True  # at first everybody sees somebody
    blind = torch.rand(2, 1, 5, 1) < share
    blind[0, 0, 0], blind[1, 0, 0] = True, False
    seen, partly = (attention(query, key, value, m)[0] for m in (mask, mask & ~blind))
    assert partly.isfinite().all()
    assert (partly.masked_fill(~blind, 0.0) == 0).all()
    assert torch.equal(partly.masked_fill(blind, 0.0), seen.masked_fill(blind, 0.0))

    ours, theirs = (
        torch.autograd.grad(out.masked_fill(blind, 0.0).float().sum(), [query, key, value]) for out in (partly, seen)
    )
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    everything = torch.autograd.grad(attention(query, key, value, mask & ~blind)[0].float().sum(), [query, key, value])
    assert all(gradient.isfinite().all() for gradient in everything)


@BOTH
@few
@given(seed=seeds, queries=lengths, keys=lengths, factor=st.sampled_from([0.1, 1.0, 30.0]))
def test_outputs_lie_in_the_convex_hull_of_the_visible_values(
    attention: object, seed: int, queries: int, keys: int, factor: float
) -> None:
    torch.manual_seed(seed)
    query, key, value = (torch.randn(1, 1, n, 3, dtype=torch.float64) * factor for n in (queries, keys, keys))
    mask = torch.rand(1, 1, queries, keys) > 0.5
    mask[..., 0] = True
    out = attention(query, key, value, mask)[0]
    directions = torch.randn(3, 200, dtype=torch.float64)  # a point is in the hull iff no direction leads out of it
    reach = (value @ directions)[:, :, None].masked_fill(~mask[..., None], -torch.inf).amax(-2)  # [1, 1, T, 200]
    assert ((out @ directions) <= reach + 1e-9).all()


@KINDS
@few
@given(seed=seeds, order=st.permutations(range(6)))
def test_only_positions_tell_the_encoder_the_order(kind: dict, seed: int, order: list[int]) -> None:
    assume(order != sorted(order))
    model, src = tiny_model(**kind), sentences(2, 6, seed=seed)
    assert (model.encode(src[:, order]) - model.encode(src)[:, order]).abs().max() > 1e-3
    model.src_embedding.positions = NoPositions()
    for layer in model.encoder.layers:
        layer.self_attn.positions = None
    torch.testing.assert_close(model.encode(src[:, order]), model.encode(src)[:, order], rtol=0, atol=1e-10)
