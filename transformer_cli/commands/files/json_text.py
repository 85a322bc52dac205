"""JSON as the commands print it: what every reader takes, whatever is in it.

Python would write infinity, which JSON has no word for, half a surrogate pair, which UTF-8 has no bytes for, and raw
characters at which some readers of JSON lines end a line.
"""

import json
import math
from typing import Any

_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}  # others JSON escapes


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in readable characters; a number that is none becomes null, half a pair its escape."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_infinity(value), ensure_ascii=False, indent=indent)
    text = text.translate(_LINE_ENDS)  # they stand in strings only
    return text.encode("utf-8", "backslashreplace").decode()  # only halves have no bytes, and \ud800 is their escape


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_infinity(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinity(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
