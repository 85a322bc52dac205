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


@pytest.mark.parametrize("normalization", ["gnmt", "plain"])
def test_a_wider_beam_finds_more_optima_and_the_widest_all(normalization: str) -> None:
    """How often a narrow beam misses; the counts are printed (``pytest -s``)."""
    n, cap = 40, max(CAPS)
    model = TableModel(0, N_SPECIAL + N_WORDS)
    how = settings(length_penalty=1.0).but({"length_normalization": normalization})
    best = [exhaustive(model, sentence, cap, how)[0].tokens for sentence in range(n)]
    found = {}
    for width in (1, 2, 3, 5, 10, N_WORDS ** (cap - 1)):
        searched = run_search(model, [cap] * n, how.but({"beam_size": width}), n_places=n)
        found[width] = sum(ours[0].tokens == tokens for ours, tokens in zip(searched, best, strict=True))
    print(f"{normalization}: of {n} optima, by width of the beam: {found}")
    counts = list(found.values())
    assert counts == sorted(counts)
    assert counts[0] < counts[2] < counts[-1] == n
