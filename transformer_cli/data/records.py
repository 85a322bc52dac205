"""A record and the text of its fields: a line that is a JSON object, or a row of a table.

JSON is read as its standard (RFC 8259) has it, and only what every reader of the output understands alike: Python
would also take ``NaN``, make infinity of ``1e400`` and forget all but the last of equal names, none of which anybody
can have meant. Not here: which files and lines there are (``readers.py``).
"""

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from transformer_cli.data.pairs import Policy
from transformer_cli.errors import DataError
from transformer_cli.wording import kind_of

#: Objects and lists inside each other. Python's own limit depends on who calls; no real record comes near this one.
DEEPEST = 100

_MOST_DIGITS = 4000  # of a whole number; Python refuses more than 4,300


class _Refused(ValueError):
    """What the standard, or this reader, does not allow; carries what an error says of it."""

    def __init__(self, what: str, got: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.got, self.hint = what, got, hint


def parse_record(line: str, where: str) -> Any:
    """Return the JSON value of a line.

    Args:
        line: the text.
        where: its place, for messages.

    Raises:
        DataError: it is none, or holds what JSON does not know or leaves open: NaN, numbers beyond all bounds, a field
            twice, values that lie too deep inside each other.
    """
    try:
        value = _DECODER.decode(line)
        if _is_too_deep(value, line):
            raise RecursionError
        return value
    except _Refused as refused:
        raise DataError(refused.what, where=where, got=refused.got, hint=refused.hint) from None
    except json.JSONDecodeError as error:
        got = f"{error.msg}, at character {error.pos + 1:,} of {len(line):,}"
        hint = 'every line must be one whole object, such as {"text": "..."}'
        raise DataError("is not a JSON object", where=where, got=got, hint=hint) from None
    except RecursionError:
        hint = f"leave away what lies deeper than {DEEPEST} levels"
        raise DataError(
            "is not a JSON object that can be read: too many values inside each other", where=where, hint=hint
        ) from None


def record_text(record: Any, field: str, where: str, policy: Policy) -> str:
    """Return a field of a record, or of the dict in its field ``translation``.

    Args:
        record: what should be a dict.
        field: name of the field, or a language code inside ``translation``.
        where: place of the record, for messages.
        policy: what becomes of broken text.

    Raises:
        DataError: there is no such field, or it is not text.
    """
    if not isinstance(record, dict):
        raise DataError("is not a JSON object", where=where, got=kind_of(record))
    inner = record.get("translation")
    holder = inner if field not in record and isinstance(inner, dict) else record
    place = f"{where}:{field}"
    if field not in holder:
        raise DataError("there is no such field", where=place, got=f"fields {', '.join(map(repr, holder)) or '(none)'}")
    value = holder[field]
    if not isinstance(value, str):
        raise DataError("is not text", where=place, got=json.dumps(value, default=str)[:80])
    return policy.text(value, place)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise _Refused("has a field twice", _short(ascii(twice)), "rename or leave away one of them")
    return fields


def _whole_number(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _Refused("has too large a number", f"{len(text):,} digits", "write it as text, in quotes")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise _Refused("has too large a number", _short(text), "write it as text, in quotes")
    return value


def _no_number(name: str) -> NoReturn:
    raise _Refused("has a value that JSON does not know", name, "write null instead, or text in quotes")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_too_deep(value: Any, line: str) -> bool:
    """Say whether values lie deeper inside each other than ``DEEPEST``; few lines have the brackets for it."""
    if line.count("{") + line.count("[") <= DEEPEST:
        return False
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _values_of(outer) if isinstance(inner, (dict, list))]
    return bool(level)


def _values_of(holder: Any) -> Iterable[Any]:
    return holder.values() if isinstance(holder, dict) else holder


_DECODER = json.JSONDecoder(
    object_pairs_hook=_fields, parse_int=_whole_number, parse_float=_number, parse_constant=_no_number
)
