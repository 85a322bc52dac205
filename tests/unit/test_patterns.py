"""Which keys a query sees: small patterns as pictures, and what holds for all of them."""

import pytest
import torch

from transformer_cli.config import SparseConfig
from transformer_cli.model.kernels import Pattern, bigbird, blocks, dilated, pattern_of, pattern_remark, window

EVERY = {
    "window": window(2),
    "global": window(1, global_tokens=2),
    "dilated": dilated(2, 3, global_tokens=1),
    "bigbird": bigbird(2, global_tokens=1, random_blocks=2, block=3, seed=5),
    "blocks": blocks(3),
}
every_pattern = pytest.mark.parametrize("pattern", EVERY.values(), ids=EVERY)


def picture(pattern: Pattern, length: int, *, causal: bool = False, head: int = 0, n_heads: int = 1) -> list[str]:
    mask = pattern.dense_mask(length, causal=causal, n_heads=n_heads)[0]
    return ["".join("x" if seen else "." for seen in row) for row in mask[min(head, len(mask) - 1)]]


def test_window() -> None:
    assert picture(window(1), 4) == ["xx..", "xxx.", ".xxx", "..xx"]
    assert picture(window(1), 4, causal=True) == ["x...", "xx..", ".xx.", "..xx"]


def test_global_tokens_see_everything_and_are_seen() -> None:
    assert picture(window(1, global_tokens=1), 5) == ["xxxxx", "xxx..", "xxxx.", "x.xxx", "x..xx"]
    assert picture(window(1, global_tokens=1), 5, causal=True) == ["x....", "xx...", "xxx..", "x.xx.", "x..xx"]


def test_dilated() -> None:
    assert picture(dilated(2, 2), 7)[3] == ".x.x.x."
    assert picture(dilated(2, 2), 7)[6] == "..x.x.x"
    assert picture(dilated(1, 3), 7, causal=True)[5] == "..x..x."


def test_blocks_are_shifts_in_groups_of_as_many_blocks_as_heads() -> None:
    assert picture(blocks(2), 4, head=0, n_heads=2) == ["xx..", "xx..", "..xx", "..xx"]
    assert picture(blocks(2), 4, head=1, n_heads=2) == ["..xx", "..xx", "xx..", "xx.."]
    assert picture(blocks(1), 6, head=1, n_heads=3) == ["..x...", "x.....", ".x....", ".....x", "...x..", "....x."]


def test_blocks_whose_partner_is_missing() -> None:
    assert picture(blocks(1), 2, head=1, n_heads=3) == ["..", "x."]  # behind the end: nothing
    assert picture(blocks(1), 3, head=1, n_heads=3, causal=True) == ["x..", "x..", ".x."]  # later: itself


def test_bigbird_draws_whole_blocks_that_the_window_does_not_reach() -> None:
    pattern = bigbird(4, random_blocks=2, block=4)
    for causal, most in ((True, 2), (False, 4)):
        table = pattern.chosen_blocks(20, causal=causal)[0].tolist()
        for own, row in enumerate(table):
            drawn = [other for other in row if other >= 0]
            assert len(set(drawn)) == len(drawn) <= most
            assert all(abs(own - other) > 1 for other in drawn)
            assert not causal or all(other < own for other in drawn)
            assert all(other <= 2 * own + 2 for other in drawn)  # behind it as many as before, and one more
            assert sum(other < own for other in drawn) == min(2, max(0, own - 1))
        mask = pattern.dense_mask(80, causal=causal)[0, 0]
        for own, row in enumerate(table):
            for other in [other for other in row if other >= 0]:
                assert mask[own * 4 : own * 4 + 4, other * 4 : other * 4 + 4].all()
    assert any(other > own for own, row in enumerate(table) for other in row)


def test_bigbird_draws_by_its_seed() -> None:
    one, same, other = (bigbird(2, block=2, seed=seed).chosen_blocks(40, causal=False).tolist() for seed in (1, 1, 2))
    assert one == same != other


def test_bigbird_draws_each_side_for_itself() -> None:
    """Were both sides one draw, what lies behind would be as far into its candidates as what lies before."""
    table = bigbird(2, block=2).chosen_blocks(400, causal=False)[0, 2:180].tolist()
    shares = [
        ((before + 0.5) / (own - 1), (after - own - 1.5) / (own + 1)) for own, (before, after) in enumerate(table, 2)
    ]
    assert sum(abs(before - after) < 0.1 for before, after in shares) < len(shares) / 2


@every_pattern
@pytest.mark.parametrize("causal", [False, True])
def test_no_pair_depends_on_the_length_of_the_text(pattern: Pattern, causal: bool) -> None:
    long = pattern.dense_mask(40, causal=causal, n_heads=3)
    for length in range(1, 40):
        assert torch.equal(pattern.dense_mask(length, causal=causal, n_heads=3), long[..., :length, :length])


@every_pattern
def test_causal_patterns_hide_the_future_and_show_something_always(pattern: Pattern) -> None:
    mask = pattern.dense_mask(40, causal=True, n_heads=3)
    assert not (mask & ~torch.ones(40, 40, dtype=torch.bool).tril()).any()
    assert mask.any(-1).all()


@every_pattern
def test_queries_are_the_last_positions(pattern: Pattern) -> None:
    whole = pattern.dense_mask(20, causal=True, n_heads=2)
    assert torch.equal(pattern.dense_mask(3, 20, causal=True, n_heads=2), whole[..., 17:, :])


@every_pattern
def test_rows_of_sentences_at_different_positions(pattern: Pattern) -> None:
    at, keys = torch.tensor([[0], [7], [19]]), torch.arange(20)
    rows = pattern.visible(at, keys, causal=True, n_heads=2)  # [3, 1 or 2, 1, 20]
    whole = pattern.dense_mask(20, causal=True, n_heads=2)[0]
    for row, position in zip(rows, at.flatten().tolist(), strict=True):
        assert torch.equal(row[:, 0], whole[:, position])


@pytest.mark.parametrize(
    ("config", "pattern"),
    [
        ({"window": 5, "global_tokens": 2}, window(5, global_tokens=2)),
        ({"pattern": "dilated", "window": 5, "dilation": 3}, dilated(5, 3)),
        ({"pattern": "blocks", "block": 8}, blocks(8)),
        (
            {"pattern": "bigbird", "window": 9, "random_blocks": 2, "block": 8, "seed": 4, "global_tokens": 1},
            bigbird(9, global_tokens=1, random_blocks=2, block=8, seed=4),
        ),
    ],
    ids=["window", "dilated", "blocks", "bigbird"],
)
def test_pattern_of_a_configuration(config: dict, pattern: Pattern) -> None:
    assert pattern_of(SparseConfig.model_validate(config)) == pattern


@pytest.mark.parametrize("width", range(1, 12))
def test_a_window_that_hides_nothing_is_remarked_on(width: int) -> None:
    told = pattern_remark(window(width), 9)
    assert (told is not None) == bool(window(width).dense_mask(9).all())
    assert told is None or told.startswith(f"model.sparse.window {width} reaches across every text")


@pytest.mark.parametrize("length", range(1, 9))
def test_a_block_that_leaves_heads_without_keys_is_remarked_on(length: int) -> None:
    told = pattern_remark(blocks(4), length)
    assert (told is not None) == (not blocks(4).dense_mask(length, n_heads=2)[0, 1].any())
    assert told is None or told.startswith("model.sparse.block 4 is longer than every text")


def test_a_dilated_band_leaves_gaps_however_wide() -> None:
    assert pattern_remark(dilated(100, 2), 9) is None
