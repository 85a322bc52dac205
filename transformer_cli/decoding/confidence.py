"""How sure one may be of a translation: a probability that was fitted to translations whose references are known.

A score orders the translations of one sentence, but says nothing that could be compared between sentences. Here a
logistic regression makes of a few facts about the search P(the translation is good), where "good" is what
``evaluation/calibration.py`` says, which also fits it. The regression holds for the model and the search that it was
fitted for, and knows them. No torch and no numpy here.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Translation

# Settings that leave the best translation as it is; the seed is of no use, as samples are not the best.
_NOT_SEARCH = {"n_best", "batch_size", "batch_tokens", "refill", "alignment", "seed", "shortlist"}

#: From a translation and the log-probabilities of its tokens, with those of ``</s>``.
_FEATURES: dict[str, Callable[[Translation, Sequence[float]], float]] = {
    "mean_logprob": lambda translation, values: sum(values) / len(values),
    "least_logprob": lambda translation, values: min(values),
    "score": lambda translation, values: translation.hypotheses[0].score,
    "log_length": lambda translation, values: math.log(len(values)),
    "log_length_ratio": lambda translation, values: _log_size(translation.text) - _log_size(translation.source),
}
FEATURES = tuple(_FEATURES)


def features(translation: Translation) -> list[float] | None:
    """Return what is known of the best translation, in the order of ``FEATURES``.

    Returns:
        None for a blank line, if the engine tells no log-probabilities, or if they are not finite.
    """
    best = translation.hypotheses[0]
    values = [*(best.token_logprobs or ()), *(best.end_logprobs or ())]
    if not values or not all(map(math.isfinite, values)):
        return None
    return [value(translation, values) for value in _FEATURES.values()]


def _log_size(text: str) -> float:
    return math.log(len(text) + 1)


@dataclass(frozen=True)
class Circumstances:
    """What a regression holds for."""

    weights: str  # hash of the model's
    to: str  # language
    search: Mapping[str, Any]

    @classmethod
    def of(cls, weights: str, to: str, settings: DecodeSettings, shortlist: str | None = None) -> "Circumstances":
        """Take what changes the best translation from the settings; a shortlist by its hash, if there is one."""
        search = {name: value for name, value in asdict(settings).items() if name not in _NOT_SEARCH}
        search |= {} if shortlist is None else {"shortlist": shortlist}
        return cls(weights, to, json.loads(json.dumps(search)))  # equal to what was stored: JSON has no tuples

    def differences(self, other: "Circumstances") -> list[str]:
        """Name what differs."""
        names = [name for name in ("weights", "to") if getattr(self, name) != getattr(other, name)]
        both = {**self.search, **other.search}
        return names + [name for name in both if self.search.get(name) != other.search.get(name)]


@dataclass(frozen=True)
class Confidence:
    """P(good) = 1 / (1 + exp(-(intercept + Σ coefficient · (feature - mean) / deviation)))."""

    good: str  # what a good translation is
    fitted_on: str  # the text
    lines: int
    good_lines: int
    fitted_for: Circumstances
    intercept: float
    coefficients: Mapping[str, float]  # by feature, as are the others
    means: Mapping[str, float]
    deviations: Mapping[str, float]

    def probability(self, translation: Translation) -> float | None:
        """Return P(the best translation is good); None where ``features`` knows nothing."""
        values = features(translation)
        if values is None:
            return None
        logit = self.intercept + sum(
            self.coefficients[name] * (value - self.means[name]) / self.deviations[name]
            for name, value in zip(FEATURES, values, strict=True)
        )
        return 0.5 + 0.5 * math.tanh(logit / 2)  # the logistic function, without overflow

    def to_json(self) -> str:
        """Return a JSON document."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Confidence":
        """Read what ``to_json`` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            entries = json.loads(text)
            entries["fitted_for"] = Circumstances(**entries["fitted_for"])
            found = cls(**{field.name: entries.pop(field.name) for field in fields(cls)})
            numbers = [float(found.intercept)]
            numbers += [float(of[name]) for of in (found.coefficients, found.means) for name in FEATURES]
            positive = [float(found.deviations[name]) for name in FEATURES]
            dict(found.fitted_for.search)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"it lacks what a confidence needs ({error})") from None
        if entries or set(found.coefficients) != set(FEATURES):
            raise ValueError("it was written by another version")
        if not all(map(math.isfinite, numbers + positive)) or min(positive) <= 0:
            raise ValueError("its numbers are out of range")
        return found

    @property
    def fingerprint(self) -> str:
        """A hash of all that it says."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]
