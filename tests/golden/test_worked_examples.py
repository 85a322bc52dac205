"""Worked examples of attention, small enough for a sheet of paper.

"The cat sat" is printed with mistakes in a widely read tutorial: row 3 of Q as [2,1,2,2], rows 1 and 3 of V as
[1,0,2,1] and [2,2,2,2], Q Kᵀ as [[2,5,9],[4,4,9],[6,8,12]], and the softmax of [2,2,4.5] and [3,4,6] as
0.035/0.035/0.930 and 0.024/0.064/0.912. Here are the right values.
"""

import math

import pytest
import torch
from torch import Tensor

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.kernels import masked_softmax, naive_attention, sdpa_attention
from transformer_cli.model.masks import causal_mask

BOTH = pytest.mark.parametrize("attention", [naive_attention, sdpa_attention])


def matrix(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


X = matrix([1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1])
W_Q = matrix([1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 1])
W_K = matrix([0, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 0])
W_V = matrix([0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0])
Q = matrix([2, 1, 1, 1], [1, 2, 1, 1], [2, 1, 2, 1])
K = matrix([0, 1, 1, 1], [1, 0, 2, 1], [2, 2, 1, 2])
V = matrix([0, 1, 1, 2], [1, 2, 0, 1], [2, 1, 2, 1])
SCORES = matrix([3, 5, 9], [4, 4, 9], [4, 7, 10])


def softmax_by_hand(row: list[float]) -> list[float]:
    exponentials = [math.exp(x) for x in row]
    return [e / sum(exponentials) for e in exponentials]


def attention_by_hand(q: Tensor, k: Tensor, v: Tensor) -> list[list[float]]:
    """Every sum written out, in plain Python."""
    q, k, v = q.tolist(), k.tolist(), v.tolist()
    out = []
    for query in q:
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in k]
        weights = softmax_by_hand(scores)
        out.append([sum(w * value[j] for w, value in zip(weights, v, strict=True)) for j in range(len(v[0]))])
    return out


def the_cat_sat(n_heads: int) -> MultiHeadAttention:
    """A module with the example's projections, and none behind the heads."""
    attention = MultiHeadAttention(4, n_heads, bias=False).double()
    pairs = {"q_proj": W_Q, "k_proj": W_K, "v_proj": W_V, "out_proj": torch.eye(4, dtype=torch.float64)}
    attention.load_state_dict({f"{name}.weight": weight.T for name, weight in pairs.items()})
    return attention


def test_the_cat_sat_projections() -> None:
    assert torch.equal(X @ W_Q, Q)
    assert torch.equal(X @ W_K, K)
    assert torch.equal(X @ W_V, V)
    attention = the_cat_sat(1)
    assert torch.equal(attention.q_proj(X), Q)
    k, v = attention.keys_values(X[None], X[None])
    assert torch.equal(k[0, 0], K)
    assert torch.equal(v[0, 0], V)


def test_the_cat_sat_scores() -> None:
    assert torch.equal(Q @ K.T, SCORES)


def test_the_cat_sat_weights() -> None:
    _, weights = the_cat_sat(1)(X[None], X[None], X[None], return_weights=True)
    expected = [softmax_by_hand([score / 2 for score in row]) for row in SCORES.tolist()]
    assert weights[0, 0].tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    assert weights[0, 0, 1].tolist() == pytest.approx([0.0705, 0.0705, 0.859], abs=5e-4)  # softmax of [2, 2, 4.5]


@pytest.mark.parametrize(
    ("scores", "weights"), [([2, 2, 4.5], [0.0705, 0.0705, 0.859]), ([3, 4, 6], [0.042, 0.114, 0.844])]
)
def test_softmax_of_single_rows(scores: list[float], weights: list[float]) -> None:
    assert masked_softmax(matrix(scores), None)[0].tolist() == pytest.approx(weights, abs=5e-4)


@BOTH
def test_the_cat_sat_output(attention: object) -> None:
    out = attention(Q[None, None], K[None, None], V[None, None])[0][0, 0]
    assert out.tolist() == [pytest.approx(row, abs=1e-12) for row in attention_by_hand(Q, K, V)]


def test_the_cat_sat_masked() -> None:
    _, weights = the_cat_sat(1)(X[None], X[None], X[None], causal_mask(3), return_weights=True)
    assert weights[0, 0, 0].tolist() == [1, 0, 0]
    assert weights[0, 0, 1].tolist() == pytest.approx([0.5, 0.5, 0], abs=1e-12)
    assert weights[0, 0, 2].tolist() == pytest.approx(softmax_by_hand([2, 3.5, 5]), abs=1e-12)


def test_the_cat_sat_with_two_heads() -> None:
    out, weights = the_cat_sat(2)(X[None], X[None], X[None], return_weights=True)
    halves = [slice(0, 2), slice(2, 4)]  # head 1 has the first two columns of Q, K and V, head 2 the last two
    by_hand = [attention_by_hand(Q[:, half], K[:, half], V[:, half]) for half in halves]
    assert out[0].tolist() == [pytest.approx(first + second, abs=1e-12) for first, second in zip(*by_hand, strict=True)]
    root = math.sqrt(2)
    assert weights[0, 0, 0].tolist() == pytest.approx(softmax_by_hand([1 / root, 2 / root, 6 / root]), abs=1e-12)
    assert weights[0, 1, 0].tolist() == pytest.approx(softmax_by_hand([2 / root, 3 / root, 3 / root]), abs=1e-12)


@BOTH
def test_cat_eats_fish(attention: object) -> None:
    q = matrix([1, 0.2], [0.5, 0.8], [0.1, 0.5])
    k = matrix([0.8, 0.1], [0.3, 0.6], [0.9, 0.4])
    v = matrix([0.5, -0.2], [0.2, 0.7], [-0.4, 0.3])
    out, weights = attention(q[None, None], k[None, None], v[None, None])
    assert out[0, 0].tolist() == [pytest.approx(row, abs=1e-12) for row in attention_by_hand(q, k, v)]
    if weights is not None:
        assert weights[0, 0, 0].tolist() == pytest.approx([0.35, 0.26, 0.39], abs=5e-3)


def test_softmax_jacobian() -> None:
    scores = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.float64)
    s = masked_softmax(scores, None)
    expected = torch.diag(s) - torch.outer(s, s)  # ∂s_i/∂x_j = s_i (δ_ij − s_j)
    jacobian = torch.autograd.functional.jacobian(lambda x: masked_softmax(x, None), scores)
    torch.testing.assert_close(jacobian, expected, rtol=0, atol=1e-12)


def test_softmax_jacobian_behind_a_mask() -> None:
    scores = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.float64)
    mask = torch.tensor([True, True, False, True])
    s = masked_softmax(scores, mask)
    jacobian = torch.autograd.functional.jacobian(lambda x: masked_softmax(x, mask), scores)
    torch.testing.assert_close(jacobian, torch.diag(s) - torch.outer(s, s), rtol=0, atol=1e-12)
    assert (jacobian[2] == 0).all()
    assert (jacobian[:, 2] == 0).all()
