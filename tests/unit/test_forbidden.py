import itertools
import pickle
import random

import pytest
from decoding_rig import (
    N_SPECIAL,
    TableModel,
    config,
    exhaustive,
    run_sentences,
    sentences,
    settings,
    tokenizer,
    transformer,
    translator,
)
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.decoding.forbidden import START, ForbiddenPhrases
from transformer_cli.decoding.phrases import Phrases
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError

SURFACES = [b"", b"", b"", b"", b"a", b"b", b"ab", b" a", b"ba"]
PHRASE = st.text(st.sampled_from("ab "), min_size=1, max_size=4)


def text_of(tokens: list[int]) -> str:
    return b"".join(SURFACES[token] for token in tokens).decode()


@example(["bab", "a"], [5])
@example(["aab", "ab"], [4, 4])
@given(st.lists(PHRASE, min_size=1, max_size=4), st.lists(st.integers(4, 8), max_size=8))
def test_a_token_is_blocked_exactly_if_it_completes_a_phrase(phrases: list[str], tokens: list[int]) -> None:
    automaton, node = ForbiddenPhrases(phrases, SURFACES), START
    for length, token in enumerate(tokens):
        before = tokens[:length]
        if any(phrase in text_of(before) for phrase in phrases):
            break
        expected = [t for t in range(9) if any(phrase in text_of([*before, t]) for phrase in phrases)]
        assert automaton.blocked(node) == expected
        node = automaton.step(node, token)


@pytest.mark.parametrize("phrases", [["ab"], ["a a", "bb"], ["aba", "b a", "aab"]], ids=str)
def test_the_search_finds_the_best_of_what_is_left(phrases: list[str]) -> None:
    caps = [1, 2, 3, 4]
    for seed in range(3):
        model, how = TableModel(seed, len(SURFACES), 1.5), settings(beam_size=125, n_best=60)
        automaton = ForbiddenPhrases(phrases, SURFACES)
        asked = [Source([n], number=(n, 0), cap=cap, forbidden=automaton) for n, cap in enumerate(caps)]
        free = Source([4], number=(4, 0), cap=3)
        *found, unwatched = run_sentences(model, [*asked, free], how, n_places=2)
        for n, cap in enumerate(caps):
            every = exhaustive(TableModel(seed, len(SURFACES), 1.5), n, cap, how)
            left = [h for h in every if not any(phrase in text_of(h.tokens) for phrase in phrases)]
            assert len(left) < len(every) or cap < 3
            assert not any(phrase in text_of(h.tokens) for h in found[n] for phrase in phrases)
            assert [h.tokens for h in found[n][:3]] == [h.tokens for h in left[:3]]
            assert [h.score for h in found[n][:60]] == pytest.approx([h.score for h in left[:60]], abs=1e-3)
        assert unwatched[0].tokens == exhaustive(TableModel(seed, len(SURFACES), 1.5), 4, 3, how)[0].tokens


@pytest.mark.parametrize("changes", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 4, "sampling": True}], ids=str)
def test_no_way_of_choosing_says_a_forbidden_phrase_whatever_the_batch(changes: dict[str, object]) -> None:
    phrases, how = ["ab", "b a"], settings(**changes, no_repeat_ngram=3)  # type: ignore[arg-type]
    automaton = ForbiddenPhrases(phrases, SURFACES)
    asked = [Source([n], number=(n, 0), cap=12, forbidden=automaton) for n in range(12)]
    found = run_sentences(TableModel(5, len(SURFACES), 1.0), asked, how, n_places=5)
    assert not any(phrase in text_of(h.tokens) for several in found for h in several for phrase in phrases)
    assert all(several for several in found)
    assert found == run_sentences(TableModel(5, len(SURFACES), 1.0), asked, how)
    free = run_sentences(TableModel(5, len(SURFACES), 1.0), [Source([n], cap=12) for n in range(12)], how)
    assert any(phrase in text_of(h.tokens) for several in free for h in several for phrase in phrases)


def test_surfaces_spell_the_text() -> None:
    surfaces = tokenizer().tgt_surfaces()
    for line in ["ein hund.", "  zwei  katzen", "你好 \U0001f600 e\u0301", "Zug <0x41> </s>"]:
        ids = tokenizer().encode_tgt([line])[0]
        assert b"".join(surfaces[i] for i in ids).decode() == f" {line}"
    assert surfaces[:N_SPECIAL] == [b""] * N_SPECIAL


def test_every_spelling_is_blocked_bytes_and_parts_of_words_too() -> None:
    surfaces, rng = tokenizer().tgt_surfaces(), random.Random(3)
    automaton = ForbiddenPhrases(["hund", "你"], surfaces)
    pieces = [i for i, surface in enumerate(surfaces) if surface and surface in "rathunde你".encode()]
    assert len(pieces) > 10
    texts = 0
    for _ in range(3000):
        node, tokens = START, []
        for token in itertools.islice(iter(lambda: rng.choice(pieces), None), 8):
            whole = b"".join(surfaces[i] for i in [*tokens, token])
            assert (token in automaton.blocked(node)) == any(word.encode() in whole for word in automaton.phrases)
            if token in automaton.blocked(node):
                texts += 1
                break
            node, tokens = automaton.step(node, token), [*tokens, token]
    assert texts > 20


def test_a_translator_avoids_them() -> None:
    small = translator(transformer(config(), weights=2.0), config())
    how = settings(beam_size=3, max_length_ratio=0.5)
    lines = sentences(5, seed=3, longest=4)
    free = [translation.text for translation in small.stream(lines, how)]
    phrases = {text[n : n + 2] for text in free for n in (0, 1)}
    said = sorted(phrase for phrase in phrases if "\ufffd" not in phrase)  # which stands for half a character
    assert said
    for phrase in said:
        kept = small.translate_window(lines, how, phrases=Phrases(forbidden=small.wishes.forbid([phrase])))
        assert not any(phrase in translation.text for translation in kept)
    with pytest.raises(UserError, match="the prefix holds a forbidden phrase"):
        small.translate_window(lines[:1], how, 0, ["ein hund"], Phrases(forbidden=small.wishes.forbid(["n hu"])))


def test_what_was_found_out_is_kept_where_the_phrases_come_again() -> None:
    first, second = (pickle.loads(pickle.dumps(ForbiddenPhrases(["hund", "katze"], SURFACES))) for _ in range(2))
    assert first is second
    assert first.blocked(START) == ForbiddenPhrases(["hund", "katze"], SURFACES).blocked(START)
    other = pickle.loads(pickle.dumps(ForbiddenPhrases(["hund"], SURFACES)))
    assert (other.phrases, other is first) == (("hund",), False)
