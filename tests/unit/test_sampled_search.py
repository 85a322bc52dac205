import math
from collections import Counter

import pytest
import torch
from decoding_rig import TableModel, argmax_loop, run_search, run_sentences, settings

from transformer_cli.data.tokenizer import EOS
from transformer_cli.decoding.sampling import Sampling
from transformer_cli.decoding.source import Source

CAPS = [4, 9, 6, 12, 3]
DRAWN = {"sampling": True}


def tokens_of(found: list) -> list[list[list[int]]]:
    return [[sample.tokens for sample in samples] for samples in found]


def test_samples_follow_the_models_distribution() -> None:
    model = TableModel(0, 8, 1.0)
    (found,) = run_search(model, [1 + 1], settings(beam_size=1000, **DRAWN))
    counts = Counter(sample.tokens[0] if sample.tokens else EOS for sample in found)
    allowed = model.log_probs((0, 2)).exp()
    allowed[:EOS] = 0
    for token, share in enumerate((allowed / allowed.sum()).tolist()):
        assert counts[token] / 1000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 1000) + 1e-9)


@pytest.mark.parametrize("changes", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 0.01}], ids=str)
def test_what_leaves_no_choice_is_greedy_search(changes: dict[str, float]) -> None:
    how = settings(**DRAWN, **changes)
    found = run_search(TableModel(3, 30, 2.0), CAPS, how)
    assert tokens_of(found) == [[argmax_loop(TableModel(3, 30, 2.0), n, cap, how)] for n, cap in enumerate(CAPS)]


def test_only_the_top_k_and_the_top_p_are_drawn() -> None:
    model = TableModel(5, 40, 1.0)
    probabilities = model.log_probs((0, 2)).exp()
    probabilities[:EOS] = 0
    order = probabilities.argsort(descending=True)
    before = (probabilities[order] / probabilities.sum()).cumsum(0) - probabilities[order] / probabilities.sum()
    for changes, allowed in [({"top_k": 3}, order[:3]), ({"top_p": 0.4}, order[before < 0.4])]:
        (found,) = run_search(model, [2], settings(beam_size=400, **DRAWN, **changes))
        first = {sample.tokens[0] if sample.tokens else EOS for sample in found}
        assert first == set(allowed.tolist())


def test_samples_depend_on_seed_and_line_alone() -> None:
    how = settings(beam_size=3, **DRAWN)
    expected = run_search(TableModel(1, 30), CAPS, how)
    assert run_search(TableModel(1, 30), CAPS, how, n_places=2) == expected
    alone = Source([3], number=(3, 0), cap=CAPS[3])
    assert run_sentences(TableModel(1, 30), [alone], how) == expected[3:4]
    more = run_search(TableModel(1, 30), CAPS, how.but({"beam_size": 7}))
    for few, many in zip(tokens_of(expected), tokens_of(more), strict=True):
        assert all(tokens in many for tokens in few)
    assert run_search(TableModel(1, 30), CAPS, how.but({"seed": 2})) != expected
    same_source = [Source([3], number=(line, 0), cap=30) for line in range(2)]
    first, second = run_sentences(TableModel(1, 30), same_source, how)
    assert first != second
    parts = [Source([3], number=(0, part), cap=30) for part in range(2)]
    of_first, of_second = run_sentences(TableModel(1, 30), parts, how)
    assert first == of_first != of_second


def test_scores_are_the_models_own_whatever_is_drawn_from() -> None:
    model = TableModel(2, 20)
    for n, samples in enumerate(run_search(model, CAPS, settings(beam_size=2, temperature=0.5, top_k=4, **DRAWN))):
        for sample in samples:
            row, total = (n, 2), 0.0
            for token in [*sample.tokens, EOS]:
                total += float(model.log_probs(row)[token])
                row = (*row, token)
            assert sum(sample.log_probs) == pytest.approx(total, abs=1e-5)
            assert len(sample.tokens) < CAPS[n]
        assert [s.score for s in samples] == sorted((s.score for s in samples), reverse=True)


def test_limits_hold_for_samples_too() -> None:
    model = TableModel(2, 9, 0.1)
    found = run_search(model, [30] * 6, settings(beam_size=4, min_length=5, no_repeat_ngram=2, **DRAWN))
    for samples in found:
        for sample in samples:
            pairs = list(zip(sample.tokens, sample.tokens[1:], strict=False))
            assert len(sample.tokens) >= 5
            assert len(set(pairs)) == len(pairs)
    capped = run_search(model, [3] * 6, settings(beam_size=8, **DRAWN))
    assert any(sample.capped for samples in capped for sample in samples)
    assert not any(sample.capped and len(sample.tokens) < 2 for samples in capped for sample in samples)
    assert torch.tensor([len(sample.tokens) for samples in capped for sample in samples]).max() == 2


def test_a_draw_of_zero_takes_nothing_that_may_not_follow() -> None:
    chooser = Sampling(1, 9, settings(beam_size=3, min_length=2, **DRAWN))
    chooser.admit([0], [Source([0], cap=9)])
    chooser._draws[:] = 0
    chooser.advance(TableModel(1, 30).log_probs((0, 2)).expand(3, -1).clone())
    assert chooser.live.newest.tolist() == [[EOS + 1] * 3]


def test_a_sample_for_which_no_token_is_left_ends_with_nothing() -> None:
    every = Forbidden(TableModel(2, 9, 0.1))
    found = run_search(every, [30, 30], settings(beam_size=2, min_length=5, **DRAWN))
    assert found == [[], []]


class Forbidden:
    """A model that lets nothing but ``</s>`` follow."""

    def __init__(self, model: TableModel) -> None:
        self._model = model
        self.admit, self.release, self.keep = model.admit, model.release, model.keep

    def step(self, tokens: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
        log_probs = self._model.step(tokens, parents)
        log_probs[:, EOS + 1 :] = -torch.inf
        return log_probs


def test_samples_are_numbered_and_in_the_order_of_their_scores() -> None:
    for samples in run_search(TableModel(1, 30), CAPS, settings(beam_size=5, **DRAWN)):
        assert {sample.draw for sample in samples} == set(range(5))
        assert samples == sorted(samples, key=lambda sample: (-sample.score, sample.draw))
    (few,), (many,) = (
        run_search(TableModel(1, 30), [9], settings(beam_size=beam_size, **DRAWN)) for beam_size in (2, 6)
    )
    of_draw = {sample.draw: sample for sample in many}
    assert [of_draw[sample.draw] for sample in few] == few
