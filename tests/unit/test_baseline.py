"""The nearest neighbour of an inverted index is that of a plain search."""

import random
import time
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.pairs import ParallelText
from transformer_cli.evaluation import nearest_neighbour


def grams(units: list[str]) -> Counter:
    return Counter(units) + Counter(pairwise(units))


def by_plain_search(train: ParallelText, source: str, characters: bool) -> str:
    """The definition: Dice = 2 |A ∩ B| / (|A| + |B|), the first of the best; empty if nothing is shared."""
    split = (lambda s: [c for c in s.lower() if not c.isspace()]) if characters else (lambda s: s.lower().split())
    wanted = grams(split(source))
    best, best_dice = "", 0.0
    for line, target in zip(train.src, train.tgt, strict=True):
        found = grams(split(line))
        total = wanted.total() + found.total()
        dice = 2 * (wanted & found).total() / total if total else 0.0
        if dice > best_dice:
            best, best_dice = target, dice
    return best


lines = st.lists(st.text("aAbc ", max_size=12), min_size=1, max_size=12)


@given(lines, lines, st.sampled_from(["en", "zh-CN"]))
def test_equals_plain_search(known, wanted, lang):
    train = ParallelText(known, [f"target {i}" for i in range(len(known))])
    expected = [by_plain_search(train, source, lang == "zh-CN") for source in wanted]
    assert nearest_neighbour(train, wanted, src_lang=lang) == expected


def test_counts_repeated_words_and_word_order():
    train = ParallelText(["a b", "a a a b", "b a"], ["once", "often", "turned"])
    assert nearest_neighbour(train, ["A a A b", "a B", "b a", "zzz", ""]) == ["often", "once", "turned", "", ""]


@pytest.mark.slow
def test_is_quick_enough_for_a_real_test_set():
    draw = random.Random(1)
    words = [f"w{n}" for n in range(2000)]
    weights = [1 / (n + 1) for n in range(2000)]  # the frequent words make it slow
    text = [" ".join(draw.choices(words, weights, k=12)) for _ in range(41_000)]
    start = time.process_time()
    nearest_neighbour(ParallelText(text[:40_000], text[:40_000]), text[40_000:])
    assert time.process_time() - start < 15
