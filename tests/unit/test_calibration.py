"""The fit against a brute-force optimum, the calibration error against numbers made by hand."""

import itertools
import math

import numpy as np
import pytest

from transformer_cli.decoding.confidence import FEATURES, Circumstances
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import DataError
from transformer_cli.evaluation.calibration import (
    calibration,
    calibration_error,
    fit_confidence,
    good_lines,
    logistic_regression,
    meaning_of_good,
)

FOR = Circumstances.of("abc", "de", DecodeSettings())


def loss(weights: np.ndarray, x: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """The definition, line by line."""
    total = penalty / 2 * sum(w * w for w in weights[1:])
    for row, value in zip(x, y, strict=True):
        p = 1 / (1 + math.exp(-(weights[0] + sum(w * v for w, v in zip(weights[1:], row, strict=True)))))
        total -= math.log(p if value else 1 - p)
    return float(total)


def brute_force(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Go to the best of all neighbours on a grid, and halve the grid."""
    best, step = np.zeros(x.shape[1] + 1), 1.0
    moves = np.array(list(itertools.product((-1, 0, 1), repeat=len(best))))
    while step > 1e-5:
        candidates = best + moves * step
        losses = [loss(candidate, x, y, penalty) for candidate in candidates]
        chosen = candidates[int(np.argmin(losses))]
        if np.array_equal(chosen, best):
            step /= 2
        best = chosen
    return best


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_the_fit_is_the_brute_force_optimum(penalty: float) -> None:
    draw = np.random.default_rng(4)
    x = draw.normal(size=(40, 2))
    y = (x @ [1.5, -0.7] + 0.4 + draw.logistic(size=40) > 0).astype(float)
    assert logistic_regression(x, y, penalty) == pytest.approx(brute_force(x, y, penalty), abs=1e-4)


def test_the_fit_finds_what_made_the_data() -> None:
    draw = np.random.default_rng(5)
    x = draw.normal(size=(20_000, 3))
    y = (x @ [1.0, -2.0, 0.0] + 0.5 + draw.logistic(size=20_000) > 0).astype(float)
    assert logistic_regression(x, y) == pytest.approx([0.5, 1.0, -2.0, 0.0], abs=0.06)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_lines_that_part_perfectly_keep_finite_coefficients(scale: float) -> None:
    x = np.array([[-1.0], [-0.5], [0.5], [1.0]]) * scale
    y = np.array([0.0, 0.0, 1.0, 1.0])
    found = logistic_regression(x, y, penalty=1e-3)
    design = np.column_stack([np.ones(4), x])
    gradient = design.T @ (1 / (1 + np.exp(-design @ found)) - y) + [0, 1e-3 * found[1]]
    assert np.abs(gradient).max() < 1e-6
    assert 0 < found[1] < 20


def test_whole_newton_steps_would_run_away() -> None:
    x = np.array([[0, -1, 4.5], [0, -0.5, -0.7], [1.8, -1.8, 1], [0.6, 4.5, -2], [-0.9, 0.6, 0.8], [-0.3, -0.5, 2]])
    x = np.vstack([x, [1.5, 43.9, -0.15]])
    y = np.array([0.0, 0, 1, 1, 0, 0, 1])
    found, design = logistic_regression(x, y, penalty=1e-4), np.column_stack([np.ones(7), x])
    gradient = design.T @ (0.5 + 0.5 * np.tanh(design @ found / 2) - y) + 1e-4 * np.array([0, *found[1:]])
    assert np.abs(gradient).max() < 1e-6


def test_a_feature_that_never_changes_and_copies_of_one_are_no_trouble() -> None:
    draw = np.random.default_rng(6)
    values = np.repeat(draw.normal(size=(60, 1)), len(FEATURES), axis=1)
    values[:, 1] = 7.0
    good = (values[:, 0] + draw.logistic(size=60) > 0).tolist()
    found = fit_confidence(values.tolist(), good, FOR, "split dev")
    assert found.coefficients[FEATURES[1]] == pytest.approx(0.0, abs=1e-9)
    others = [found.coefficients[name] for name in FEATURES if name != FEATURES[1]]
    assert others == pytest.approx([others[0]] * len(others))
    assert (found.lines, found.good_lines, found.fitted_for) == (60, sum(good), FOR)
    assert found.means[FEATURES[1]] == 7.0


@pytest.mark.parametrize(("n_good", "n_bad"), [(0, 50), (50, 0), (9, 50), (50, 9), (0, 0)])
def test_one_sided_lines_are_refused(n_good: int, n_bad: int) -> None:
    values = [[0.0] * len(FEATURES)] * (n_good + n_bad)
    with pytest.raises(DataError, match=f"{n_good} of {n_good + n_bad} lines with"):
        fit_confidence(values, [True] * n_good + [False] * n_bad, FOR, "split dev")


def test_ten_of_either_kind_are_enough() -> None:
    values = [[float(good)] * len(FEATURES) for good in [1] * 10 + [0] * 10]
    found = fit_confidence(values, [True] * 10 + [False] * 10, FOR, "split dev")
    assert all(math.isfinite(value) and value > 0 for value in found.coefficients.values())


def test_calibration_error_by_hand() -> None:
    ece, bins = calibration_error([0.05, 0.05, 0.92, 0.98, 1.0, 0.5], [False, True, True, True, False, True])
    #  [0, 0.1): 0.05 said, 0.5 true; [0.5, 0.6): 0.5 said, 1 true; [0.9, 1]: 0.9667 said, 0.6667 true
    assert ece == pytest.approx((2 * 0.45 + 1 * 0.5 + 3 * 0.3) / 6)
    assert [(b.above, b.lines) for b in bins] == [(0.0, 2), (0.5, 1), (0.9, 3)]
    assert [b.good for b in bins] == pytest.approx([0.5, 1.0, 2 / 3])
    assert [b.confidence for b in bins] == pytest.approx([0.05, 0.5, 2.9 / 3])


def test_calibration_error_at_its_ends() -> None:
    assert calibration_error([1.0, 0.0], [True, False])[0] == 0.0
    assert calibration_error([1.0, 0.0], [False, True])[0] == 1.0
    assert calibration_error([0.25] * 4, [True, False, False, False])[0] == 0.0
    assert calibration_error([0.2, 0.6], [True, True])[1][1].above == 0.6  # a bin holds its lower end
    assert calibration_error([], []) == (0.0, [])


def test_good_lines_are_those_of_sentence_chrf() -> None:
    reference = "zwei Hunde schlafen."
    assert good_lines([reference, "drei Katzen", ""], [[reference] * 3]) == [True, False, False]
    assert good_lines(["drei Katzen"], [[reference], ["drei Katzen"]]) == [True]  # any of the references
    assert good_lines(["ZWEI HUNDE SCHLAFEN."], [[reference]]) == [False]
    assert meaning_of_good().startswith("sentence chrF2 >= 60 (")
    assert "version:" in meaning_of_good()


def test_a_calibration_says_what_it_is_of() -> None:
    values = [[float(good)] * len(FEATURES) for good in [1] * 10 + [0] * 10]
    fitted = fit_confidence(values, [True] * 10 + [False] * 10, FOR, "split dev")
    found = calibration(fitted, [0.25, 0.25, 0.75, 0.75], [False, False, True, True])
    assert (found.good, found.fitted_on, found.lines, found.good_share) == (meaning_of_good(), "split dev", 4, 0.5)
    assert found.ece == pytest.approx(0.25)
    assert len(found.bins) == 2
