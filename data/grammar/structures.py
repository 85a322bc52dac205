"""The register of sentence structures and the shape of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .draw import Draw
from .english import capitalized


class Triple(NamedTuple):
    """One sentence in three languages."""

    en: str
    de: str
    zh: str


Structure = Callable[[Draw], Triple]
REGISTER: dict[str, Structure] = {}


def structure(function: Structure) -> Structure:
    """Register a function under its name, which becomes the origin of its sentences."""
    if function.__name__ in REGISTER:
        raise ValueError(f"two structures are called {function.__name__}")
    REGISTER[function.__name__] = function
    return function


def statement(en: str, de: str, zh: str) -> Triple:
    return Triple(capitalized(en) + ".", capitalized(de) + ".", zh + "。")


def question(en: str, de: str, zh: str) -> Triple:
    return Triple(capitalized(en) + "?", capitalized(de) + "?", zh + "？")


def command(en: str, de: str, zh: str) -> Triple:
    return Triple(capitalized(en) + "!", capitalized(de) + "!", zh + "！")
