import numpy as np
import pytest
import torch

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.batching import TokenizedPairs, collate, epoch_batches, token_share, tokenize_pairs
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.data.tokenizer_training import train_tokenizer


def pairs_of(*lengths: tuple[int, int]) -> TokenizedPairs:
    def line(length: int) -> np.ndarray:
        return np.array([*range(10, 10 + length - 1), EOS], dtype=np.int32)

    return TokenizedPairs([line(src) for src, _ in lengths], [line(tgt) for _, tgt in lengths])


def test_collate_as_a_table() -> None:
    batch = collate(pairs_of((3, 2), (9, 9), (2, 4)), np.array([0, 2]))
    assert batch.src.tolist() == [[10, 11, EOS], [10, EOS, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 10, PAD, PAD], [BOS, 10, 11, 12]]
    assert batch.tgt_out.tolist() == [[10, EOS, PAD, PAD], [10, 11, 12, EOS]]
    assert batch.n_tokens == 6
    assert batch.src.dtype == torch.int64
    moved = batch.to(torch.device("cpu"))
    assert torch.equal(moved.tgt_in, batch.tgt_in)
    assert moved.n_tokens == 6


def test_tokenize_drops_whole_pairs_that_are_too_long() -> None:
    text = ParallelText(["a", "a b a b a b", "a", ""], ["b", "b", "b a b a b a", ""])
    tokenizer = train_tokenizer(
        TokenizerConfig(model_type="char", vocab_size=264), text.src, text.tgt, lambda note: None
    )
    kept, dropped = tokenize_pairs(text, tokenizer, None)
    assert (len(kept), dropped) == (4, 0)
    assert [len(ids) for ids in kept.src] == kept.src_lengths.tolist() == [3, 13, 3, 1]
    assert kept.tgt_lengths.tolist() == [3, 3, 13, 1]
    assert all(ids[-1] == EOS and ids.dtype == np.int32 for ids in kept.src + kept.tgt)
    assert [tokenizer.decode(ids) for ids in kept.tgt] == text.tgt
    for max_length, left in ((13, 4), (12, 2), (3, 2), (2, 1)):
        kept, dropped = tokenize_pairs(text, tokenizer, max_length)
        assert (len(kept), dropped) == (left, 4 - left)
        assert max([*kept.src_lengths, *kept.tgt_lengths]) <= max_length


def test_tokenizing_in_chunks_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ParallelText([f"a {i}" for i in range(25)], [f"b {i}" for i in range(25)])
    tokenizer = train_tokenizer(
        TokenizerConfig(model_type="char", vocab_size=290), text.src, text.tgt, lambda note: None
    )
    monkeypatch.setattr("transformer_cli.data.batching._CHUNK", 7)
    kept, _ = tokenize_pairs(text, tokenizer, 100)
    assert [tokenizer.decode(ids) for ids in kept.tgt] == text.tgt


def test_token_share_as_numbers() -> None:
    pairs = pairs_of((2, 4), (4, 2), (3, 3))
    assert token_share(pairs, [np.array([0, 1]), np.array([2])]) == 18 / (2 * 8 + 6)
    assert token_share(pairs, [np.array([0]), np.array([1]), np.array([2])]) == 1.0


@pytest.mark.parametrize("batch_tokens", [2048, 4096])
def test_real_tokens_at_the_lengths_of_captions(batch_tokens: int) -> None:
    """29,000 pairs, mean lengths 17 and 18, correlated: what 4,000 joint pieces make of image captions."""
    rng = np.random.default_rng(0)
    src = np.maximum(4, rng.lognormal(2.75, 0.3, 29_000)).astype(np.int32)
    tgt = np.maximum(4, src * rng.normal(1.06, 0.22, 29_000)).astype(np.int32)
    pairs = TokenizedPairs([np.empty(n, np.int32) for n in src], [np.empty(n, np.int32) for n in tgt])
    for epoch in range(2):
        assert token_share(pairs, epoch_batches(src, tgt, batch_tokens, seed=1, epoch=epoch)) >= 0.92


def test_membership_changes_with_epoch_and_seed() -> None:
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(4, 40, (2, 5000))
    first, epoch, seed = (
        {frozenset(batch.tolist()) for batch in epoch_batches(src, tgt, 1000, seed=s, epoch=e)}
        for s, e in ((1, 0), (1, 1), (2, 0))
    )
    assert len(first & epoch) < len(first) / 20
    assert len(first & seed) < len(first) / 20
    assert len(epoch & seed) < len(first) / 20


def test_pairs_of_equal_length_meet_others_in_each_epoch() -> None:
    lengths = np.full(2000, 10, np.int32)
    batch_of = np.empty(2000, int)
    for number, batch in enumerate(epoch_batches(lengths, lengths, 1000, seed=1, epoch=0)):
        batch_of[batch] = number
    assert (batch_of[1:] == batch_of[:-1]).mean() < 0.15  # neighbours in the file, of 21 batches


def test_cuts_fall_elsewhere_in_each_epoch() -> None:
    lengths = np.arange(4, 84, dtype=np.int32).repeat(50)
    first, second = (
        sorted(int(lengths[batch].min()) for batch in epoch_batches(lengths, lengths, 1000, seed=1, epoch=epoch))
        for epoch in (0, 1)
    )
    assert first != second


def test_order_is_not_by_length() -> None:
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(4, 40, (2, 5000))
    widths = [int(src[batch].max()) for batch in epoch_batches(src, tgt, 1000, seed=1, epoch=0)]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.3


def test_no_pairs_give_no_batches() -> None:
    none = np.empty(0, np.int32)
    assert epoch_batches(none, none, 100, seed=1, epoch=0) == []
