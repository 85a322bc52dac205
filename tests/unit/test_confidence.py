"""What is known of a translation, and what a regression makes of it."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from transformer_cli.decoding.confidence import FEATURES, Circumstances, Confidence, features
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Hypothesis, Translation
from transformer_cli.errors import DataError

HOW = DecodeSettings()


def translation(
    values: list[float] | None, ends: list[float] | None, *, source: str = "two dogs", text: str = "zwei Hunde"
) -> Translation:
    return Translation(source, [Hypothesis(text, -1.5, ["x"], False, values, ends)], 1)


def confidence(**changes: object) -> Confidence:
    numbers = [dict(zip(FEATURES, map(float, row), strict=True)) for row in ([1, 2, 3, 4, 5], [0] * 5, [1, 2, 1, 1, 4])]
    made = Confidence("good", "split dev", 40, 20, Circumstances.of("abc", "de", HOW), 0.5, *numbers)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_features_by_hand() -> None:
    found = features(translation([-1.0, -0.2], [-0.3]))
    assert found == pytest.approx([-0.5, -1.0, -1.5, math.log(3), math.log(11 / 9)])
    assert len(found or ()) == len(FEATURES) <= 6


@pytest.mark.parametrize(
    "unknown",
    [
        translation(None, None),
        translation([], []),  # a blank line
        translation([-1.0, -math.inf], [-1.0]),
        translation([math.nan], [-1.0]),
    ],
)
def test_nothing_is_known_of(unknown: Translation) -> None:
    assert features(unknown) is None
    assert confidence().probability(unknown) is None


def test_an_empty_translation_has_features() -> None:
    assert features(translation([], [-0.5], text="")) is not None


def test_probability_is_the_formula() -> None:
    known = translation([-1.0, -0.2], [-0.3])
    logit = 0.5 + 1 * -0.5 + 2 * -1.0 / 2 + 3 * -1.5 + 4 * math.log(3) + 5 * math.log(11 / 9) / 4
    assert confidence().probability(known) == pytest.approx(1 / (1 + math.exp(-logit)))
    assert confidence(intercept=1e6).probability(known) == 1.0
    assert confidence(intercept=-1e6).probability(known) == 0.0


def test_json_there_and_back() -> None:
    made = confidence()
    again = Confidence.from_json(made.to_json())
    assert again == made
    assert again.fingerprint == made.fingerprint != confidence(intercept=0.25).fingerprint


def without(name: str) -> Callable[[dict], object]:
    return lambda entries: {key: value for key, value in entries.items() if key != name}


def with_(**changes: object) -> Callable[[dict], object]:
    return lambda entries: entries | changes


NUMBERS = dict.fromkeys(FEATURES, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entries: [], "the document is not an object"),
        (without("means"), "means is missing"),
        (without("intercept"), "intercept is missing"),
        (with_(fitted_for=None), "fitted_for is not an object"),
        (with_(fitted_for={"weights": "", "to": "de"}), "fitted_for.search is missing"),
        (with_(fitted_for={"weights": "", "to": "de", "search": [["beam_size", 5]]}), "search is not an object"),
        (with_(fitted_for={"weights": "", "to": 3, "search": {}}), "fitted_for.to is not text"),
        (with_(good=3), "good is not text"),
        (with_(lines=1.5), "lines is not a whole number"),
        (with_(lines=True), "lines is not a whole number"),
        (with_(intercept="1.5"), "intercept is not a number"),
        (with_(intercept=True), "intercept is not a number"),
        (with_(intercept=10**400), "intercept is not a number"),
        (with_(intercept=10**5000), "too large a number"),
        (with_(intercept=math.nan), "a value that JSON does not know"),
        (with_(coefficients=list(FEATURES)), "coefficients is not an object"),
        (with_(coefficients=NUMBERS | {"other": 1.0}), "coefficients is not of the features"),
        (with_(means={}), "means is not of the features"),
        (with_(means=NUMBERS | {"score": None}), "means.score is not a number"),
        (with_(deviations=NUMBERS | {"score": 0}), "a deviation is not positive"),
        (with_(more=1), "more is unknown to this version"),
    ],
)
def test_what_is_no_confidence_is_refused(change: Callable[[dict], object], message: str) -> None:
    sys.set_int_max_str_digits(10_000)
    try:
        text = json.dumps(change(json.loads(confidence().to_json())))
    finally:
        sys.set_int_max_str_digits(4300)
    with pytest.raises(DataError, match=message):
        Confidence.from_json(text)


def test_odd_text_in_a_confidence_is_still_one() -> None:
    for text in ("", "{}", "[" * 10_000, "1e400", '{"good": 1, "good": 2}'):
        with pytest.raises(DataError):
            Confidence.from_json(text)
    odd = Confidence.from_json(confidence().to_json().replace('"good": "', '"good": "\\ud800'))
    assert odd.good.startswith("\ud800")
    assert odd.fingerprint != confidence().fingerprint


def test_circumstances_are_what_changes_the_best_translation() -> None:
    mine = Circumstances.of("abc", "de", HOW)
    same = HOW.but({"batch_size": 3, "batch_tokens": 50, "refill": False, "look_every": 4})
    same = same.but({"n_best": 2, "alignment": True, "seed": 9})
    assert mine.differences(Circumstances.of("abc", "de", same)) == []
    assert mine.differences(Circumstances.of("abd", "zh", HOW)) == ["weights", "to"]
    other = HOW.but({"beam_size": 2, "length_penalty": 0.5, "sampling": True})
    assert mine.differences(Circumstances.of("abc", "de", other)) == ["beam_size", "length_penalty", "sampling"]
    older = replace(mine, search={name: value for name, value in mine.search.items() if name != "top_p"})
    assert mine.differences(older) == older.differences(mine) == ["top_p"]
