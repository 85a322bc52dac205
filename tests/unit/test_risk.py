import pytest
from decoding_rig import config, sentences, transformer, translator
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.risk import by_risk, mean_likeness
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import UserError

HOW = DecodeSettings(beam_size=6, sampling=True, max_length_ratio=0.5)
TEXTS = ["ein hund", "der hund", "ein hund schläft", "zwei katzen", "zwölf", "", "ein hund."]


def samples(*texts: str) -> list[Finished]:
    """Samples whose only token is the number of their text."""
    return [Finished(-float(n), [TEXTS.index(text)], False) for n, text in enumerate(texts)]


def text_of(tokens: list[int]) -> str:
    return TEXTS[tokens[0]]


def brute_force(texts: list[str]) -> list[float]:
    """Compare every sample with every other one, whatever is the same."""
    return [
        sum(CHRF().sentence_score(text, [other]).score for m, other in enumerate(texts) if m != n)
        / max(1, len(texts) - 1)
        for n, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def small() -> Translator:
    return translator(transformer(config(), weights=2.0), config())


def test_the_sample_in_the_middle_wins_although_another_is_more_probable() -> None:
    found = [text_of(s.tokens) for s in by_risk(samples("zwei katzen", "der hund", "ein hund.", "ein hund"), text_of)]
    assert (found[0], found[-1]) == ("ein hund.", "zwei katzen")


def test_a_text_that_was_drawn_twice_counts_twice() -> None:
    once = by_risk(samples("zwei katzen", "ein hund", "der hund"), text_of)
    often = by_risk(samples("zwei katzen", "zwei katzen", "zwei katzen", "ein hund", "der hund"), text_of)
    assert text_of(once[0].tokens) != "zwei katzen"
    assert text_of(often[0].tokens) == "zwei katzen"
    assert len(often) == 3
    assert often[0].score == 0  # the best of the three


def test_of_equals_the_earlier_wins() -> None:
    for texts in (["ein hund", "zwölf"], ["zwölf", "ein hund"]):  # nothing in common
        assert mean_likeness(texts) == {"ein hund": 0, "zwölf": 0}
        assert [text_of(sample.tokens) for sample in by_risk(samples(*texts), text_of)] == texts
    assert by_risk([], text_of) == []
    assert len(by_risk(samples(""), text_of)) == 1


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8))
def test_it_is_brute_force(texts: list[str]) -> None:
    expected = dict(zip(texts, brute_force(texts), strict=True))
    assert mean_likeness(texts) == pytest.approx(expected)
    found = [text_of(sample.tokens) for sample in by_risk(samples(*texts), text_of)]
    assert sorted(found) == sorted(set(texts))
    assert [expected[text] for text in found] == pytest.approx(sorted((expected[t] for t in found), reverse=True))


def test_the_translator_returns_what_brute_force_chooses_among_its_samples(small: Translator) -> None:
    lines = sentences(6, seed=8, longest=5)
    drawn = list(small.stream(lines, HOW.but({"n_best": 6, "temperature": 0.5})))
    chosen = list(small.stream(lines, HOW.but({"mbr": True, "temperature": 0.5})))
    for samples_, best in zip(drawn, chosen, strict=True):
        texts = [hypothesis.text for hypothesis in samples_.hypotheses]
        assert len(texts) == 6
        risks = brute_force(texts)
        assert risks[texts.index(best.text)] == pytest.approx(max(risks))
        assert len(best.hypotheses) == 1
    assert any(best.text != samples_.text for samples_, best in zip(drawn, chosen, strict=True))


def test_it_does_not_depend_on_the_batch(small: Translator) -> None:
    lines = sentences(9, seed=9, longest=8)
    how = HOW.but({"mbr": True, "n_best": 3})
    whole = small.translate_window(lines, how)
    assert small.translate_window(lines, how.but({"batch_size": 2})) == whole
    assert [small.translate_window([line], how, number)[0] for number, line in enumerate(lines)] == whole
    assert all(len({h.text for h in found.hypotheses}) == len(found.hypotheses) for found in whole)


def test_samples_may_repeat_and_are_as_many_as_asked_for(small: Translator) -> None:
    how = HOW.but({"temperature": 0.05, "n_best": 6})
    for translation in small.stream(sentences(3, seed=8, longest=3), how):
        texts = [hypothesis.text for hypothesis in translation.hypotheses]
        assert len(texts) == 6 > len(set(texts))


def test_mbr_without_samples_is_refused() -> None:
    with pytest.raises(UserError, match="mbr chooses among samples"):
        DecodeSettings(mbr=True)
    with pytest.raises(UserError, match="more translations are asked for than are drawn"):
        HOW.but({"mbr": True, "n_best": 7})


def test_settings_say_how_was_drawn() -> None:
    told = HOW.but({"mbr": True, "top_k": 5, "top_p": 0.9, "temperature": 0.7, "seed": 3}).describe()
    for part in ("6 samples", "temperature 0.7", "seed 3", "top-k 5", "top-p 0.9", "minimum Bayes risk"):
        assert part in told
    assert "beam" not in told
