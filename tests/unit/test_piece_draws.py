"""Drawn pieces against the library's own reading of a model, and the same draws in every process."""

import io
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from toy_language import toy_pairs

from transformer_cli.data.piece_draws import BpeDraws, piece_draws
from transformer_cli.data.piece_model import PieceModel
from transformer_cli.data.tokenizer import Tokenizer

LINES = [side for pair in toy_pairs(80) for side in pair]
ODD = [
    "",
    " ",
    "two  spaces ",
    "Katzen<x>fallen <x><x>",
    "zweihaus zweizwei",
    "漢字 ß😀😀x 漢",
    "<0x41> </s> <unk>",
    "a\tb",
]
#: So weak that nothing but the usual pieces is ever drawn.
WEAKEST = {"bpe": 1e-12, "unigram": 1e5}


def trained(kind: str, size: int, **more: object) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, model_type=kind, vocab_size=size, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, hard_vocab_limit=False, **more,
    )  # fmt: skip
    return model.getvalue()


SORTS = {
    "ours": {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "theirs": {},
    "symbols": {"user_defined_symbols": ["<x>", "zwei"], "byte_fallback": True},
    "across words": {"split_by_whitespace": False},
    "spaces behind": {"treat_whitespace_as_suffix": True},
}
MODELS = {
    f"{kind}, {sort}": (kind, trained(kind, 330 if "byte_fallback" in more else 90, **more))
    for kind, (sort, more) in product(("bpe", "unigram"), SORTS.items())
}


@pytest.mark.parametrize(("kind", "model"), MODELS.values(), ids=MODELS)
def test_at_the_weakest_the_usual_pieces_are_drawn(kind: str, model: bytes) -> None:
    tokenizer, lines = Tokenizer(model), LINES + ODD
    assert tokenizer.sample_src(lines, WEAKEST[kind], seed=1) == tokenizer.encode_src(lines)


@pytest.mark.parametrize(("kind", "model"), MODELS.values(), ids=MODELS)
def test_the_model_is_read_as_the_library_reads_it(kind: str, model: bytes) -> None:
    library, found = sentencepiece.SentencePieceProcessor(model_proto=model), PieceModel.parsed(model)
    assert found.kind == kind
    assert {piece: library.piece_to_id(piece) for piece in found.ids} == found.ids
    assert {piece: library.get_score(i) for piece, i in found.ids.items() if piece in found.scores} == found.scores
    others = [i for i in range(library.vocab_size()) if i not in found.ids.values()]
    assert [i for i in others if library.is_byte(i)] == found.byte_ids
    assert all(library.is_control(i) or library.is_unknown(i) or library.is_byte(i) for i in others)
    assert found.user_defined == ({"<x>", "zwei"} if "<x>" in found.ids else set())


@given(st.text(), st.sampled_from([(0.3, "bpe, ours"), (0.1, "unigram, ours")]), st.integers(0, 2**40))
def test_whatever_is_drawn_is_the_text(line: str, which: tuple[float, str], seed: int) -> None:
    tokenizer = Tokenizer(MODELS[which[1]][1])
    drawn = tokenizer.sample_src([line], which[0], seed)
    assert tokenizer.decode(drawn[0]) == tokenizer.decode(tokenizer.encode_src([line])[0])
    assert drawn == tokenizer.sample_src([line], which[0], seed)


@pytest.mark.parametrize("p", [0.1, 0.9])
def test_a_symbol_of_the_user_is_never_cut(p: float) -> None:
    tokenizer = Tokenizer(MODELS["bpe, symbols"][1])
    drawn = tokenizer.sample_src(["Katzen<x>fallen"] * 50, p, seed=1)
    assert all(tokenizer.src_pieces(ids).count("<x>") == 1 for ids in drawn)
    assert len({tuple(ids) for ids in drawn}) > 1


def test_only_what_can_be_cut_otherwise_can_be_drawn() -> None:
    for kind in ("char", "word"):
        tokenizer = Tokenizer(trained(kind, 60))
        assert not tokenizer.can_sample()
        with pytest.raises(ValueError, match="one way"):
            tokenizer.sample_src(["one"], 0.5, 1)
    assert piece_draws(PieceModel("unigram", {}, {}, frozenset(), []), 0.5).draw(["ab c"], 1) == [[1]]


def test_of_equal_merges_the_leftmost_comes_first() -> None:
    model = PieceModel("bpe", {"a": 4, "aa": 5}, {"aa": 0.0}, frozenset(), [])
    assert BpeDraws(model, WEAKEST["bpe"]).draw(["aaa"], 1) == [[5, 4]]


def test_all_merges_dropped_leave_characters_and_one_in_a_row_is_the_next_words() -> None:
    model = PieceModel("bpe", {"a": 4, "b": 5, "ab": 6, "abab": 7}, {"ab": 0.0, "abab": -1.0}, frozenset(), [])
    assert BpeDraws(model, 1.0).draw(["abab"], 1) == [[4, 5, 4, 5]]
    drawn = BpeDraws(model, 0.5).draw(["ab"] * 4000, seed=1)
    dropped = [len(ids) == 2 for ids in drawn]
    assert sum(dropped) == pytest.approx(2000, abs=4 * 0.5 * 4000**0.5)
    both = sum(a and b for a, b in pairwise(dropped))
    assert both == pytest.approx(1000, abs=4 * 0.5 * 4000**0.5)  # one word says nothing of the next


def test_a_dropped_merge_is_possible_again_after_the_next_one() -> None:
    """Algorithm 1 of Provilkov et al. 2020, with two merges that have nothing to do with each other."""
    model = PieceModel(
        "bpe",
        dict(zip(["a", "b", "c", "d", "ab", "cd"], range(4, 10), strict=True)),
        {"ab": 0.0, "cd": -1.0},
        frozenset(),
        [],
    )
    p, count = 0.4, 20_000
    drawn = Counter(map(tuple, BpeDraws(model, p).draw(["abcd"] * count, seed=1)))
    first, second = 1 - p, p * (1 - p)  # which merge is made at first, if any
    expected = {
        (8, 9): first * (1 - p) + second * (1 - p),
        (8, 6, 7): first * p,
        (4, 5, 9): second * p,
        (4, 5, 6, 7): p * p,
    }
    assert sum(expected.values()) == pytest.approx(1)
    for pieces, share in expected.items():
        assert drawn[pieces] / count == pytest.approx(share, abs=4 * (0.25 / count) ** 0.5)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_long_words_are_drawn_alike_but_not_remembered(kind: str) -> None:
    scores = {"ab": -1.0, "a": -4.0, "b": -4.0}
    draws = piece_draws(PieceModel(kind, {"a": 4, "b": 5, "ab": 6}, scores, frozenset(), []), 0.3)
    kept = (draws._merged if kind == "bpe" else draws._lattice).__closure__
    (remembered,) = [cell.cell_contents for cell in kept if hasattr(cell.cell_contents, "cache_info")]
    assert draws.draw(["ab" * 40], 1) != draws.draw(["ab" * 40], 2)
    assert remembered.cache_info().currsize == 0
    draws.draw(["ab"], 1)
    assert remembered.cache_info().currsize >= 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_another_process_draws_the_same(kind: str) -> None:
    model = f"""PieceModel("{kind}", {dict(zip("abc", (4, 5, 6), strict=True)) | {"ab": 7, "bc": 8, "abc": 9}},
        {{"ab": -1.0, "bc": -2.0, "abc": -3.0, "a": -4.0, "b": -4.0, "c": -4.0}}, frozenset(), [])"""
    draw = f"piece_draws({model}, 0.3).draw(['abc cab abcabc'] * 20, 7)"
    code = (
        "from transformer_cli.data.piece_draws import piece_draws\n"
        "from transformer_cli.data.piece_model import PieceModel\n"
        f"print({draw})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert eval(told) == eval(draw)
    assert len({tuple(ids) for ids in eval(told)}) > 3
