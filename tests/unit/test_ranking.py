import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.ranking import DEAD, STEPS_PER_NAT, best, best_tokens, to_grid


def sorted_by_hand(values: list[int], k: int) -> list[int]:
    return sorted(range(len(values)), key=lambda index: (-values[index], index))[:k]


@given(st.lists(st.sampled_from([DEAD, -3, -2, 0]), min_size=1, max_size=30), st.integers(1, 30))
def test_equals_come_in_the_order_of_their_indices(values: list[int], k: int) -> None:
    k = min(k, len(values))
    top, indices = best(torch.tensor([values]), k)
    assert indices[0].tolist() == sorted_by_hand(values, k)
    assert top[0].tolist() == [values[index] for index in indices[0].tolist()]


@given(
    st.integers(0, 10_000), st.sampled_from([5, 33, 64, 300, 700]), st.integers(1, 9), st.sampled_from([1, 4, 200, 500])
)
def test_best_tokens_are_those_of_a_full_sort(seed: int, size: int, k: int, n_levels: int) -> None:
    draws = torch.randint(n_levels, (2, size), generator=torch.Generator().manual_seed(seed))
    log_probs = -draws.float() / n_levels
    log_probs[:, :3] = -torch.inf
    values, ids = best_tokens(log_probs, k)
    for row in range(2):
        expected = sorted_by_hand(to_grid(log_probs[row]).tolist(), k)
        assert ids[row].tolist() == expected
        assert values[row].tolist() == to_grid(log_probs[row])[expected].tolist()


def test_a_last_block_that_is_not_whole_holds_no_more_than_its_tokens() -> None:
    log_probs = torch.zeros(2, 161)
    log_probs[:, -1] = 1.0
    assert best_tokens(log_probs, 2)[1].tolist() == [[160, 0]] * 2


def test_grid_is_fine_and_survives_infinities() -> None:
    log_probs = torch.tensor([-1.23456789, -torch.inf, torch.nan, 0.0])
    steps = to_grid(log_probs)
    assert steps.tolist() == [round(-1.23456789 * STEPS_PER_NAT), DEAD, DEAD, 0]
    assert abs(steps[0].item() / STEPS_PER_NAT + 1.23456789) < 1e-4
