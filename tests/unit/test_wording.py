"""Values in messages, as people and recipes spell them."""

from pathlib import Path

import pytest

from transformer_cli.errors import UserError
from transformer_cli.wording import kind_of, spelled


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (None, "none"),
        (0.5, "0.5"),
        ("None of it", "None of it"),  # somebody's text
        (Path("runs/a"), "runs/a"),
        (["a", None, 3], "a, none, 3"),
        ((), "none"),
        ({"window": 2, "global": [True]}, "window 2, global true"),
    ],
)
def test_no_value_is_spelled_as_python_does(value: object, text: str) -> None:
    assert spelled(value) == text
    error = UserError("is not valid", got=value, expected=value)
    aspects = [] if value is None else [f"got: {text}", f"expected: {text}"]
    assert [line.strip() for line in str(error).splitlines()[1:]] == aspects


def test_types_are_called_what_json_calls_them() -> None:
    values = {"null": None, "true or false": True, "number": 1, "text": "a", "list": [1], "object": {"a": 1}}
    assert {kind_of(value): value for value in values.values()} == values
    assert kind_of(1.5) == "number"
