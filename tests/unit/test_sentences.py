"""Sentences of a long line, found by sentencex or without it: nothing of the line is lost either way."""

import sys

import pytest
from decoding_rig import config, tokenizer, transformer, translator
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding import sentences as subject
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.pieces import cut, places
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.sentences import sentence_ends, sentence_rule
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source

LINES = st.text(alphabet=st.sampled_from('abA.!?。！ \t"”)1é你😀\u00a0\u3000\u2028\u2581;'), max_size=60) | st.text(
    max_size=40
)


@pytest.fixture(params=["sentencex", "built in"])
def rule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "built in":
        monkeypatch.setitem(sys.modules, "sentencex", None)  # what an import of something missing finds
    else:
        pytest.importorskip("sentencex")
    return request.param


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        ("en", ["I met Dr. Smith at 3.14 p.m. today.", '"Really?" he said.', "Yes."]),
        ("de", ["Das ist z. B. ein Satz.", "Am 3. Oktober war er da.", "Ja!"]),
        ("zh-CN", ["今天天气很好。", "我们去公园吧！", "好吗？"]),
    ],
)
@pytest.mark.parametrize("space", ["", " ", "  ", "\u00a0", "\u3000 "])
def test_where_sentences_end(lang: str, sentences: list[str], space: str) -> None:
    pytest.importorskip("sentencex")
    space = space or ("" if lang == "zh-CN" else " ")
    found = sentence_ends(space.join(sentences), lang)
    assert found == [len(space.join(sentences[: i + 1])) for i in range(len(sentences))]


@pytest.mark.parametrize("lang", ["en", "de", "fr", "ja"])
def test_what_makes_sentencex_panic_is_kept_from_it(lang: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sentencex")
    assert sentence_ends("Yes. \u3000A\u00a0. No.", lang)
    assert capfd.readouterr().err == ""


def test_a_panic_or_a_lost_character_leaves_the_rule_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sentencex = pytest.importorskip("sentencex")
    PanicException = type("PanicException", (BaseException,), {})

    def panic(*_: str) -> None:
        raise PanicException

    for segment in (panic, lambda lang, line: [line[1:]]):
        monkeypatch.setattr(sentencex, "segment", segment)
        assert sentence_ends("One. Two.", "en") == []

    def interrupted(*_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sentencex, "segment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sentence_ends("One. Two.", "en")


def test_the_rule_is_named(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if rule == "built in":

        def missing(name: str) -> str:
            raise subject.PackageNotFoundError(name)

        monkeypatch.setattr(subject, "version", missing)
    assert sentence_rule().startswith(rule)


@given(line=LINES, limit=st.integers(1, 12), lang=st.sampled_from(["en", "de", "zh", "xx"]))
def test_the_parts_join_to_the_line(line: str, limit: int, lang: str) -> None:
    (ids,) = tokenizer().encode_src([line])
    pieces = tokenizer().src_pieces(ids)
    known = places(pieces, line, sentence_ends(line, lang))
    ranges = cut(pieces, limit, known)
    assert [i for start, end in ranges for i in ids[start:end]] == ids
    assert all(end - start <= limit for start, end in ranges)
    assert tokenizer().decode([i for start, end in ranges for i in ids[start:end]]) == line.replace("\u2581", " ")


@given(line=LINES, lang=st.sampled_from(["en", "zh"]))
def test_a_place_is_where_a_sentence_ends(line: str, lang: str) -> None:
    (ids,) = tokenizer().encode_src([line])
    ends = sentence_ends(line, lang)
    for place in places(tokenizer().src_pieces(ids), line, ends):
        assert len(tokenizer().decode(ids[:place])) in ends


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (99, ["▁Dr . ▁A ▁b . ▁C . ▁D ▁e ▁f ▁g ."]),
        (8, ["▁Dr . ▁A ▁b . ▁C .", "▁D ▁e ▁f ▁g ."]),  # as many whole sentences as fit
        (6, ["▁Dr . ▁A ▁b .", "▁C .", "▁D ▁e ▁f ▁g ."]),
        (4, ["▁Dr .", "▁A ▁b .", "▁C .", "▁D ▁e ▁f", "▁g ."]),  # none fits: any mark, then any word
    ],
)
def test_whole_sentences_are_packed(limit: int, expected: list[str]) -> None:
    pieces = ["▁Dr", ".", "▁A", "▁b", ".", "▁C", ".", "▁D", "▁e", "▁f", "▁g", "."]
    line = "Dr. A b. C. D e f g."
    ranges = cut(pieces, limit, places(pieces, line, [8, 11, 20]))
    assert [" ".join(pieces[start:end]) for start, end in ranges] == expected


def test_a_mark_that_ends_no_sentence_is_second_choice() -> None:
    pieces = ["▁A", ".", "▁B", "▁Dr", ".", "▁C", "."]
    assert cut(pieces, 5, places(pieces, "A. B Dr. C.", [2, 11])) == [(0, 2), (2, 7)]
    assert cut(pieces, 5) == [(0, 5), (5, 7)]


def test_pieces_that_do_not_spell_the_line_have_no_places() -> None:
    assert places(["▁a", "b"], "ab", [2]) == {2}
    assert places(["a", "b"], "ab", [1]) == {1}  # a tokenizer that puts no space in front
    assert places(["▁", "<0xE4>", "<0xBD>", "<0xA0>", "b"], "你b", [1]) == {4}
    assert places(["▁abc"], "ab", [2]) == places(["<unk>"], "ab", [2]) == set()
    assert places(["▁a"], "abc", [3]) == places([], "", []) == set()


def test_only_lines_that_are_too_long_depend_on_the_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = translator(transformer(config()), config())
    sources: list[list[int]] = []

    def echo(self: BatchDecoder, given: list[Source], settings: DecodeSettings) -> list[list[Finished]]:
        sources.extend(list(source.ids) for source in given)
        return [[Finished(0.0, list(source.ids[:-1]), False)] for source in given]

    monkeypatch.setattr(BatchDecoder, "search", echo)
    fits = "Hund Nr. 5. Katze. " * 2
    long = "ein hund. zwei katze baum. " * 12
    assert [t.pieces > 1 for t in small.translate_window([fits, long], DecodeSettings())] == [False, True]
    (ids,) = tokenizer().encode_src([fits])
    assert sources[0] == [*ids, 3]
    texts = [tokenizer().decode(source[:-1]) for source in sources[1:]]
    assert "".join(texts).replace(" ", "") == long.replace(" ", "")
    assert all(text.rstrip().endswith(".") for text in texts[:-1])


def test_a_line_that_fits_never_asks_for_its_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformer_cli.decoding.parts as module

    def asked(*_: str) -> None:
        raise AssertionError("the line fits")

    monkeypatch.setattr(module, "sentence_ends", asked)
    small = translator(transformer(config()), config())
    assert small.translate(["ein hund. zwei katze."], beam_size=1)
    with pytest.raises(AssertionError, match="fits"):
        small.translate(["ein hund. zwei katze. " * 30])
