"""Required phrases against brute force: the widest beam finds the best of all hypotheses that hold them."""

import random
from collections.abc import Sequence

import pytest
import torch
from decoding_rig import N_SPECIAL, TableModel, exhaustive, run_search, run_sentences, settings
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.tokenizer import EOS
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.required import Required
from transformer_cli.decoding.source import Source

N_WORDS = 3
A, B, C = range(N_SPECIAL, N_SPECIAL + N_WORDS)
CAPS = [2, 3, 4, 5]
PHRASES = [
    [[A]],
    [[A, B]],
    [[A], [B]],
    [[A, B], [C]],
    [[A, A]],
    [[A, B], [B, C]],  # one token may serve both
    [[A, B, A], [B, A]],  # one holds the other
    [[A, A, B]],  # begins anew inside itself
]


def holds(tokens: Sequence[int], phrase: Sequence[int]) -> bool:
    n = len(phrase)
    return any(list(tokens[i : i + n]) == list(phrase) for i in range(len(tokens) - n + 1))


def left_of(every: list[Finished], phrases: list[list[int]]) -> list[Finished]:
    return [h for h in every if all(holds(h.tokens, phrase) for phrase in phrases)]


@pytest.mark.parametrize("phrases", PHRASES, ids=str)
@pytest.mark.parametrize("changes", [{}, {"length_penalty": 0.0}, {"min_length": 3}, {"no_repeat_ngram": 2}], ids=str)
def test_the_widest_beam_finds_the_best_that_hold_the_phrases(
    phrases: list[list[int]], changes: dict[str, float]
) -> None:
    for seed in range(2):
        how = settings(beam_size=N_WORDS ** (max(CAPS) - 1), n_best=3, **changes)
        model = TableModel(seed, N_SPECIAL + N_WORDS, 1.5)
        found = run_search(model, CAPS, how, n_places=2, required=phrases)
        for sentence, cap in enumerate(CAPS):
            every = exhaustive(model, sentence, cap, how)
            expected = left_of(every, phrases)[:3]
            ours = found[sentence][: len(expected)]
            if not expected:  # no room: nothing that is allowed holds them
                assert found[sentence]
                continue
            assert [h.tokens for h in ours] == [h.tokens for h in expected]
            assert [h.score for h in ours] == pytest.approx([h.score for h in expected], abs=1e-3)
            assert left_of(found[sentence], phrases) == found[sentence]


@pytest.mark.parametrize("extra", [0, 1, 4])
@pytest.mark.parametrize("vocab_size", [8, 60])
def test_a_narrow_beam_holds_them_too_whatever_stands_beside_it(extra: int, vocab_size: int) -> None:
    rng, model = random.Random(7), TableModel(3, vocab_size, 2.0)
    words = range(N_SPECIAL, vocab_size)
    asked = []
    for number in range(14):
        phrases = [[rng.choice(words) for _ in range(rng.randint(1, 3))] for _ in range(number % 4)]
        cap = sum(map(len, phrases)) + rng.randint(1, 8)
        asked.append(Source([number], number=(number, 0), required=phrases, cap=cap))
    how = settings(beam_size=extra + 1)
    found = run_sentences(model, asked, how, n_places=5)
    for sentence, several in zip(asked, found, strict=True):
        assert several
        assert all(holds(h.tokens, phrase) for h in several for phrase in sentence.required), sentence
        assert all(len(h.tokens) < sentence.cap for h in several)
    assert found == run_sentences(TableModel(3, vocab_size, 2.0), asked, how)
    free = [number for number, sentence in enumerate(asked) if not sentence.required]
    alone = run_sentences(TableModel(3, vocab_size, 2.0), [asked[number] for number in free], how)
    assert [found[number] for number in free] == alone


def test_of_equals_the_earlier_parent_comes_first_and_then_the_lower_id() -> None:
    class Flat(TableModel):
        def log_probs(self, row: tuple[int, ...]) -> torch.Tensor:
            return torch.full((self.vocab_size,), -1.0)

    (found,) = run_search(Flat(0, N_SPECIAL + N_WORDS), [3], settings(beam_size=30, n_best=30), required=[[B]])
    assert [h.tokens for h in found] == [[B], [A, B], [B, A], [B, B], [B, C], [C, B]]


def test_a_wider_beam_finds_nothing_worse() -> None:
    model, phrases = TableModel(11, 12, 1.5), [[5, 6], [9]]
    best = [
        [several[0].score for several in run_search(model, [9] * 8, settings(beam_size=k), required=phrases)]
        for k in (4, 100)
    ]
    assert all(wide >= narrow - 1e-3 for narrow, wide in zip(*best, strict=True))
    assert best[0] != best[1]


def test_where_there_is_no_room_the_limit_wins() -> None:
    model = TableModel(2, 9, 1.0)
    found = run_search(model, [3, 2, 1], settings(beam_size=4), required=[[5, 6, 7]])
    assert all(several for several in found)
    assert [max(len(h.tokens) for h in several) for several in found] == [2, 1, 0]


def test_what_lacks_a_phrase_does_not_end_at_the_limit_if_another_held_it_in_time() -> None:
    class Ending(TableModel):
        """Nothing follows B but the end."""

        def log_probs(self, row: tuple[int, ...]) -> torch.Tensor:
            found = super().log_probs(row)
            if row[-1] == B:
                found[EOS + 1 :] = -torch.inf
            else:
                found[EOS] -= 9.0
            return found

    (found,) = run_search(Ending(2, N_SPECIAL + N_WORDS), [5], settings(beam_size=30), required=[[B]])
    assert found
    assert left_of(found, [[B]]) == found


def test_a_prefix_may_hold_a_phrase_or_begin_it() -> None:
    for prefix in ([5, 6, 7], [8, 5], [5, 6]):
        asked = [Source([0], prefix=prefix, required=[[5, 6, 7]], cap=8)]
        for h in run_sentences(TableModel(2, 12, 1.0), asked, settings(beam_size=4))[0]:
            assert h.tokens[: len(prefix)] == prefix
            assert holds(h.tokens, [5, 6, 7])


@given(st.sampled_from(PHRASES), st.lists(st.sampled_from([A, B, C, C + 1]), max_size=9))
def test_the_state_is_a_function_of_the_tokens(phrases: list[list[int]], tokens: list[int]) -> None:
    required = Required(phrases)
    state = required.start
    for token in tokens:
        state = required.step(state, token)
    missing = [phrase for phrase in phrases if not holds(tokens, phrase)]
    assert required.is_met(state) == (not missing)
    begun = [(n, phrase[n]) for phrase in missing for n in range(len(phrase)) if n == 0 or tokens[-n:] == phrase[:n]]
    assert required.wanted(state) == sorted({token for _, token in begun})
    met = sum(len(phrase) for phrase in phrases if phrase not in missing)
    assert required.n_met(state) == met + max((n for n, _ in begun), default=0)
    if missing:  # the next token of the longest beginning always counts
        longest = max(begun)
        assert required.n_met(required.step(state, longest[1])) > required.n_met(state)
