"""What the tokenizer draws, counted, against the probabilities that the papers give."""

import itertools
import math
from collections import Counter

import pytest
import sentencepiece
from toy_language import toy_pairs

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer

DRAWS = 20_000


def shares(tokenizer: Tokenizer, word: str, strength: float) -> dict[tuple[str, ...], float]:
    drawn = Counter(tuple(tokenizer.src_pieces(ids)) for ids in tokenizer.sample_src([word] * DRAWS, strength, seed=3))
    return {pieces: count / DRAWS for pieces, count in drawn.items()}


def trained(kind: str, lines: list[str], size: int) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(model_type=kind, vocab_size=size), lines, lines, lambda note: None)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_each_merge_is_dropped_with_the_probability(p: float) -> None:
    """The pieces of "ab" come from two merges, one after the other (Provilkov et al. 2020, section 3)."""
    tokenizer = trained("bpe", ["ab", "ab ab", "xab"] * 30, 266)
    (usual,) = tokenizer.encode_src(["ab"])
    assert len(usual) == 1
    found = shares(tokenizer, "ab", p)
    assert sorted(map(len, found)) == [1, 2, 3]
    expected = {1: (1 - p) ** 2, 2: (1 - p) * p, 3: p}
    for pieces, share in found.items():
        assert share == pytest.approx(expected[len(pieces)], abs=4 * math.sqrt(0.25 / DRAWS))


@pytest.mark.parametrize("alpha", [0.2, 0.9])
def test_segmentations_are_drawn_from_the_sharpened_lattice(alpha: float) -> None:
    """P(x|X) is proportional to the product of the pieces' probabilities to the power of alpha (Kudo 2018, eq. 7)."""
    lines = [side for pair in toy_pairs(200) for side in pair] + ["the cat is a cat, cats scat category concat"] * 9
    tokenizer = trained("unigram", lines, 316)
    model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer._models[0])
    known = {model.id_to_piece(i): model.get_score(i) for i in range(4 + 256, model.vocab_size())}
    text = "\u2581cats"
    weights = {}
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(text)]
        pieces = tuple(text[a:b] for a, b in itertools.pairwise(places))
        if all(piece in known for piece in pieces):
            weights[pieces] = math.exp(alpha * sum(known[piece] for piece in pieces))
    assert len(weights) >= 4
    found = shares(tokenizer, "cats", alpha)
    assert set(found) <= set(weights)
    for pieces, weight in weights.items():
        share = weight / sum(weights.values())
        assert found.get(pieces, 0.0) == pytest.approx(share, abs=4 * math.sqrt(0.25 / DRAWS))
