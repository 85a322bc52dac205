"""The text of one field of a record: a JSON object or a row of a table."""

import json
from typing import Any

from transformer_cli.data.pairs import Policy
from transformer_cli.errors import DataError


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
        raise DataError("is not a JSON object", where=where, got=type(record).__name__)
    inner = record.get("translation")
    holder = inner if field not in record and isinstance(inner, dict) else record
    place = f"{where}:{field}"
    if field not in holder:
        raise DataError("there is no such field", where=place, got=f"fields {', '.join(map(repr, holder)) or '(none)'}")
    value = holder[field]
    if not isinstance(value, str):
        raise DataError("is not text", where=place, got=json.dumps(value, default=str)[:80])
    return policy.text(value, place)
