"""Sampled pieces: by how much, of which sides, never too long, and whatever else happens at the time."""

import threading

import numpy as np
import pytest
import sentencepiece
from toy_language import toy_pairs

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.batching import tokenize_pairs
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.sampling import SubwordSampler
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.training.data_order import DataOrder
from transformer_cli.training.estimate import _epochs_in

TEXT = ParallelText(*map(list, zip(*toy_pairs(300), strict=True)))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind: str) -> Tokenizer:
    settings = TokenizerConfig(model_type=kind, vocab_size=330)
    return train_tokenizer(settings, TEXT.src, TEXT.tgt, lambda note: None)


def test_a_seed_decides_whatever_other_threads_do(tokenizer: Tokenizer) -> None:
    alone = tokenizer.sample_src(TEXT.src, 0.3, seed=7)
    stop = threading.Event()

    def disturb(seed: int) -> None:
        while not stop.is_set():
            tokenizer.sample_tgt(TEXT.tgt[:20], 0.3, seed)
            tokenizer.encode_tgt(TEXT.tgt[:20])

    others = [threading.Thread(target=disturb, args=(seed,)) for seed in (1, 2)]
    for other in others:
        other.start()
    found = [tokenizer.sample_src(TEXT.src, 0.3, seed=7) for _ in range(20)]
    stop.set()
    for other in others:
        other.join()
    assert all(again == alone for again in found)
    assert tokenizer.sample_src(TEXT.src, 0.3, seed=8) != alone


def test_the_library_is_left_with_no_say(tokenizer: Tokenizer) -> None:
    alone = tokenizer.sample_src(TEXT.src, 0.3, seed=7)
    sentencepiece.set_random_generator_seed(99)
    assert tokenizer.sample_src(TEXT.src, 0.3, seed=7) == alone


def test_strength_means_what_the_papers_say(tokenizer: Tokenizer, kind: str) -> None:
    """More dropped merges leave more pieces; a larger alpha sharpens the lattice and gives the usual ones."""
    usual = sum(map(len, tokenizer.encode_src(TEXT.src)))
    drawn = [sum(map(len, tokenizer.sample_src(TEXT.src, p, seed=1))) / usual for p in (0.01, 0.1, 0.3, 0.9)]
    assert drawn == sorted(drawn, reverse=kind == "unigram")
    assert max(drawn) > 1.2


def test_too_long_a_draw_falls_back_to_the_usual_pieces(tokenizer: Tokenizer, kind: str) -> None:
    strength = {"bpe": 0.5, "unigram": 0.05}[kind]
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    longest = int(max(plain.src_lengths.max(), plain.tgt_lengths.max()))
    drawn = SubwordSampler(tokenizer, strength, True, True, 1, longest).draw(TEXT, plain, 0)
    free = SubwordSampler(tokenizer, strength, True, True, 1, 10**6).draw(TEXT, plain, 0)
    for side in ("src", "tgt"):
        for kept, wanted, usual in zip(*(getattr(pairs, side) for pairs in (drawn, free, plain)), strict=True):
            assert kept.tolist() == (wanted if len(wanted) <= longest else usual).tolist()
    assert max(free.src_lengths.max(), free.tgt_lengths.max()) > longest


def test_a_long_text_is_drawn_in_parts_of_their_own(tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = ParallelText(["one cats sleep."] * 20, ["eins"] * 20)
    monkeypatch.setattr("transformer_cli.data.batching._CHUNK", 10)
    plain, _ = tokenize_pairs(twice, tokenizer, None)
    drawn = SubwordSampler(tokenizer, 0.4, True, False, 1, 100).draw(twice, plain, 0)
    assert [ids.tolist() for ids in drawn.src[:10]] != [ids.tolist() for ids in drawn.src[10:]]


def test_sides_epochs_and_directions_are_drawn_apart(tokenizer: Tokenizer) -> None:
    same = ParallelText(TEXT.src, TEXT.src)
    plain, _ = tokenize_pairs(same, tokenizer, None)
    pairs = EpochPairs(
        plain, bidirectional_epochs=2, text=same, sampler=SubwordSampler(tokenizer, 0.3, True, True, 1, 500)
    )
    draws = [pairs.pairs(0).src[:300], pairs.pairs(0).src[300:], pairs.pairs(0).tgt[:300], pairs.pairs(1).src[:300]]
    assert len({str([ids.tolist() for ids in draw]) for draw in draws}) == 4


def test_sampled_batches_are_as_large_as_asked(tokenizer: Tokenizer) -> None:
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    pairs = EpochPairs(plain, text=TEXT, sampler=SubwordSampler(tokenizer, 0.2, True, True, 1, 500))
    order = DataOrder(pairs, 600, 1, seed=1)
    for epoch in range(4):
        made = order.epoch(epoch)
        widths = np.maximum(made.pairs.src_lengths, made.pairs.tgt_lengths)
        assert max(len(rows) * widths[rows].max() for rows in made.batches) <= 600 * (1.0 if epoch == 0 else 1.1)
        assert len(made.batches) == order.steps_per_epoch(epoch)


def test_a_char_model_cannot_be_sampled() -> None:
    char = train_tokenizer(TokenizerConfig(model_type="char", vocab_size=300), TEXT.src, TEXT.tgt, lambda note: None)
    assert not char.can_sample()


def test_others_can(tokenizer: Tokenizer) -> None:
    assert tokenizer.can_sample()


def test_both_directions_are_twice_the_steps_and_only_in_the_first_epochs(tokenizer: Tokenizer) -> None:
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    one_way, both_ways = (DataOrder(EpochPairs(plain, bidirectional_epochs=n), 300, 1, seed=1) for n in (0, 2))
    for epoch in (0, 1):
        assert both_ways.steps_per_epoch(epoch) == pytest.approx(2 * one_way.steps_per_epoch(epoch), abs=2)
        src, tgt = both_ways.epoch(epoch).pairs.src, both_ways.epoch(epoch).pairs.tgt
        assert [ids.tolist() for ids in src[300:]] == [ids.tolist() for ids in tgt[:300]]
        assert [ids.tolist() for ids in tgt[300:]] == [ids.tolist() for ids in src[:300]]
    made, usual = both_ways.epoch(2), one_way.epoch(2)
    assert [rows.tolist() for rows in made.batches] == [rows.tolist() for rows in usual.batches]
    assert len(made.pairs) == 300


def test_the_mean_step_is_the_padded_tokens_and_a_share_of_the_drawing(tokenizer: Tokenizer) -> None:
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    sampled = EpochPairs(plain, text=TEXT, sampler=SubwordSampler(tokenizer, 0.2, True, True, 1, 500))
    for pairs in (EpochPairs(plain), sampled):
        order = DataOrder(pairs, 600, 2, seed=1)
        window = order.epoch(1)
        padded = sum(
            len(rows) * (max(len(window.pairs.src[i]) for i in rows) + max(len(window.pairs.tgt[i]) for i in rows))
            for rows in window.batches
        )
        assert window.padded_tokens() == padded
        expected = (padded * 1e-3 + pairs.seconds_to_draw) / order.steps_per_epoch(1)
        assert order.mean_step_seconds(1, 1e-3) == pytest.approx(expected)
        assert (pairs.seconds_to_draw > 0) is (pairs is sampled)


@pytest.mark.parametrize(("share", "epochs"), [(0.5, 0.5), (1.0, 1.0), (2.0, 2.0), (2.5, 3.0), (3.0, 4.0)])
def test_bidirectional_epochs_are_longer_ones_in_an_estimate(tokenizer: Tokenizer, share: float, epochs: float) -> None:
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    order = DataOrder(EpochPairs(plain, bidirectional_epochs=2), 60, 1, seed=1)
    steps = round(share * order.steps_per_epoch(0))
    assert _epochs_in(steps, order, 2) == pytest.approx(epochs, abs=0.03)
