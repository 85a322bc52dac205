"""Sparse attention in blocks is dense attention under the same mask, whatever pattern, length and padding."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.model.kernels import Pattern, SparseAttention, bigbird, blocks, dilated, naive_attention

small = st.integers(1, 9)
patterns = st.one_of(
    st.builds(dilated, small, st.integers(1, 4), global_tokens=st.integers(0, 5)),
    st.builds(
        bigbird,
        small,
        global_tokens=st.integers(0, 5),
        random_blocks=st.integers(0, 3),
        block=small,
        seed=st.integers(0, 99),
    ),
    st.builds(blocks, small),
)


@settings(deadline=None, max_examples=60)
@given(pattern=patterns, length=st.integers(1, 80), causal=st.booleans(), hidden=st.sets(st.integers(0, 79)))
def test_blocks_equal_pairs(pattern: Pattern, length: int, causal: bool, hidden: set[int]) -> None:
    torch.manual_seed(length)
    q, k, v = (torch.randn(1, 2, length, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([position not in hidden for position in range(length)])[None, None, None]
    seen = mask & pattern.dense_mask(length, causal=causal, n_heads=2)
    ours, theirs = SparseAttention(pattern)(q, k, v, mask, causal=causal)[0], naive_attention(q, k, v, seen)[0]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    gradients = (torch.autograd.grad(output.square().sum(), (q, k, v)) for output in (ours, theirs))
    for mine, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-10)
