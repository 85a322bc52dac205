"""Numbers and values in messages: ``1 line``, ``2,000 lines``; ``true``, ``none``."""

from collections.abc import Collection, Mapping


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return how many there are of a thing.

    Args:
        number: how many.
        noun: one of them.
        plural: several of them; None: with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def searched(beam_size: int) -> str:
    """Return how a search that keeps so many hypotheses is called: ``greedy``, ``beam 5``."""
    return "greedy" if beam_size == 1 else f"beam {beam_size}"


def kind_of(value: object) -> str:
    """Return what JSON and YAML, and not Python, call the type of a value: ``null``, ``text``, ``number``, ``object``.

    Args:
        value: as a reader of JSON or YAML makes it; of anything else its class is named.
    """
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return kinds.get(type(value), type(value).__name__)


def spelled(value: object) -> str:
    """Return a value as recipes and people spell it: ``true``, ``none``, ``a, b`` and not as Python does."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {spelled(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, Collection):
        return ", ".join(map(spelled, value)) or "none"
    return str(value)
