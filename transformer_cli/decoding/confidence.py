"""How sure one may be of a translation: a probability that was fitted to translations whose references are known.

A score orders the translations of one sentence, but says nothing that could be compared between sentences. Here a
logistic regression makes of a few facts about the search P(the translation is good), where "good" is what
``evaluation/calibration.py`` says, which also fits it. The regression holds for the model and the search that it was
fitted for, and knows them. No torch and no numpy here.
"""

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_origin, get_type_hints

from transformer_cli.data.records import parse_record
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Translation
from transformer_cli.errors import DataError

# Settings that leave the best translation as it is; the seed is of no use, as samples are not the best.
_NOT_SEARCH = {"n_best", "batch_size", "batch_tokens", "refill", "look_every"}
_NOT_SEARCH |= {"alignment", "log_probs", "seed", "shortlist"}

#: From a translation and the log-probabilities of its tokens, with those of ``</s>``.
_FEATURES: dict[str, Callable[[Translation, Sequence[float]], float]] = {
    "mean_logprob": lambda translation, values: sum(values) / len(values),
    "least_logprob": lambda translation, values: min(values),
    "score": lambda translation, values: translation.hypotheses[0].score,
    "log_length": lambda translation, values: math.log(len(values)),
    "log_length_ratio": lambda translation, values: _log_size(translation.text) - _log_size(translation.source),
}
FEATURES = tuple(_FEATURES)

_KINDS = {str: "text", int: "a whole number", float: "a number", Mapping: "an object"}


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

        Args:
            text: what an editor may have been at.

        Raises:
            DataError: it is something else.
        """
        entries = parse_record(text, "confidence")
        _check_entries(entries, cls, "")
        _check_entries(entries["fitted_for"], Circumstances, "fitted_for.")
        for name in ("coefficients", "means", "deviations"):
            of_features = entries[name]
            if set(of_features) != set(FEATURES):
                got, expected = ", ".join(of_features) or "none", ", ".join(FEATURES)
                raise DataError(f"{name} is not of the features of this version", got=got, expected=expected)
            for feature, value in of_features.items():
                _check_type(f"{name}.{feature}", value, float)
        if not all(value > 0 for value in entries["deviations"].values()):
            raise DataError("a deviation is not positive", got=entries["deviations"])
        return cls(**entries | {"fitted_for": Circumstances(**entries["fitted_for"])})

    @property
    def fingerprint(self) -> str:
        """A hash of all that it says."""
        return hashlib.sha256(self.to_json().encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _check_entries(entries: Any, wanted: type, place: str) -> None:
    """Check that there are the fields of a dataclass, each of its type, and no others.

    Raises:
        DataError: one is missing, unknown or of another type.
    """
    _check_type(place.rstrip(".") or "the document", entries, Mapping)
    types = get_type_hints(wanted)
    for missing in (name for name in types if name not in entries):
        raise DataError(f"{place}{missing} is missing")
    for unknown in (name for name in entries if name not in types):
        raise DataError(f"{place}{unknown} is unknown to this version")
    for name, kind in types.items():
        _check_type(place + name, entries[name], Mapping if kind is Circumstances else get_origin(kind) or kind)


def _check_type(name: str, value: Any, kind: type) -> None:
    fits = type(value) in (int, float) if kind is float else isinstance(value, kind) and not isinstance(value, bool)
    if not fits or (kind is float and not abs(value) <= sys.float_info.max):
        raise DataError(f"{name} is not {_KINDS[kind]}", got=json.dumps(value)[:80])
