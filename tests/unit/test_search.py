import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from decoding_rig import N_SPECIAL, TableModel, run_search, run_sentences, settings
from torch import Tensor

from transformer_cli.data.tokenizer import EOS
from transformer_cli.decoding.beam import BeamSearch
from transformer_cli.decoding.pool import Finished, Pool, length_norm
from transformer_cli.decoding.search import search as search_loop
from transformer_cli.decoding.source import Source

A, B, C = 4, 5, 6


class Chain:
    """A model whose next token depends on the last one alone: ``{last: {next: probability}}``; 2 is <s>."""

    def __init__(self, table: dict[int, dict[int, float]], vocab_size: int = 7) -> None:
        self.table = torch.full((vocab_size, vocab_size), 1e-9)
        for last, row in table.items():
            self.table[last, list(row)] = torch.tensor(list(row.values()))
        self.n_steps = 0

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        self.n_steps += 1
        return self.table.log()[tokens.flatten()]

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        pass

    def release(self, places: list[int]) -> None:
        pass

    def keep(self, places: list[int]) -> None:
        pass


def search(model: Chain | TableModel, caps: list[int], **changes: object) -> list[list[Finished]]:
    return run_search(model, caps, settings(**changes))


def test_a_beam_finds_what_greedy_search_walks_past() -> None:
    model = Chain({2: {A: 0.6, B: 0.4}, A: {C: 0.5, EOS: 0.5}, C: {EOS: 1.0}, B: {EOS: 1.0}})
    (greedy,), (beam,) = search(model, [9]), search(model, [9], beam_size=2, length_penalty=0.0)
    assert greedy[0].tokens == [A]
    assert beam[0].tokens == [B]
    assert beam[0].score == pytest.approx(math.log(0.4), abs=1e-4)


def test_length_penalty_is_the_formula_and_favours_longer_sentences() -> None:
    assert length_norm(7, settings(length_penalty=0.0)) == 1
    assert length_norm(1, settings(length_penalty=1.0)) == 1  # (5 + 1) / 6
    assert length_norm(13, settings(length_penalty=2.0)) == 9
    assert length_norm(9, settings(length_penalty=0.5, length_normalization="plain")) == 3
    assert length_norm(5000, settings(length_penalty=100, length_normalization="plain")) == math.inf
    model = Chain({2: {EOS: 0.5, A: 0.5}, A: {B: 0.8, EOS: 0.2}, B: {EOS: 0.9, C: 0.1}})
    assert search(model, [9], beam_size=3, length_penalty=0.0)[0][0].tokens == []
    (found,) = search(model, [9], beam_size=3, length_penalty=2.0)
    assert found[0].tokens == [A, B]
    assert found[0].score == pytest.approx(math.log(0.5 * 0.8 * 0.9) / (8 / 6) ** 2, abs=1e-4)


def test_search_stops_when_nothing_live_can_win_and_not_before() -> None:
    late = Chain({2: {EOS: 0.3, A: 0.7}, A: {A: 0.99, EOS: 0.01}})
    assert search(late, [40], beam_size=2, length_penalty=1.0)[0][0].tokens == [A] * 39
    assert late.n_steps == 40
    early = Chain({2: {EOS: 0.9, A: 0.1}, A: {A: 1.0}})
    assert search(early, [40], beam_size=2, length_penalty=0.0)[0][0].tokens == []
    assert early.n_steps == 1


def test_the_cap_closes_a_hypothesis_and_says_so() -> None:
    model = Chain({2: {A: 1.0}, A: {A: 0.9, EOS: 0.1}})
    (found,) = search(model, [4])
    assert (found[0].tokens, found[0].capped) == ([A, A, A], True)
    torn = Chain({2: {A: 1.0}, A: {A: 0.5, EOS: 0.5}})
    assert not search(torn, [4], min_length=3)[0][0].capped  # nothing was more probable
    willing = Chain({2: {A: 1.0}, A: {B: 1.0}, B: {EOS: 1.0}})
    assert not search(willing, [3])[0][0].capped  # it ends at the cap, of its own will


def test_the_cap_wins_over_min_length() -> None:
    model = Chain({2: {A: 0.5, EOS: 0.5}, A: {A: 0.5, EOS: 0.5}})
    assert search(model, [3], min_length=9)[0][0].tokens == [A, A]
    assert search(model, [9], min_length=4)[0][0].tokens == [A] * 4
    assert search(model, [9], min_length=0)[0][0].tokens == []


def test_no_repeat_ngram() -> None:
    model = Chain({2: {A: 1.0}, A: {B: 0.9, C: 0.1}, B: {A: 0.9, C: 0.1}, C: {EOS: 1.0}})
    assert search(model, [6], no_repeat_ngram=0)[0][0].tokens == [A, B, A, B, A]
    assert search(model, [9], no_repeat_ngram=2)[0][0].tokens == [A, B, A, C]
    assert search(model, [9], no_repeat_ngram=1)[0][0].tokens == [A, B, C]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_special_tokens_are_never_generated(beam_size: int) -> None:
    loud = torch.full((8,), -5.0)
    loud[:3] = 0.0
    model = Chain({}, vocab_size=8)
    model.table[:] = loud.exp()
    found = search(model, [6, 9], beam_size=beam_size)
    assert all(token >= N_SPECIAL for hypotheses in found for h in hypotheses for token in h.tokens)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_n_best_are_sorted_and_all_different(alpha: float) -> None:
    for hypotheses in search(TableModel(3, 40), [12] * 6, beam_size=5, n_best=5, length_penalty=alpha):
        assert len(hypotheses) >= 5
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


def test_asking_for_more_translations_never_changes_the_best() -> None:
    best = [h[0] for h in search(TableModel(5, 30, 2.0), [15] * 8, beam_size=4, n_best=1)]
    assert best == [h[0] for h in search(TableModel(5, 30, 2.0), [15] * 8, beam_size=4, n_best=4)]


def test_equally_good_tokens_are_taken_by_their_id() -> None:
    flat = Chain({last: dict.fromkeys((A, B, C, EOS), 1 / 4) for last in range(7)})
    assert search(flat, [5], beam_size=1)[0][0].tokens == []  # </s> has the lowest id
    assert [h.tokens for h in search(flat, [3], beam_size=4, n_best=4, length_penalty=0.0)[0]][:4] == [
        [],
        [A],
        [B],
        [C],
    ]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_finished_sentences_leave_and_waiting_ones_take_their_places(beam_size: int) -> None:
    caps = [3] * 20 + [30] * 20
    model = TableModel(1, 20, 3.0)
    search(model, caps, beam_size=beam_size)
    assert model.busy_per_step[0] == 40
    assert model.busy_per_step[3] <= 20
    refilled, not_refilled = TableModel(1, 20, 3.0), TableModel(1, 20, 3.0)
    full = run_search(refilled, caps, settings(beam_size=beam_size), n_places=8)
    assert full == run_search(not_refilled, caps, settings(beam_size=beam_size, refill=False), n_places=8)
    assert full == run_search(TableModel(1, 20, 3.0), caps, settings(beam_size=beam_size))
    assert max(refilled.busy_per_step) == 8
    assert len(refilled.busy_per_step) < len(not_refilled.busy_per_step)


def test_places_are_given_up_when_half_of_them_are_free_and_usable_numbers_remain() -> None:
    class Noting(TableModel):
        def keep(self, places: list[int]) -> None:
            kept.append((len(self.places), len(places)))
            super().keep(places)

    kept: list[tuple[int, int]] = []
    how, caps = settings(beam_size=2), [*range(2, 26)]
    asked = [Source([number], number=(number, 0), cap=cap) for number, cap in enumerate(caps)]
    found = search_loop(Noting(1, 20, 3.0), BeamSearch(24, 26, how), asked, 24, usable_places=lambda n: -(-n // 4) * 4)
    assert found == run_search(TableModel(1, 20, 3.0), caps, how, n_places=3)
    sizes = [24, *(n for _, n in kept)]
    assert sizes[-1] == 4
    for (busy, n), before in zip(kept, sizes, strict=False):
        assert busy <= before / 2
        assert n == -(-busy // 4) * 4


@pytest.mark.parametrize("beam_size", [1, 4])
def test_neighbours_do_not_matter(beam_size: int) -> None:
    caps = [5, 17, 9, 3, 12]
    how = settings(beam_size=beam_size, no_repeat_ngram=2)
    together = run_search(TableModel(2, 60), caps, how)
    alone = Source([3], number=(3, 0), cap=caps[3])
    assert run_sentences(TableModel(2, 60), [alone], how) == together[3:4]
    assert run_search(TableModel(2, 60), caps, how, n_places=2) == together


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_a_broken_model_ends_the_search(value: float) -> None:
    for changes in ({"beam_size": 1}, {"beam_size": 3}, {"sampling": True}):
        model = Chain({}, vocab_size=9)
        model.table[:] = value
        assert search(model, [7, 7], **changes) == [[], []]


def test_plain_normalisation_divides_by_the_length() -> None:
    model = Chain({2: {EOS: 0.5, A: 0.5}, A: {B: 0.8, EOS: 0.2}, B: {EOS: 0.9, C: 0.1}})
    (found,) = search(model, [9], beam_size=3, length_normalization="plain")
    assert found[0].tokens == [A, B]
    assert found[0].score == pytest.approx(math.log(0.5 * 0.8 * 0.9) / 3, abs=1e-6)


def test_early_stopping_ends_when_the_beam_is_full_of_finished_ones() -> None:
    model = TableModel(4, 12, 1.0)
    best, early = (search(model, [25], beam_size=3, early_stopping=stop)[0] for stop in (False, True))
    steps = [len(finished.log_probs) for finished in early]
    assert max(steps) <= max(len(finished.log_probs) for finished in best)
    late = Chain({2: {EOS: 0.3, A: 0.7}, A: {A: 0.9, EOS: 0.1}})
    assert search(late, [40], beam_size=2, early_stopping=True)[0][0].tokens == []
    assert late.n_steps == 2
    assert len(search(late, [40], beam_size=2)[0][0].tokens) > 0


@pytest.mark.parametrize("beam_size", [1, 3])
def test_log_probs_of_the_tokens_add_up_to_the_score(beam_size: int) -> None:
    model = TableModel(6, 30)
    for number, found in enumerate(search(model, [12] * 5, beam_size=beam_size, n_best=beam_size)):
        for finished in found:
            row, expected = (number, 2), []
            for token in [*finished.tokens, EOS]:
                expected.append(float(model.log_probs(row)[token]))
                row = (*row, token)
            assert finished.log_probs == pytest.approx(expected, abs=1e-6)
            assert finished.score == pytest.approx(sum(expected) / length_norm(len(expected), settings()), abs=1e-5)


@pytest.mark.parametrize("changes", [{"beam_size": 1}, {"beam_size": 4, "n_best": 4}, {"sampling": True}])
def test_every_translation_starts_with_its_prefix(changes: dict[str, object]) -> None:
    how = settings(**changes)
    sentences = [Source([n], number=(n, 0), prefix=prefix, cap=8) for n, prefix in enumerate([[], [9], [5, 5, 7]])]
    found = run_sentences(TableModel(7, 14), sentences, how, n_places=2)
    for sentence, hypotheses in zip(sentences, found, strict=True):
        assert hypotheses
        assert all(h.tokens[: len(sentence.prefix)] == list(sentence.prefix) for h in hypotheses)
    free = run_sentences(TableModel(7, 14), [replace(sentence, prefix=()) for sentence in sentences], how)
    assert found[0] == free[0]
    turned = run_sentences(TableModel(7, 14), sentences[::-1], how, n_places=1)  # a long prefix leaves nothing behind
    assert turned == found[::-1]
    continued = free[1][0].tokens[:3]
    again = run_sentences(TableModel(7, 14), [replace(sentences[1], prefix=continued)], settings())
    assert again[0][0].tokens[:3] == continued


def test_no_sentences_no_steps() -> None:
    assert search(Chain({}), []) == []


def test_a_pool_keeps_the_best_and_knows_what_is_to_beat() -> None:
    pool = Pool(settings(beam_size=2, n_best=2))
    assert pool.to_beat == -math.inf
    for score in (-3.0, -1.0, -2.0, -5.0, -4.0, -2.0):
        pool.add(Finished(score, [int(-score)], False), score)
    assert [h.score for h in pool.best] == [-1.0, -2.0, -2.0, -3.0]
    assert pool.to_beat == -2.0
