"""Fitting confidences to translations whose references are known, and judging them: logistic regression and ECE.

What a regression is made of and how it is used is in ``decoding/confidence.py``; files are the command's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding.confidence import FEATURES, Circumstances, Confidence
from transformer_cli.errors import DataError
from transformer_cli.wording import counted

GOOD = 60.0  # sentence chrF2 from which on a translation is good
N_BINS = 10
_LEAST = 10  # lines of either kind
_PENALTY = 1.0
_MOST_STEPS = 100


@dataclass(frozen=True)
class Bin:
    """The lines whose confidence lies in one tenth of [0, 1]."""

    above: float
    lines: int
    confidence: float  # mean
    good: float  # share


@dataclass(frozen=True)
class Calibration:
    """How far confidences are from what became true."""

    good: str  # what a good translation is
    fitted_on: str  # the text
    ece: float  # expected calibration error, from 0 to 1
    lines: int
    good_share: float
    bins: list[Bin]  # without empty ones


def good_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[bool]:
    """Return for each hypothesis whether its chrF2 against its references is at least ``GOOD``."""
    metric = CHRF()
    lines = zip(hypotheses, *references, strict=True)
    return [float(metric.sentence_score(hypothesis, wanted).score) >= GOOD for hypothesis, *wanted in lines]


def meaning_of_good() -> str:
    """Return what a good translation is, in words, with the metric's signature."""
    metric = CHRF()
    metric.sentence_score("a", ["a"])  # the signature knows the number of references only then
    signature = metric.get_signature().format().replace("nrefs:1|", "")
    return f"sentence chrF2 >= {GOOD:g} ({signature})"


def fit_confidence(
    values: Sequence[Sequence[float]], good: Sequence[bool], fitted_for: Circumstances, fitted_on: str
) -> Confidence:
    """Fit a logistic regression on standardised features.

    The penalty, half the square of each coefficient, keeps them finite where the features part good lines from others
    perfectly, and shares the weight among features that say the same.

    Args:
        values: the features of each line.
        good: whether its translation is good.
        fitted_for: model and search that translated.
        fitted_on: names the lines.

    Raises:
        DataError: there are too few lines that are good, or too few that are not.
    """
    n_good = sum(good)
    if min(n_good, len(good) - n_good) < _LEAST:
        raise DataError(
            "there is too little to learn confidence from",
            where=fitted_on,
            got=f"{n_good} of {counted(len(good), 'line')} with {meaning_of_good()}",
            expected=f"at least {_LEAST} with it and {_LEAST} without",
            hint="give more lines with --src and --ref, or train longer",
        )
    x = np.array(values, dtype=np.float64)
    means, deviations = x.mean(axis=0), x.std(axis=0)
    deviations[deviations < 1e-12] = 1.0  # what never changes says nothing
    weights = logistic_regression((x - means) / deviations, np.array(good, dtype=np.float64))
    by_name = [dict(zip(FEATURES, of.tolist(), strict=True)) for of in (weights[1:], means, deviations)]
    return Confidence(meaning_of_good(), fitted_on, len(good), n_good, fitted_for, float(weights[0]), *by_name)


def logistic_regression(
    x: NDArray[np.float64], y: NDArray[np.float64], penalty: float = _PENALTY
) -> NDArray[np.float64]:
    """Return intercept and coefficients that minimise -log P(y | x) + penalty / 2 · |coefficients|².

    Newton's method, that is iteratively reweighted least squares (Hastie et al. 2009, section 4.4.1), with halved steps
    where a whole one would overshoot. The function is strictly convex if y holds both values.

    Args:
        x: features ``[n, d]``.
        y: 0 or 1 ``[n]``.
        penalty: above 0.

    Returns:
        ``[1 + d]``, the intercept first, which is not penalised.
    """
    design = np.column_stack([np.ones(len(x)), x])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 0.0  # the share of good lines is not doubted

    def loss(weights: NDArray[np.float64]) -> float:
        logits = design @ weights
        return float((np.logaddexp(0.0, logits) - y * logits).sum() + (ridge * weights**2).sum() / 2)

    weights = np.zeros(design.shape[1])
    for _ in range(_MOST_STEPS):
        p = 0.5 + 0.5 * np.tanh(design @ weights / 2)
        gradient = design.T @ (p - y) + ridge * weights
        hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        before = loss(weights)
        while np.abs(step).max() > 1e-12 and not loss(weights - step) <= before:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return weights


def calibration(confidence: Confidence, probabilities: Sequence[float], good: Sequence[bool]) -> Calibration:
    """Compare what was said with what became true, by the expected calibration error."""
    ece, bins = calibration_error(probabilities, good)
    return Calibration(confidence.good, confidence.fitted_on, ece, len(good), sum(good) / max(1, len(good)), bins)


def calibration_error(probabilities: Sequence[float], good: Sequence[bool]) -> tuple[float, list[Bin]]:
    """Return the expected calibration error of ten bins of equal width, and the bins that are not empty.

    ECE = Σ_b |b| / n · |share of good lines in b - mean confidence in b| (Naeini et al. 2015; Guo et al. 2017, eq. 3).
    A bin holds its lower end; the last one holds 1 too.
    """
    p, y = np.array(probabilities, dtype=np.float64), np.array(good, dtype=np.float64)
    numbers = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    bins = [
        Bin(float(number / N_BINS), int(chosen.sum()), float(p[chosen].mean()), float(y[chosen].mean()))
        for number in np.unique(numbers)
        for chosen in [numbers == number]
    ]
    return sum(b.lines * abs(b.good - b.confidence) for b in bins) / max(1, len(p)), bins
