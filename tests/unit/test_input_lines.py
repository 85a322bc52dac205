import json

import pytest

from transformer_cli.commands.files.input_lines import InputLine, json_lines, plain_lines
from transformer_cli.errors import DataError


def read(*objects: object, wanted: str | None = None, reserved: tuple[str, ...] = ()) -> list[InputLine]:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in objects]
    return list(json_lines(lines, wanted, "in.jsonl", reserved, lambda number: None))


def test_a_plain_line_is_its_own_text() -> None:
    assert list(plain_lines(["a", '{"text": "b"}'])) == [
        InputLine("a", "a"),
        InputLine('{"text": "b"}', '{"text": "b"}'),
    ]


@pytest.mark.parametrize(
    ("record", "wanted", "text", "fields"),
    [
        ({"source": "a", "id": 7}, None, "a", {"id": 7}),
        ({"text": "a", "id": None}, None, "a", {"text": "a", "id": None}),
        ({"source": "a", "text": "b"}, None, "a", {"text": "b"}),
        ({"source": "a", "text": "b"}, "text", "b", {"source": "a", "text": "b"}),
        ({"translation": {"en": "a"}}, "en", "a", {"translation": {"en": "a"}}),
        ({"source": ""}, None, "", {}),
        ({"source": "a\nb"}, None, "a b", {}),
    ],
)
def test_where_the_text_is(record: dict, wanted: str | None, text: str, fields: dict) -> None:
    assert read(record, wanted=wanted) == [InputLine(json.dumps(record), text, fields)]


@pytest.mark.parametrize(
    ("line", "wanted", "message"),
    [
        ("not JSON", None, "in.jsonl:2: is not a JSON object"),
        ("", None, "in.jsonl:2: is not a JSON object"),
        ("[" * 100_000, None, "in.jsonl:2: is not a JSON object"),
        ('["a"]', None, "in.jsonl:2: is not a JSON object"),
        ('"a"', None, "in.jsonl:2: is not a JSON object"),
        ("{}", None, "in.jsonl:2:source: there is no such field"),
        ('{"source": "a"}', "question", "in.jsonl:2:question: there is no such field"),
        ('{"source": "a"}', "", "in.jsonl:2:: there is no such field"),
        ('{"source": null, "text": "a"}', None, "in.jsonl:2:source: is not text"),
        ('{"source": 5}', None, "in.jsonl:2:source: is not text"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_after_those_before_it(line: str, wanted: str | None, message: str) -> None:
    lines = json_lines(['{"source": "a", "question": "b", "": "c"}', line], wanted, "in.jsonl", (), lambda number: None)
    assert next(lines).text in "abc"
    with pytest.raises(DataError) as raised:
        next(lines)
    assert str(raised.value).startswith(message)


def test_reserved_fields_are_refused_where_they_are_not_the_text() -> None:
    reserved = ("source", "score")
    assert read({"source": "a"}, reserved=reserved)
    assert read({"source": "a", "score": 1})
    for record, wanted in (({"source": "a", "score": 1}, None), ({"source": "a", "text": "b"}, "text")):
        with pytest.raises(DataError, match="the output uses for its own"):
            read(record, wanted=wanted, reserved=reserved)


def test_broken_characters_are_mended_and_their_lines_named() -> None:
    told: list[int] = []
    lines = ['{"text": "a"}', '{"text": "\\u0000b"}', '{"text": "\\ud800c"}', '{"text": "\\ud83d\\ude00"}']
    found = [line.text for line in json_lines(lines, None, "-", (), told.append)]
    assert found == ["a", "\ufffdb", "\ufffdc", "\U0001f600"]
    assert told == [2, 3]


def test_a_text_that_is_called_prefix_is_no_prefix() -> None:
    (line,) = json_lines(['{"prefix": "one cat"}'], "prefix", "in", (), lambda _: None)
    assert (line.text, line.prefix) == ("one cat", None)
    (line,) = json_lines(['{"text": "one cat", "prefix": "eine"}'], None, "in", (), lambda _: None)
    assert (line.text, line.prefix) == ("one cat", "eine")
