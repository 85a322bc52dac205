"""The shapes of dictionary entries, and how their tables are read.

A table is text with one entry per line and commas between the columns, so that it reads like
the vocabulary page of a textbook. The words themselves are in the `lexicon_*` modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from . import english, german
from .english import EnglishVerb
from .german import GermanVerb


@dataclass(frozen=True)
class Noun:
    """A noun with what each language must know of it.

    Attributes:
        group: The semantic group; it decides which adjectives and verbs fit.
        weak: German n-declension (den Studenten).
        de_adjective: An adjective that belongs to the German word only: older sister, ältere Schwester is
            one Chinese word, 姐姐.
        feminine: The German word for a woman, where the profession is named of her.
    """

    en: str
    en_plural: str
    de: str
    gender: str
    de_plural: str
    zh: str
    measure: str
    group: str
    weak: bool = False
    de_adjective: str = ""
    feminine: str = ""

    @property
    def lemma(self) -> str:
        return self.en


@dataclass(frozen=True)
class Adjective:
    """`zh_attribute` stands before a noun (with its 的), `zh` is the predicate."""

    en: str
    de: str
    de_comparative: str
    zh_attribute: str
    zh: str
    en_comparative: str = ""

    @property
    def lemma(self) -> str:
        return self.en

    @property
    def more(self) -> str:
        return self.en_comparative or english.comparative(self.en)

    @property
    def most(self) -> str:
        return {"better": "best", "worse": "worst"}.get(self.more) or english.superlative(self.en)

    @property
    def de_superlative(self) -> str:
        """Return the stem of the superlative: best, größt, ältest, interessantest."""
        irregular = {"besser": "best", "größer": "größt", "höher": "höchst", "näher": "nächst", "teurer": "teuerst"}
        if self.de_comparative in irregular:
            return irregular[self.de_comparative]
        stem = self.de_comparative[:-2]
        if stem.endswith("l") and self.de.endswith("el"):
            stem = self.de
        return stem + ("est" if stem.endswith(("t", "d", "s", "ß", "z", "eu", "x")) else "st")


@dataclass(frozen=True)
class Adverb:
    """A phrase that is the same in every sentence: a time, a manner, a frequency."""

    en: str
    de: str
    zh: str

    @property
    def lemma(self) -> str:
        return self.en


@dataclass(frozen=True)
class Place:
    """Where something happens (`in the park`) and, of the same noun, where one goes to."""

    noun: Noun
    en: str
    en_to: str
    de: str
    de_to: str
    zh: str
    zh_to: str

    @property
    def lemma(self) -> str:
        return self.noun.en


@dataclass(frozen=True)
class VerbEntry:
    """A verb with its frame.

    Attributes:
        zh: The verb pattern, see `chinese`.
        zh_definite: The pattern with 把 for a finished deed on a known thing, or empty.
        case: `acc` or `dat`, or preposition and case (`auf acc`), or empty without an object.
        en_preposition: The English preposition of the object, or empty.
        objects: Names of noun groups or single nouns.
        places: The group of places where one does this, or empty.
        flags: Words such as `skill`, `adult`, `state`.
    """

    en: EnglishVerb
    de: GermanVerb
    zh: str
    zh_definite: str
    case: str
    en_preposition: str
    objects: tuple[str, ...]
    places: str
    flags: frozenset[str]
    reflexive: bool

    @cached_property
    def lemma(self) -> str:
        return english.joined(self.en.base, self.en.particle, self.en_preposition)


def rows(table: str) -> Iterator[list[str]]:
    """Yield the stripped columns of every line that is not empty."""
    for line in table.strip().splitlines():
        if line.strip():
            yield [column.strip() for column in line.split(",")]


def nouns(group: str, table: str) -> dict[str, Noun]:
    """Read lines `book, books, das Buch, Bücher, 书 本` with optional marks behind."""
    found = {}
    for en, en_plural, de, de_plural, chinese, *marks in rows(table):
        article, _, word = de.partition(" ")
        zh, _, measure = chinese.partition(" ")
        options = dict(mark.split("=") for mark in marks if "=" in mark)
        found[en] = Noun(
            en, en_plural, word, german.GENDER_OF_ARTICLE[article], de_plural, zh, measure, group,
            weak="weak" in marks, de_adjective=options.get("adj", ""), feminine=options.get("f", ""),
        )  # fmt: skip
    return found


def adjectives(table: str) -> list[Adjective]:
    """Read lines `old, alt, älter, 旧, 旧` (English, stem, comparative, attribute, predicate)."""
    return [Adjective(*columns) for columns in rows(table)]


def adverbs(table: str) -> list[Adverb]:
    return [Adverb(*columns) for columns in rows(table)]
