"""What holds for every kind of positions: what a score may know of two places."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rig import sentences, tiny_model
from torch import Tensor

from transformer_cli.model.positions import sinusoidal_table

RELATIVE = ["rotary", "transformer_xl", "t5", "alibi"]
few = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 10_000)


def scores(positions: torch.nn.Module, query: Tensor, key: Tensor) -> Tensor:
    query, key, bias = positions(query, key, 1.0)
    found = query @ key.mT
    return found if bias is None else found + bias


@pytest.mark.parametrize("kind", RELATIVE)
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@few
@given(seed=seeds, length=st.integers(1, 12), shift=st.integers(0, 200))
def test_scores_depend_on_distances_only(kind: str, stack: str, seed: int, length: int, shift: int) -> None:
    """The same tokens further on, behind others that nobody asks: the same scores among them."""
    positions = getattr(tiny_model(positions=kind, seed=seed), stack).layers[0].self_attn.positions
    generator = torch.Generator().manual_seed(seed)
    query, key, before = (
        torch.randn(1, 2, n, 8, dtype=torch.float64, generator=generator) for n in (length, length, shift)
    )
    here = scores(positions, query, key)
    there = scores(positions, torch.cat([before, query], dim=2), torch.cat([before, key], dim=2))[..., shift:, shift:]
    seen = torch.ones(length, length, dtype=torch.bool).tril(0 if stack == "decoder" else length)
    torch.testing.assert_close(there[..., seen], here[..., seen], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", RELATIVE)
@few
@given(seed=seeds, distance=st.integers(1, 9))
def test_scores_know_the_distance(kind: str, seed: int, distance: int) -> None:
    positions = tiny_model(positions=kind, seed=seed).encoder.layers[0].self_attn.positions
    same = torch.randn(1, 2, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).expand(
        1, 2, 12, 8
    )
    found = scores(positions, same, same)
    assert (found[..., 10, 10 - distance] - found[..., 10, 10]).abs().max() > 1e-4


@pytest.mark.parametrize("kind", ["rotary", "transformer_xl", "t5", "alibi", "none"])
@settings(deadline=None, max_examples=6)
@given(seed=seeds, length=st.integers(1, 9), more=st.integers(0, 9))
def test_padding_and_later_tokens_change_nothing(kind: str, seed: int, length: int, more: int) -> None:
    model, src, tgt = tiny_model(positions=kind), sentences(2, length, seed=seed), sentences(2, length, seed=seed + 1)
    padded = torch.cat([src, torch.zeros(2, more, dtype=torch.long)], dim=1)
    longer = torch.cat([tgt, sentences(2, more, seed=seed + 2)], dim=1)
    torch.testing.assert_close(model(padded, longer)[:, :length], model(src, tgt), rtol=0, atol=1e-10)


@few
@given(seed=seeds, order=st.permutations(range(6)))
def test_without_positions_an_encoder_sees_a_bag_of_words(seed: int, order: list[int]) -> None:
    model, src = tiny_model(positions="none"), sentences(2, 6, seed=seed)
    torch.testing.assert_close(model.encode(src[:, order]), model.encode(src)[:, order], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", *RELATIVE, "none"])
def test_i_hit_you_and_you_hit_me(kind: str) -> None:
    """我打你 and 你打我: a model without positions cannot tell them apart."""
    me, hit, you = 5, 6, 7
    model = tiny_model(positions=kind)
    first, second = model.encode(torch.tensor([[me, hit, you]])), model.encode(torch.tensor([[you, hit, me]]))
    difference = (first - second.flip(1)).abs().max()
    assert (
        difference < 1e-10 if kind in ("none", "alibi") else difference > 1e-3
    )  # mirrored, ALiBi's distances are equal


@few
@given(d_model=st.integers(1, 40).map(lambda half: 2 * half))
def test_no_two_sinusoidal_rows_are_alike(d_model: int) -> None:
    table = sinusoidal_table(200, d_model)
    apart = torch.cdist(table, table) + torch.eye(200, dtype=torch.float64)
    assert apart.min() > 1e-3
