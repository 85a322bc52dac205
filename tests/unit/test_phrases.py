import random

import pytest
from decoding_rig import WORDS, config, sentences, tokenizer, transformer, translator

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import UNK
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.decoding.phrases import Glossary, Phrases
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translator import Translator
from transformer_cli.decoding.wishes import Wishes
from transformer_cli.errors import UserError

HOW = DecodeSettings(beam_size=2, max_length_ratio=0.5)
TERMS = {"York": "York", "New York": "Neu-York", "station": "Bahnhof", "the station": "der Bahnhof", "C++": "C++"}


@pytest.fixture(scope="module")
def small() -> Translator:
    return translator(transformer(config(), weights=2.0), config())


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a line without", []),
        ("In New York.", ["Neu-York"]),
        ("In York, New York and York", ["York", "Neu-York"]),
        ("At the station, my station", ["der Bahnhof", "Bahnhof"]),
        ("Station, stations, substation", []),
        ("station", ["Bahnhof"]),
        ("stationär", []),
        ("I write C++.", ["C++"]),
    ],
)
def test_terms_are_whole_words_as_written_and_the_longest_counts(line: str, found: list[str]) -> None:
    glossary = Glossary(TERMS, {text: [n] for n, text in enumerate(TERMS.values())}, "en")
    assert glossary.required(line) == found
    assert glossary.ids(line) == [[list(TERMS.values()).index(text)] for text in found]


def test_where_no_spaces_are_set_terms_stand_anywhere() -> None:
    terms = {"火车": "train", "火车站": "station"}
    assert Glossary(terms, {}, "zh-CN").required("去火车站坐火车。") == ["station", "train"]
    assert Glossary(terms, {}, "en").required("去火车站坐火车。") == []


def test_what_contradicts_itself_is_refused() -> None:
    glossary = Glossary({"house": "das Haus"}, {"das Haus": [7]}, "en")
    with pytest.raises(UserError, match="the glossary wants what is forbidden") as caught:
        Phrases(glossary, ForbiddenPhrases(["x", "Hau"], []))
    assert caught.value.got == "'das Haus' holds 'Hau'"
    assert Phrases(glossary, ForbiddenPhrases(["haus"], [])).missing("my house", "das Heim") == ["das Haus"]
    assert Phrases(glossary).missing("my house", "in das Haus") == []


def test_phrases_are_cut_as_inside_of_a_line() -> None:
    text = sentences(100)
    for phrase in ("ein hund", "katze.", "x"):
        of_it = Wishes(tokenizer(), "en", "de", 40).glossary({"a": phrase}).ids("a")[0]
        assert of_it == tokenizer().encode_tgt([phrase])[0]
    chinese = ["我去火车站。", "火车站在哪里？", "我在银行。", "银行，银行在哪里？", "他的车在火车站。"] * 20
    model = TokenizerConfig(vocab_size=330, character_coverage=1.0)
    joint = train_tokenizer(model, [*text[:20], *chinese], chinese, lambda _: None)
    surfaces = joint.tgt_surfaces()
    for phrase in ("火车站", "银行", "我在银行。", "猫"):
        of_it = Wishes(joint, "en", "zh", 40).glossary({"a": phrase}).ids("a")[0]
        assert b"".join(surfaces[one] for one in of_it) == phrase.encode()


def test_a_phrase_too_long_or_not_to_be_spelled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wishes = Wishes(tokenizer(), "en", "de", 3)
    with pytest.raises(UserError, match="'hund hund hund hund' is longer than a translation may be"):
        wishes.glossary({"dog": "hund hund hund hund"})
    monkeypatch.setattr(type(tokenizer()), "encode_tgt", lambda self, lines: [[5, UNK]])
    with pytest.raises(UserError, match="cannot spell this"):
        wishes.glossary({"dog": "hund"})


@pytest.mark.parametrize("changes", [{}, {"beam_size": 1}, {"beam_size": 4, "n_best": 4}, {"early_stopping": True}])
def test_translations_hold_what_the_glossary_says_whatever_the_batch(
    small: Translator, changes: dict[str, object]
) -> None:
    terms = {word: " ".join(random.Random(n).choices(WORDS, k=n % 3 + 1)) for n, word in enumerate(WORDS[:8])}
    phrases, how, lines = Phrases(small.wishes.glossary(terms)), HOW.but(changes), sentences(12, seed=5, longest=6)
    whole = small.translate_window(lines, how, phrases=phrases)
    free = small.translate_window(lines, how)
    for number, line in enumerate(lines):
        texts = [hypothesis.text for hypothesis in whole[number].hypotheses]
        assert not any(phrases.missing(line, text) for text in texts)
        assert small.translate_window([line], how, number, phrases=phrases) == [whole[number]]
        if not phrases.required_ids(line):
            assert whole[number] == free[number]
    assert any(phrases.missing(line, one.text) for line, one in zip(lines, free, strict=True))
    assert small.translate_window(lines, how.but({"batch_size": 3}), phrases=phrases) == whole


def test_terms_of_a_long_line_are_those_of_its_parts(small: Translator) -> None:
    line = "hund katze rot baum. " * 9 + "stern."
    phrases = Phrases(small.wishes.glossary({"stern": "wald", "hund katze": "see"}))
    (found,) = small.translate_window([line], HOW, phrases=phrases)
    assert found.pieces > 1
    assert not phrases.missing(line, found.text)
    assert found.text.count("see") >= found.pieces - 1
    assert found.text.count("wald") == 1


def test_wishes_can_be_combined(small: Translator) -> None:
    terms = small.wishes.glossary({"hund": "zwei see"})
    phrases = Phrases(terms, small.wishes.forbid(["e z"]))
    (found,) = small.translate_window(["ein hund."], HOW, prefixes=["rot"], phrases=phrases)
    assert found.text.startswith("rot")
    assert "zwei see" in found.text
    assert "e z" not in found.text


def test_samples_cannot_be_made_to_hold_phrases(small: Translator) -> None:
    phrases = Phrases(small.wishes.glossary({"hund": "see"}))
    with pytest.raises(UserError, match="what is drawn cannot be made to hold phrases"):
        small.translate_window(["ein hund."], HOW.but({"sampling": True}), phrases=phrases)


def test_a_beam_is_wider_by_the_tokens_of_its_terms_and_a_translation_may_be_longer(
    small: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    phrase = " ".join(WORDS)
    phrases = Phrases(small.wishes.glossary({"hund": phrase, "rot": "see"}))
    long, short = (len(small.wishes.glossary({"a": text}).ids("a")[0]) for text in (phrase, "see"))
    assert long + 1 > HOW.max_length(3)
    widths, search = {}, BatchDecoder._search

    def spied(self: BatchDecoder, group: list[Source], n_places: int, how: DecodeSettings) -> list[list[Finished]]:
        widths[how.beam_size] = len(group)
        return search(self, group, n_places, how)

    monkeypatch.setattr(BatchDecoder, "_search", spied)
    found = small.translate_window(["ein hund", "rot", "ein rot", "baum"], HOW, phrases=phrases)
    assert phrase in found[0].text
    assert widths == {2: 1, 2 + short: 2, 2 + long: 1}
