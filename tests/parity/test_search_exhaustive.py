"""Search against brute force: a beam as wide as all live prefixes finds what enumerating every sentence finds."""

import pytest
from decoding_rig import N_SPECIAL, TableModel, argmax_loop, exhaustive, run_search, settings

N_WORDS = 3  # with </s> a vocabulary of four
CAPS = [1, 2, 3, 4, 5]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("limits", [{}, {"min_length": 2}, {"no_repeat_ngram": 1}, {"no_repeat_ngram": 2}])
@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("normalization", ["gnmt", "plain"])
def test_widest_beam_is_exhaustive(alpha: float, limits: dict[str, int], scale: float, normalization: str) -> None:
    for seed in range(2):
        how = settings(beam_size=N_WORDS ** (max(CAPS) - 1), n_best=4, length_penalty=alpha, **limits)
        how = how.but({"length_normalization": normalization})
        model = TableModel(seed, N_SPECIAL + N_WORDS, scale)
        found = run_search(model, CAPS, how, n_places=2)
        for sentence, cap in enumerate(CAPS):
            expected = exhaustive(model, sentence, cap, how)[:4]
            ours = found[sentence][: len(expected)]
            assert [(h.tokens, h.capped) for h in ours] == [(h.tokens, h.capped) for h in expected], (seed, sentence)
            assert [h.score for h in ours] == pytest.approx([h.score for h in expected], abs=1e-3)


@pytest.mark.parametrize("limits", [{}, {"min_length": 3}, {"no_repeat_ngram": 1}, {"no_repeat_ngram": 2}])
@pytest.mark.parametrize("vocab_size", [6, 50, 300])
def test_beam_of_one_is_greedy(limits: dict[str, int], vocab_size: int) -> None:
    caps = [1, 2, 9, 12, 20]
    for seed in range(3):
        how = settings(beam_size=1, **limits)
        model = TableModel(seed, vocab_size, 1.5)
        found = run_search(model, caps, how, n_places=2)
        for sentence, cap in enumerate(caps):
            assert found[sentence][0].tokens == argmax_loop(model, sentence, cap, how), (seed, sentence)
            assert len(found[sentence]) == 1
