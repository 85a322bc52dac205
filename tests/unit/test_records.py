import json

import pytest

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.data.records import DEEPEST, parse_record
from transformer_cli.errors import DataError


def nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("line", "message", "got"),
    [
        ('{"a": NaN}', "a value that JSON does not know", "NaN"),
        ('{"a": [-Infinity]}', "a value that JSON does not know", "-Infinity"),
        ('{"a": 1e400}', "too large a number", "1e400"),
        ('{"a": -1e400}', "too large a number", "-1e400"),
        ('{"a": {"b": ' + "7" * 5000 + "}}", "too large a number", "5,000 digits"),
        ('{"a": ' + "7" * 5000 + ".5}", "too large a number", "7" * 77 + "..."),
        ('{"a": 1, "a": 1}', "has a field twice", "'a'"),
        ('{"a": [{"\\ud800": 1, "\\ud800": 2}]}', "has a field twice", r"'\ud800'"),
        ('{"a": }', "is not a JSON object", "at character 7 of 7"),
        ("", "is not a JSON object", "at character 1 of 0"),
        (nested(DEEPEST + 1), "too many values inside each other", ""),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "too many values inside each other", ""),
        (nested(100_000), "too many values inside each other", ""),
    ],
)
def test_what_json_does_not_know_or_leaves_open_is_refused_with_its_place(line: str, message: str, got: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        parse_record(line, "in:7")
    assert raised.value.where == "in:7"
    assert got in str(raised.value.got)
    assert len(raised.value.render()) < 300
    assert raised.value.hint


@pytest.mark.parametrize(
    "line",
    [
        nested(DEEPEST),
        json.dumps({"a": [[number] for number in range(1000)]}),
        json.dumps({"a": "[{" * 1000}),
        json.dumps("[" * 1000),
        '{"a": 1e-400, "b": -0.0, "c": 1e308, "d": {"a": 1}}',
        '{"a": ' + "7" * 4000 + "}",
    ],
)
def test_everything_else_is_read_as_python_reads_it(line: str) -> None:
    assert parse_record(line, "in:7") == json.loads(line)
    assert json.loads(json_text(parse_record(line, "in:7"))) == json.loads(line)


def test_json_text_is_json_in_utf_8_whatever_it_holds() -> None:
    value = {"a": [float("nan"), (1.5, -float("inf"))], "\ud800": "half \udc00, whole 😀", "b": None}
    found = json_text(value).encode()
    assert json.loads(found, parse_constant=pytest.fail) == {
        "a": [None, [1.5, None]],
        "\ud800": "half \udc00, whole 😀",
        "b": None,
    }
    assert "😀".encode() in found
    ends = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
    assert json_text({"a": f"x{ends}y"}).splitlines() == [json_text({"a": f"x{ends}y"})]
    assert json.loads(json_text({ends: ends})) == {ends: ends}
    assert json_text({"a": [1]}, indent=1) == '{\n "a": [\n  1\n ]\n}'
