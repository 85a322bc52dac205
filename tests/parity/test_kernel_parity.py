"""Every kernel equals attention by its equation: outputs and gradients."""

import pytest
import torch
from torch import Tensor

from transformer_cli.model.kernels import (
    Linformer,
    Pattern,
    SparseAttention,
    bigbird,
    blocks,
    dilated,
    flash_attention,
    naive_attention,
    window,
)

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
B, H, K, KV = 2, 3, 4, 6
PATTERNS = {
    "window": window(3),
    "window, global": window(2, global_tokens=3),
    "window wider than the text": window(500, global_tokens=1),
    "window longer than a block": window(70),
    "dilated": dilated(2, 3),
    "dilated, global": dilated(3, 2, global_tokens=4),
    "bigbird": bigbird(3, global_tokens=2, random_blocks=2, block=4),
    "bigbird without global": bigbird(5, block=4, random_blocks=1, seed=7),
    "bigbird without random": bigbird(5, global_tokens=1, random_blocks=0),
    "blocks": blocks(4),
    "blocks longer than the text": blocks(200),
}


def inputs(dtype: torch.dtype, length: int, d_v: int = KV) -> list[Tensor]:
    torch.manual_seed(length)
    return [torch.randn(B, H, length, width, dtype=dtype) for width in (K, K, d_v)]


def padding(length: int) -> Tensor:
    """Hide a half of the first sentence, rounded down to all of it for one token, and nothing of the second."""
    return (torch.arange(length) < torch.tensor([[length // 2], [length]]))[:, None, None]


def assert_equal(ours, theirs, tensors: list[Tensor], dtype: torch.dtype) -> None:
    results = []
    for function in (ours, theirs):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        output = function(*leaves)
        weights = torch.randn(output.shape, dtype=dtype, generator=torch.Generator().manual_seed(1))
        results.append([output, *torch.autograd.grad(output, leaves, weights)])
    for mine, expected in zip(*results, strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("length", [1, 7, 16, 50, 150])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_sparse_equals_dense_under_the_same_mask(
    pattern: Pattern, dtype: torch.dtype, causal: bool, padded: bool, length: int
) -> None:
    seen = pattern.dense_mask(length, causal=causal, n_heads=H)
    mask = padding(length) if padded else None
    assert_equal(
        lambda *qkv: SparseAttention(pattern)(*qkv, mask, causal=causal)[0],
        lambda *qkv: naive_attention(*qkv, seen if mask is None else seen & mask)[0],
        inputs(dtype, length),
        dtype,
    )


def test_sparse_equals_dense_with_another_scale_and_where_one_mask_serves_all_sentences() -> None:
    pattern, mask = bigbird(3, global_tokens=2, block=4), padding(30)[:1]
    assert_equal(
        lambda *qkv: SparseAttention(pattern)(*qkv, mask, scale=0.3)[0],
        lambda *qkv: naive_attention(*qkv, mask & pattern.dense_mask(30), scale=0.3)[0],
        inputs(torch.float64, 30),
        torch.float64,
    )


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_flash_equals_naive(dtype: torch.dtype, causal: bool, padded: bool) -> None:
    mask = padding(9) if padded else None
    assert_equal(
        lambda *qkv: flash_attention(*qkv, mask, causal=causal)[0],
        lambda *qkv: naive_attention(*qkv, mask, causal=causal)[0],
        inputs(dtype, 9, d_v=K),
        dtype,
    )


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("length", [1, 5, 12])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_linformer_equals_its_equation_one_sentence_at_a_time(dtype: torch.dtype, length: int, padded: bool) -> None:
    torch.manual_seed(3)
    kernel, mask = Linformer(rank=5, max_length=12).to(dtype), padding(length) if padded else None

    def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows = []
        for b in range(B):
            n = length if mask is None else int(mask[b].sum())  # padding is as if it were not there
            e, f = kernel.key_mix[:, :n], kernel.value_mix[:, :n]
            heads = [((q[b, h] @ (e @ k[b, h, :n]).T) / K**0.5).softmax(-1) @ (f @ v[b, h, :n]) for h in range(H)]
            rows.append(torch.stack(heads))
        return torch.stack(rows)

    assert_equal(lambda *qkv: kernel(*qkv, mask)[0], by_hand, inputs(dtype, length), dtype)
    assert_equal(lambda *qkv: kernel.naive(*qkv, mask)[0], by_hand, inputs(dtype, length), dtype)
    assert kernel.naive(*inputs(dtype, length), mask)[1].shape == (B, H, length, 5)
