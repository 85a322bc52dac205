"""Numbers and values in messages: ``1 line``, ``2,000 lines``; ``true``, ``none``; numbers as users type them."""

import unicodedata
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


def whole_number(text: str, least: int, most: int) -> int | None:
    """Return the number that a text is, in the digits 0 to 9; None: it is none, or not from ``least`` to ``most``.

    Args:
        text: of any length; one that is longer than ``most`` is not read, for Python refuses thousands of digits.
        least: the smallest number that is meant, at least 0.
        most: the largest.
    """
    if not (text.isascii() and text.isdecimal()) or len(text.lstrip("0")) > len(str(most)):
        return None
    number = int(text.lstrip("0") or 0)
    return number if least <= number <= most else None


def numbers(*, whole: bool, least: float | None = None, most: float | None = None) -> str:
    """Return which numbers are meant: ``a whole number from 1 to 1000``, ``a number of at least 0``."""
    kind = "a whole number" if whole else "a number"
    if least is None:
        return kind
    return f"{kind} of at least {least}" if most is None else f"{kind} from {least} to {most}"


def shortened(text: str, most: int = 80) -> str:
    """Return a text that has at most so many characters, or its beginning and how many it has."""
    return text if len(text) <= most else f"{text[: most - 20]}... ({counted(len(text), 'character')})"


def printable(text: str) -> str:
    """Return a text without what would command a terminal or turn the line around: such characters as escapes.

    Letters of all scripts, spaces of all widths and line ends stay.
    """
    return "".join(
        one if one == "\n" or one.isprintable() or unicodedata.category(one) == "Zs" else _escape(one) for one in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


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
