"""A line of the input and the text in it: the line itself, or a field of the JSON object that it spells."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_cli.data.pairs import Lenient
from transformer_cli.data.records import parse_record, record_text
from transformer_cli.errors import DataError

#: Where the text of a JSON object is looked for if nobody has said where.
FIELDS = ("source", "text")

#: Where the text stands with which its translation has to start.
PREFIX = "prefix"


@dataclass(frozen=True)
class InputLine:
    """One line to translate."""

    raw: str  # as it stands in the input
    text: str  # to be translated
    fields: Mapping[str, Any] = field(default_factory=dict)  # what the JSON object holds besides
    prefix: str | None = None  # with which its translation has to start


def plain_lines(lines: Iterable[str]) -> Iterator[InputLine]:
    """Take each line for its text."""
    return (InputLine(line, line) for line in lines)


def json_lines(
    lines: Iterable[str], wanted: str | None, place: str, reserved: Iterable[str], on_repair: Callable[[int], None]
) -> Iterator[InputLine]:
    """Read a JSON object from each line.

    Args:
        lines: the lines.
        wanted: the field with the text; None: ``source``, or ``text`` in an object without.
        place: names the input in messages.
        reserved: fields that the output gives a meaning of its own, so that an object cannot bring them along. A field
            ``source`` is welcome where it is the text.
        on_repair: called with the number of a line, from 1, whose text held NUL or half a surrogate pair.

    Raises:
        DataError: a line is no JSON object, has no such field, has a reserved one, or its prefix is no text.
    """
    policy = Lenient()
    for number, line in enumerate(lines, start=1):
        where = f"{place}:{number}"
        record = parse_record(line, where)
        name = _field(record, wanted)
        text = record_text(record, name, where, policy)
        prefix = record_text(record, PREFIX, where, policy) if _has_prefix(record, name) else None
        fields = {key: value for key, value in record.items() if (key, name) != ("source", "source")}
        _refuse_reserved(fields, reserved, where)
        if policy.repaired:
            on_repair(number)
            policy.repaired.clear()
        yield InputLine(line, text.replace("\n", " "), fields, prefix)


def _has_prefix(record: Mapping[str, Any], name: str) -> bool:
    """Say whether an object asks for a prefix: not with null, and not if the text to translate is called so."""
    return record.get(PREFIX) is not None and name != PREFIX


def _field(record: object, wanted: str | None) -> str:
    if wanted is None and isinstance(record, dict):
        return next((name for name in FIELDS if name in record), FIELDS[0])
    return FIELDS[0] if wanted is None else wanted


def _refuse_reserved(fields: Mapping[str, Any], reserved: Iterable[str], where: str) -> None:
    if clash := [name for name in reserved if name in fields]:
        raise DataError(
            "has a field that the output uses for its own",
            where=where,
            got=", ".join(clash),
            hint="rename it in the input, or write --format text or tsv, which bring no fields along",
        )
