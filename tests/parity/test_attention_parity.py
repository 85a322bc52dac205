"""Multi-head attention equals torch.nn.MultiheadAttention: outputs, weights and gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch_twins import TOLERANCE, assert_same

from transformer_cli.benchmark.torch_model import attention_twins, copy_weights
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.masks import causal_mask, combined_mask

B, T, S, D, H = 2, 5, 7, 12, 3
PADDING = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)  # True = a real token


def twins(
    dtype: torch.dtype, implementation: str, bias: bool = True
) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    torch.manual_seed(1)
    ours = MultiHeadAttention(D, H, bias=bias, implementation=implementation).to(dtype)
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=dtype)
    copy_weights(attention_twins(ours, theirs))
    return ours, theirs


def inputs(dtype: torch.dtype, length: int) -> list[Tensor]:
    torch.manual_seed(2)
    return [torch.randn(B, n, D, dtype=dtype) for n in (length, S, S)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", ["none", "padding", "causal", "both"])
def test_outputs_and_gradients(dtype: torch.dtype, implementation: str, bias: bool, mask: str) -> None:
    ours, theirs = twins(dtype, implementation, bias)
    causal = mask in ("causal", "both")
    padding = PADDING if mask in ("padding", "both") else None
    hidden = None if padding is None else ~padding  # torch: True = may not attend
    future = ~causal_mask(S)[0, 0] if causal else None
    assert_same(
        lambda q, k, v: ours(q, k, v, None if padding is None else padding[:, None, None], causal=causal)[0],
        lambda q, k, v: theirs(q, k, v, key_padding_mask=hidden, attn_mask=future, need_weights=False)[0],
        inputs(dtype, S if causal else T),
        attention_twins(ours, theirs),
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_weights_of_every_head(dtype: torch.dtype) -> None:
    ours, theirs = twins(dtype, "sdpa")
    query, key, value = inputs(dtype, S)
    mask = combined_mask(PADDING[:, None, None], causal_mask(S))
    weights = ours(query, key, value, mask, return_weights=True)[1]
    expected = theirs(
        query, key, value, attn_mask=~mask.repeat_interleave(H, 0)[:, 0], average_attn_weights=False, need_weights=True
    )[1]
    torch.testing.assert_close(weights, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
