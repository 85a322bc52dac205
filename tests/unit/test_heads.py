"""What heads do: every number by hand, every type by an example."""

import math

import pytest
import torch
from torch import Tensor

from transformer_cli.inspection.heads import Head, HeadStatistics, doubles

N = 8
NOTHING = torch.zeros(N, dtype=torch.bool)


def measured(place: str, *heads: Tensor, separators: Tensor = NOTHING) -> list[Head]:
    statistics = HeadStatistics()
    statistics.add(place, 1, torch.stack(heads), separators)
    return statistics.heads()


def shifted(offset: int) -> Tensor:
    """Every query looks at the key so many tokens away; at the edges at the last one there is."""
    return torch.eye(N)[(torch.arange(N) + offset).clamp(0, N - 1)]


EVEN = torch.full((N, N), 1 / N)
NEAR = (torch.arange(N)[:, None] - torch.arange(N)).abs().le(2).float()
NEAR = NEAR / NEAR.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("place", "weights", "kind"),
    [
        ("encoder", shifted(-1), "previous position"),
        ("encoder", shifted(1), "next position"),
        ("decoder", shifted(0), "same position"),
        ("encoder", EVEN, "broad"),
        ("encoder", NEAR, "local"),
        ("encoder", shifted(4), "mixed"),
        ("cross", shifted(0), "alignment-like"),
        ("cross", EVEN, "broad"),
    ],
)
def test_types(place: str, weights: Tensor, kind: str) -> None:
    (head,) = measured(place, weights)
    assert head.kind == kind


def test_a_head_that_looks_at_separators() -> None:
    last = NOTHING.clone()
    last[-1] = True
    (head,) = measured("encoder", torch.eye(N)[torch.full((N,), N - 1)], separators=last)
    assert (head.kind, head.separators) == ("separator", 1.0)


def test_entropy_is_one_for_equal_weights_and_zero_for_one_token() -> None:
    one, even = measured("encoder", shifted(-1), EVEN)
    assert (one.entropy, even.entropy) == pytest.approx((0.0, 1.0))
    causal = torch.ones(N, N).tril()
    (head,) = measured("decoder", causal / causal.sum(1, keepdim=True))
    assert head.entropy == pytest.approx((N - 1) / N)  # the first token sees only itself, and has no choice


def test_distance_and_shares() -> None:
    (head,) = measured("encoder", shifted(-1))
    assert head.distance == pytest.approx((N - 1) / N)  # the first has nothing before it
    assert (head.previous, head.own, head.next, head.near) == pytest.approx(((N - 1) / N, 1 / N, 0, 1))


def test_distance_of_cross_attention_counts_from_the_diagonal() -> None:
    statistics = HeadStatistics()
    diagonal = torch.eye(8).repeat_interleave(2, 0)[:, :8]  # 16 target tokens, 8 source tokens
    statistics.add("cross", 1, diagonal[None], NOTHING)
    (head,) = statistics.heads()
    assert head.distance == pytest.approx(0.25)  # 0 and 1/2 in turn
    assert head.largest == 1.0


def test_nearest_heads_and_doubles() -> None:
    heads = measured("encoder", EVEN, shifted(3), EVEN)
    assert [head.nearest for head in heads] == [3, 1, 1]
    assert heads[0].nearest_distance == 0.0
    assert heads[1].nearest_distance == pytest.approx(1 - 1 / N)
    assert [(head.head, other) for head, other in doubles(heads)] == [(3, 1)]
    (alone,) = measured("encoder", EVEN)
    assert (alone.nearest, alone.nearest_distance) == (None, None)


def test_means_are_over_all_queries_of_all_sentences() -> None:
    statistics = HeadStatistics()
    statistics.add("encoder", 1, shifted(0)[None], NOTHING)
    statistics.add("encoder", 1, torch.eye(2)[[1, 0]][None], NOTHING[:2])
    (head,) = statistics.heads()
    assert head.own == pytest.approx(N / (N + 2))
    assert not math.isnan(head.entropy)
