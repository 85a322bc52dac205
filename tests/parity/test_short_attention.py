"""Attention of short sentences equals the written-out equation, and takes its place only where it may."""

import pytest
import torch
from torch import Tensor

from transformer_cli.model import attention as attention_module
from transformer_cli.model.attention import MultiHeadAttention, naive_attention
from transformer_cli.model.masks import causal_mask, combined_mask
from transformer_cli.model.short_attention import SHORT, short_attention, unpacked

B, H, K, KV = 3, 2, 4, 5
WIDTHS = (H * K, H * K, H * KV)
GROUPS = {"self": (3,), "cross": (1, 2), "apart": (1, 1, 1)}


def packed(groups: str, length: int, n_keys: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(length + n_keys)
    tensors, first = [], 0
    for size in GROUPS[groups]:
        width = sum(WIDTHS[first : first + size])
        rows = length if first == 0 else n_keys
        tensors.append(torch.randn(B, rows, width, dtype=dtype, requires_grad=True))
        first += size
    return tensors


def by_the_equation(tensors: list[Tensor], mask: Tensor | None, scale: float) -> Tensor:
    q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in unpacked(tensors, WIDTHS))
    return naive_attention(q, k, v, mask, scale=scale)[0].transpose(1, 2).flatten(2)


def masks(length: int, n_keys: int) -> dict[str, Tensor | None]:
    padding = torch.arange(n_keys) < torch.tensor([n_keys, max(1, n_keys - 2), 1])[:, None]
    nothing = padding.clone()
    nothing[1] = False
    return {
        "none": None,
        "padding": padding[:, None, None],
        "both": combined_mask(padding[:, None, None], causal_mask(length, n_keys)),
        "nothing": nothing[:, None, None],
        "all nothing": torch.zeros(1, 1, 1, n_keys, dtype=torch.bool),
    }


@pytest.mark.parametrize("mask", list(masks(1, 1)))
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("length", [1, 7, 16, 17, SHORT])
def test_values_and_gradients_are_those_of_the_equation(mask: str, groups: str, length: int) -> None:
    n_keys = length if groups == "self" else max(length, 9)
    tensors, hidden = packed(groups, length, n_keys), masks(length, n_keys)[mask]
    got, expected = (
        short_attention(*tensors, widths=WIDTHS, n_heads=H, mask=hidden, scale=0.7),
        by_the_equation(tensors, hidden, 0.7),
    )
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    direction = torch.randn_like(got)
    for g, e in zip(
        torch.autograd.grad(got, tensors, direction), torch.autograd.grad(expected, tensors, direction), strict=True
    ):
        torch.testing.assert_close(g, e, rtol=1e-12, atol=1e-12)


def test_bfloat16_comes_and_goes_but_does_not_compute() -> None:
    exact = packed("self", 9, 9, torch.float32)
    low = [x.detach().bfloat16().requires_grad_() for x in exact]
    got, expected = (
        short_attention(*low, widths=WIDTHS, n_heads=H, mask=None, scale=0.5),
        by_the_equation([low[0].float()], None, 0.5),
    )
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got, expected.bfloat16(), rtol=0, atol=0)
    assert torch.autograd.grad(got.sum(), low)[0].dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("settings", "length", "training", "taken"),
    [
        ({}, 5, True, True),
        ({}, SHORT, True, True),
        ({}, SHORT + 1, True, False),
        ({}, 5, False, False),
        ({"implementation": "naive"}, 5, True, False),
        ({"dropout": 0.1}, 5, True, False),
        ({"qk_norm": True}, 5, True, False),
    ],
)
def test_who_takes_it(
    settings: dict[str, object], length: int, training: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    original = short_attention
    monkeypatch.setattr(
        attention_module, "short_attention", lambda *inputs, **more: calls.append(inputs) or original(*inputs, **more)
    )
    x = torch.randn(2, length, 8)
    MultiHeadAttention(8, 2, **settings).train(training)(x, x, x)
    assert bool(calls) == taken


def test_weights_are_asked_of_the_equation() -> None:
    x = torch.randn(2, 5, 8)
    out, weights = MultiHeadAttention(8, 2)(x, x, x, return_weights=True)
    assert out.shape == x.shape
    assert weights.shape == (2, 2, 5, 5)
