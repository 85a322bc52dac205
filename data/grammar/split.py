"""Divide the sentences so that no combination of words in dev or test was seen in training.

A combination is a structure with its main words (verb and object, adjective and noun …). Its SHA-256
decides where all its sentences go. From what fell to dev and test, those sentences
are kept that have the fewest words in common with any training sentence of their structure, a few of each.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .sentences import Sentence, normalized

DEV_SIZE, TEST_SIZE = 500, 1000
HANDWRITTEN_DEV, HANDWRITTEN_TEST = 40, 80
# Of 1,000 combinations this many are kept from training for test and for dev.
TEST_SHARE, DEV_SHARE = 70, 25


@dataclass(frozen=True)
class Corpus:
    """The four parts of the phrasebook."""

    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]
    handwritten_test: list[Sentence]


def digest(text: str) -> int:
    """Return a number that depends on the text alone, unlike `hash`."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def bucket(combination: str) -> str:
    share = digest(combination) % 1000
    if share < TEST_SHARE:
        return "test"
    return "dev" if share < TEST_SHARE + DEV_SHARE else "train"


def likeness(sentence: Sentence, others: Iterable[frozenset[str]]) -> float:
    """Return the greatest share of words (Jaccard index) that the sentence has in common with another one."""
    words, best = frozenset(sentence.lemmas), 0.0
    for other in others:
        common = len(words & other)
        best = max(best, common / (len(words) + len(other) - common))
    return best


def by_novelty(candidates: Iterable[Sentence], train: Iterable[Sentence]) -> list[Sentence]:
    """Order the candidates so that those least like any training sentence of their structure come first."""
    seen = defaultdict(list)
    for sentence in train:
        seen[sentence.structure].append(frozenset(sentence.lemmas))
    return sorted(candidates, key=lambda sentence: (likeness(sentence, seen[sentence.structure]), digest(sentence.en)))


def spread(ordered: Iterable[Sentence], size: int) -> list[Sentence]:
    """Take the first `size` sentences, but at most seven of each structure, then shuffle them by digest."""
    taken: Counter[str] = Counter()
    chosen = []
    for sentence in ordered:
        if taken[sentence.structure] < 7 and len(chosen) < size:
            taken[sentence.structure] += 1
            chosen.append(sentence)
    return sorted(chosen, key=lambda sentence: digest(sentence.en))


def split(generated: list[Sentence], handwritten: list[Sentence]) -> Corpus:
    """Split both sources and check what the split promises."""
    parts = defaultdict(list)
    for sentence in generated:
        parts[bucket(sentence.combination)].append(sentence)
    known = {lemma for sentence in parts["train"] for lemma in sentence.lemmas}
    held_out = [sentence for sentence in parts["test"] if known.issuperset(sentence.lemmas)]
    by_hand = sorted(handwritten, key=lambda sentence: digest(sentence.en))
    first, second = HANDWRITTEN_TEST, HANDWRITTEN_TEST + HANDWRITTEN_DEV
    train = sorted(parts["train"] + by_hand[second:], key=lambda sentence: digest("train" + sentence.en))
    dev = spread(by_novelty(parts["dev"], parts["train"]), DEV_SIZE)
    test = spread(by_novelty(held_out, parts["train"]), TEST_SIZE)
    corpus = Corpus(train, dev + by_hand[first:second], test, by_hand[:first])
    check(corpus)
    return corpus


def check(corpus: Corpus) -> None:
    """Raise `ValueError` when a held-out sentence or combination is in training."""
    seen = {normalized(sentence.en) for sentence in corpus.train}
    combinations = {sentence.combination for sentence in corpus.train}
    lemmas = {lemma for sentence in corpus.train for lemma in sentence.lemmas}
    for sentence in corpus.dev + corpus.test + corpus.handwritten_test:
        if normalized(sentence.en) in seen or sentence.combination in combinations:
            raise ValueError(f"a held-out sentence is in training: {sentence.en}")
    for sentence in corpus.test:
        if not lemmas.issuperset(sentence.lemmas):
            raise ValueError(f"a word of the test is not in training: {sentence.en}")
