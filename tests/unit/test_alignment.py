"""Which words come from which: the rules on hand-made weights, the weights against a plain pass of the model."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from decoding_rig import config, sentences, tokenizer, transformer, translator
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.languages import units
from transformer_cli.data.tokenizer import BOS, EOS
from transformer_cli.decoding.aligner import Aligner
from transformer_cli.decoding.alignment import count_words, links, pharaoh, words_of_pieces
from transformer_cli.decoding.attention_reader import read_attention
from transformer_cli.decoding.ctranslate2_engine import refuse_unmapped
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import UserError
from transformer_cli.runtime import Runtime

HOW = DecodeSettings(beam_size=2, max_length_ratio=0.5, alignment=True)


@pytest.mark.parametrize(
    ("pieces", "lang", "words"),
    [
        (["▁ein", "▁H", "und", "."], "de", [[0], [1], [1], [1]]),
        (["▁", "▁", "a", "▁▁", "b"], "de", [[], [], [0], [], [1]]),
        (["a▁b", "c"], "de", [[0, 1], [1]]),
        (["▁x", "<0xE3>", "<0x80>", "<0x80>", "y"], "de", [[0], [], [], [], [1]]),  # an ideographic space in bytes
        (["▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"], "de", [[], [0], [0], [0], [0]]),
        (["▁", "<0xF0>", "<0x9F>", "▁a"], "de", [[], [0], [0], [1]]),  # half a character
        (["▁你好", "吗", "▁a"], "zh", [[0, 1], [2], [3]]),
        (["▁", "<0xE4>", "<0xBD>", "<0xA0>", "好"], "zh", [[], [0], [0], [0], [1]]),
        ([], "de", []),
    ],
)
def test_words_of_pieces(pieces: list[str], lang: str, words: list[list[int]]) -> None:
    assert words_of_pieces(pieces, lang) == words
    assert count_words(words) == len({number for numbers in words for number in numbers})


@given(st.text(max_size=40), st.sampled_from(["de", "zh"]))
def test_pieces_spell_the_words_of_any_text(text: str, lang: str) -> None:
    text = text.encode("utf-8", "replace").decode().replace("\u2581", "")
    words = words_of_pieces(tokenizer().src_pieces(tokenizer().encode_src([text])[0]), lang)
    assert count_words(words) == len(units(text, lang))
    flat = [number for numbers in words for number in numbers]
    assert flat == sorted(flat)


def test_links_follow_the_greatest_weight() -> None:
    sources, targets = [(), [0], [0], [1, 2], ()], [[0], [1], [1], []]
    weights = np.array(
        [
            [0.9, 0.0, 0.1, 0.0, 0.0],  # the tag would win, but is no word
            [0.0, 0.1, 0.1, 0.2, 0.6],  # so would </s>
            [0.0, 0.3, 0.2, 0.3, 0.2],  # the first of equal ones
            [0.0, 0.0, 0.0, 1.0, 0.0],  # a piece of spaces comes from nowhere
        ],
        dtype=np.float32,
    )
    found = links(weights, sources, targets)
    assert found == {(0, 0), (1, 1), (2, 1), (0, 1)}
    assert pharaoh(found) == "0-0 0-1 1-1 2-1"
    noise = np.float32(1e-6) * np.array([0, 0, 0, 1, 0], dtype=np.float32)
    assert links(weights + noise, sources, targets) == found
    assert links(weights, [()] * 5, targets) == links(weights[:0], sources, []) == set()
    assert pharaoh(set()) == ""
    assert pharaoh({(10, 0), (2, 11), (2, 3)}) == "2-3 2-11 10-0"


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_the_row_of_a_token_is_the_step_that_predicts_it(n_layers: int) -> None:
    model = transformer(config(model={"decoder_layers": n_layers}), weights=2.0)
    source, target = [5, 6, 7, EOS], [8, 9, 10]
    (weights,) = read_attention(model, Runtime.resolve("cpu"), [(source, target)], HOW)
    layer = max(0, n_layers - 2)
    plain = model.attention_maps(torch.tensor([source]), torch.tensor([[BOS, *target]]))["cross"][layer]
    assert weights == pytest.approx(plain[0].mean(0)[:-1].numpy(), abs=1e-6)
    assert weights.shape == (3, 4)
    assert weights.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-5)


@pytest.mark.parametrize(("positions", "max_length"), [("sinusoidal", 40), ("learned", 40), ("learned", 42)])
def test_weights_do_not_depend_on_the_batch(positions: str, max_length: int) -> None:
    how = config(model={"positions": positions}, data={"max_length": max_length})
    model, runtime = transformer(how, weights=2.0).train(), Runtime.resolve("cpu")
    draw = random.Random(3)
    pairs = [
        (
            [*draw.choices(range(4, 300), k=draw.randint(1, max_length - 1)), EOS],
            draw.choices(range(4, 300), k=draw.randint(0, max_length)),
        )
        for _ in range(60)
    ]
    alone = [read_attention(model, runtime, [pair], HOW)[0] for pair in pairs]
    assert model.training
    for batch_size in (3, 64):
        together = read_attention(model, runtime, pairs, HOW.but({"batch_size": batch_size}))
        for mine, expected, (source, target) in zip(together, alone, pairs, strict=True):
            assert mine.shape == (len(target), len(source))
            assert np.array_equal(mine, expected)


def parsed(alignment: str | None) -> list[tuple[int, int]]:
    assert alignment is not None
    return [(int(source), int(target)) for source, _, target in (pair.partition("-") for pair in alignment.split())]


@pytest.mark.parametrize("languages", [{}, {"tgt_lang": "zh"}], ids=str)
def test_every_word_of_every_translation_is_aligned_within_the_line(languages: dict[str, object]) -> None:
    how = config(data=languages)
    subject = translator(transformer(how, weights=2.0), how)
    lines = [*sentences(8, seed=3), "", " hund  x\u3000y ", "katze " * 60]
    found = subject.translate_window(lines, HOW.but({"n_best": 2}))
    assert [t.pieces > 1 for t in found] == [False] * 10 + [True]
    for translation in found:
        for hypothesis in translation.hypotheses:
            pairs = parsed(hypothesis.alignment)
            n_source, n_target = len(translation.source.split()), len(units(hypothesis.text, how.data.tgt_lang))
            assert {target for _, target in pairs} == set(range(n_target))
            assert {source for source, _ in pairs} <= set(range(n_source))
            assert pairs == sorted(pairs)
    assert max(source for source, _ in parsed(found[-1].hypotheses[0].alignment)) > 30  # the last piece too
    plain = subject.translate_window(lines, HOW.but({"n_best": 2, "alignment": False}))
    assert [[h.text for h in t.hypotheses] for t in plain] == [[h.text for h in t.hypotheses] for t in found]
    assert all(h.alignment is None for t in plain for h in t.hypotheses)


def test_alignments_do_not_depend_on_neighbours() -> None:
    subject = translator(transformer(config(), weights=2.0), config())
    lines = sorted(set(sentences(20, seed=9)))
    together = subject.translate_window(lines, HOW)
    alone = [subject.translate_window([line], HOW)[0] for line in lines]
    assert alone == together
    assert len({t.hypotheses[0].alignment for t in together}) > 10


class Diagonal:
    """Attends from each target token to the source token at its place, behind the tag."""

    def __init__(self, n_before: int) -> None:
        self.n_before, self.asked = n_before, 0

    def __call__(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], settings: DecodeSettings
    ) -> list[np.ndarray]:
        self.asked += len(pairs)
        return [np.eye(len(target), len(source), self.n_before, dtype=np.float32) for source, target in pairs]


@pytest.mark.parametrize("before", [[], [299]])
def test_pieces_of_a_line_count_on(before: list[int]) -> None:
    line = "hund katze baum hund katze baum"
    ids = tokenizer().encode_src([line])[0]
    assert len(ids) == 6
    parts = [Finished(0.0, ids[:4], False), Finished(0.0, ids[4:], False)]
    sources = [[*before, *ids[:4], EOS], [*before, *ids[4:], EOS]]
    subject = Aligner(tokenizer(), "en", "de", len(before), Diagonal(len(before)))
    assert subject.align([line], [sources], [[(line, parts)]], HOW) == [["0-0 1-1 2-2 3-3 4-4 5-5"]]
    other_text, other_line = [(f"{line} x", parts)], f"{line} x"
    assert subject.align([line], [sources], [other_text], HOW) == [[None]]  # the pieces spell something else
    assert subject.align([other_line], [sources], [[(line, parts)]], HOW) == [[None]]
    assert subject.align([""], [[]], [[("", [])]], HOW) == [[""]]


def test_a_diverged_model_aligns_nothing() -> None:
    model = transformer(config())
    with torch.no_grad():
        model.encoder.norm.weight.fill_(float("nan"))
    (found,) = translator(model, config()).translate_window(["ein hund."], HOW)
    assert (found.text, found.hypotheses[0].alignment) == ("", "")


def test_ctranslate2_is_not_asked() -> None:
    with pytest.raises(UserError, match="does not know alignment"):
        refuse_unmapped(DecodeSettings(alignment=True))
