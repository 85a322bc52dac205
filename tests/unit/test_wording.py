"""Values in messages, as people and recipes spell them."""

from pathlib import Path

import pytest

from transformer_cli.errors import UserError
from transformer_cli.wording import kind_of, numbers, printable, spelled, whole_number


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("0007", 7),
        ("1000", 1000),
        ("0" * 5000 + "1", 1),
        *((text, None) for text in ("", "0", "1001", "9" * 5000, "-1", "+1", " 1", "1_0", "1.0", "٣", "²", "x")),
    ],
)
def test_whole_numbers_have_ten_digits_and_bounds(text: str, number: int | None) -> None:
    assert whole_number(text, 1, 1000) == number


def test_zero_is_a_whole_number() -> None:
    assert (whole_number("0", 0, 5), whole_number("000", 0, 5)) == (0, 0)


def test_what_commands_a_terminal_is_escaped_and_letters_stay() -> None:
    letters = "naïve Привет 你好\u3000世界 😀\nnext line"
    assert printable(letters) == letters
    assert printable("a\x1b[31m\r\x00\u202e\x9b") == r"a\x1b[31m\r\x00\u202e\x9b"


def test_a_message_does_not_hold_a_whole_file() -> None:
    error = UserError("x" * 5000, got="y" * 5000)
    assert [len(line) < 1020 for line in str(error).splitlines()] == [True, True]
    assert str(error).count("(5,000 characters)") == 2


def test_which_numbers_are_meant():
    assert numbers(whole=True, least=1, most=1000) == "a whole number from 1 to 1000"
    assert numbers(whole=False, least=0) == "a number of at least 0"
    assert numbers(whole=True) == "a whole number"
