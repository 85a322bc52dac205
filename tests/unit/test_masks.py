"""Masks as literal tables: True = may attend."""

import torch

from transformer_cli.model.masks import causal_mask, combined_mask, padding_mask

PAD = 0


def test_padding_mask_hides_the_padding_of_each_sentence() -> None:
    mask = padding_mask(torch.tensor([[5, 6, PAD], [7, 8, 9], [PAD, PAD, PAD]]), PAD)
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


def test_padding_mask_knows_its_pad_id() -> None:
    assert padding_mask(torch.tensor([[0, 3]]), pad_id=3).flatten().tolist() == [True, False]


def test_causal_mask_is_the_lower_triangle() -> None:
    assert causal_mask(3).int().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]


def test_causal_mask_takes_the_queries_for_the_last_positions() -> None:
    assert causal_mask(2, 4)[0, 0].int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(1, 4)[0, 0].int().tolist() == [[1, 1, 1, 1]]


def test_causal_mask_of_length_one_sees_itself() -> None:
    assert causal_mask(1).tolist() == [[[[True]]]]


def test_combined_mask_allows_what_both_allow() -> None:
    padding = padding_mask(torch.tensor([[5, 6, PAD], [5, PAD, PAD]]), PAD)
    mask = combined_mask(padding, causal_mask(3))
    assert mask.shape == (2, 1, 3, 3)
    assert mask[:, 0].int().tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]]


def test_combined_mask_with_none_is_the_other_one() -> None:
    assert torch.equal(combined_mask(None, causal_mask(3)), causal_mask(3))
