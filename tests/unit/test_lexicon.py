from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data import lexicon
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.lexicon import fit_lexicon


def pairs(*of_ids: tuple[Sequence[int], Sequence[int]]) -> TokenizedPairs:
    sides = [[np.array(ids, dtype=np.int32) for ids in side] for side in zip(*of_ids, strict=True)]
    return TokenizedPairs(*sides)


def table(found: lexicon.Lexicon) -> dict[tuple[int, int], float]:
    rows = zip(found.source.tolist(), found.target.tolist(), found.probability.tolist(), strict=True)
    return {(source, target): probability for source, target, probability in rows}


def plain_model_1(text: Sequence[tuple[Sequence[int], Sequence[int]]], rounds: int) -> dict[tuple[int, int], float]:
    """The algorithm as textbooks have it, a link at a time."""
    t = {(e, f): 1.0 for es, fs in text for e in es for f in fs}
    for _ in range(rounds):
        count = dict.fromkeys(t, 0.0)
        for es, fs in text:
            for f in fs:
                total = sum(t[e, f] for e in es)
                for e in es:
                    count[e, f] += t[e, f] / total
        t = {(e, f): n / sum(m for (other, _), m in count.items() if other == e) for (e, f), n in count.items()}
    return t


def test_the_house_the_book_a_book() -> None:
    """Koehn 2010, figure 4.4: das Haus, das Buch, ein Buch; after a round and two."""
    the, a, house, book, das, ein, haus, buch = 0, 1, 2, 3, 0, 1, 2, 3
    text = pairs(([das, haus], [the, house]), ([das, buch], [the, book]), ([ein, buch], [a, book]))
    first, second = table(fit_lexicon(text, 4, rounds=1)), table(fit_lexicon(text, 4, rounds=2))
    assert first[das, the] == pytest.approx(0.5)
    assert (first[das, house], first[haus, house]) == (pytest.approx(0.25), pytest.approx(0.5))
    assert second[das, the] == pytest.approx(0.6364, abs=1e-4)
    assert second[das, house] == pytest.approx(0.1818, abs=1e-4)
    assert second[haus, house] == pytest.approx(0.5714, abs=1e-4)
    best = fit_lexicon(text, 4).best(2, 5)
    assert best.tolist() == [[the, house], [a, book], [house, the], [book, a], [-1, -1]]


IDS = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 30))
def test_it_is_the_model_of_the_textbook_whatever_the_chunks(
    text: list[tuple[list[int], list[int]]], rounds: int, chunk: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "_CHUNK", chunk)
        found = table(fit_lexicon(pairs(*text), 6, rounds))
    assert found == pytest.approx(plain_model_1(text, rounds))


def test_of_equals_the_lower_id_comes_first_and_short_rows_are_filled_up() -> None:
    found = fit_lexicon(pairs(([1], [7, 3, 5]), ([2], [4])), 9)
    assert found.best(2, 3).tolist() == [[-1, -1], [3, 5], [4, -1]]
    assert found.best(5, 3).tolist() == [[-1] * 5, [3, 5, 7, -1, -1], [4, -1, -1, -1, -1]]


def test_of_much_text_an_evenly_spread_part_is_read() -> None:
    text = pairs(*(([n], [n]) for n in range(10)))
    assert fit_lexicon(text, 10, most_links=10).source.tolist() == list(range(10))
    assert fit_lexicon(text, 10, most_links=4).source.tolist() == [0, 3, 6, 9]
