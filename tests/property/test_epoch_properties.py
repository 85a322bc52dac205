"""What holds for every epoch: it is a function of (seed, epoch), reads every pair, and changes no text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_language import toy_pairs

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.batching import epoch_batches, tokenize_pairs
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.sampling import SubwordSampler
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.training.data_order import DataOrder, Position

TEXT = ParallelText(*map(list, zip(*toy_pairs(40), ("", "</s> \u3000"), ("Ünïcode ☃", "ﬁ\ue000"), strict=True)))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    settings = TokenizerConfig(model_type=request.param, vocab_size=330)
    return train_tokenizer(settings, TEXT.src, TEXT.tgt, lambda note: None)


def epochs_of(tokenizer: Tokenizer, *, strength=0.3, sides="both", seed=1, both_ways=0, longest=500) -> EpochPairs:
    plain, _ = tokenize_pairs(TEXT, tokenizer, None)
    sampler = SubwordSampler(tokenizer, strength, sides != "target", sides != "source", seed, longest)
    return EpochPairs(plain, bidirectional_epochs=both_ways, text=TEXT, sampler=sampler)


def listed(pairs):
    return [[ids.tolist() for ids in side] for side in (pairs.src, pairs.tgt)]


strengths, seeds, epochs = st.floats(0.01, 0.99), st.integers(0, 2**31 - 1), st.integers(0, 50)


@given(strengths, seeds, epochs, st.sampled_from(["both", "source", "target"]))
@settings(max_examples=25, deadline=None)
def test_pieces_are_a_function_of_seed_and_epoch_and_spell_the_text(tokenizer, strength, seed, epoch, sides) -> None:
    made = epochs_of(tokenizer, strength=strength, sides=sides, seed=seed)
    drawn = made.pairs(epoch)
    later = epochs_of(tokenizer, strength=strength, sides=sides, seed=seed)
    later.pairs(epoch + 1)
    later.typical_lengths(epoch)
    assert listed(later.pairs(epoch)) == listed(drawn)
    for side, lines in ((drawn.src, TEXT.src), (drawn.tgt, TEXT.tgt)):
        assert [tokenizer.decode(ids) for ids in side] == lines
        assert all(ids[-1] == EOS and ids.dtype == np.int32 and (ids[:-1] > EOS).all() for ids in side)
    for side, unsampled in ((0, "target"), (1, "source")):
        if sides == unsampled:
            assert listed(drawn)[side] == listed(made.plain)[side]


@given(st.integers(0, 3), st.integers(0, 5), st.integers(30, 200), st.integers(1, 4), seeds, st.booleans())
@settings(max_examples=25, deadline=None)
def test_steps_are_counted_without_drawing_and_every_pair_is_read(
    tokenizer, both_ways, epoch, batch_tokens, accumulate, seed, sampled
) -> None:
    made = epochs_of(tokenizer, both_ways=both_ways, seed=seed)
    pairs = made if sampled else EpochPairs(made.plain, bidirectional_epochs=both_ways)
    order = DataOrder(pairs, batch_tokens, accumulate, seed)
    expected, at, read = order.steps_per_epoch(epoch), Position(epoch), []
    for _ in range(expected):
        assert at.epoch == epoch
        window = order.window(at)
        rows = np.concatenate(window.batches)
        assert window.target_tokens() == sum(len(window.pairs.tgt[i]) for i in rows)
        read += [(tokenizer.decode(window.pairs.src[i]), tokenizer.decode(window.pairs.tgt[i])) for i in rows]
        at = order.after(at)
    assert at == Position(epoch + 1)
    forward = list(zip(TEXT.src, TEXT.tgt, strict=True))
    backward = [(tgt, src) for src, tgt in forward] if epoch < both_ways else []
    assert sorted(read) == sorted(forward + backward)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=60), st.data(), seeds, epochs)
@settings(max_examples=60, deadline=None)
def test_a_number_of_batches_can_be_asked_for(sides, data, seed, epoch) -> None:
    src, tgt = np.array(sides, dtype=np.int32).T
    count = data.draw(st.integers(1, len(sides)))
    batches = epoch_batches(src, tgt, 100, seed=seed, epoch=epoch, count=count)
    assert len(batches) == count
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sides)))


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=60),
    st.integers(1, 500),
    seeds,
    epochs,
)
@settings(max_examples=60, deadline=None)
def test_a_number_of_batches_takes_no_larger_ones_than_needed(sides, batch_tokens, seed, epoch) -> None:
    src, tgt = np.array(sides, dtype=np.int32).T
    count = len(epoch_batches(src, tgt, batch_tokens, seed=seed, epoch=epoch))
    for rows in epoch_batches(src, tgt, 1, seed=seed, epoch=epoch, count=count):
        assert len(rows) == 1 or len(rows) * max(src[rows].max(), tgt[rows].max()) <= batch_tokens
