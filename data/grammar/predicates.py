"""Clauses with `to be`, and fixed ones such as the weather, with the word orders of `Clause`."""

from __future__ import annotations

from dataclasses import dataclass

from . import english, german
from .lexicon import Adverb
from .nominals import Nominal


@dataclass(frozen=True)
class Predicate:
    """Somebody or something is, or was, so: `en`, `de`, `zh` are what is said of the subject.

    Attributes:
        zh: With its adverb (很累); `zh_negated` is the form for a denial (不累).
    """

    subject: Nominal
    en_words: str
    de_words: str
    zh_words: str
    zh_negated: str = ""
    past: bool = False
    negated: bool = False
    time: Adverb | None = None

    def _english_be(self) -> str:
        forms = english.BE_PAST if self.past else english.BE_PRESENT
        return english.joined(forms[self.subject.agreement], "not" if self.negated else "")

    def en(self) -> str:
        return english.joined(self.subject.en, self._english_be(), self.en_words, self.time.en if self.time else "")

    def en_question(self) -> str:
        return english.joined(self._english_be(), self.subject.en, self.en_words, self.time.en if self.time else "")

    def _german_finite(self) -> str:
        return german.auxiliary("war" if self.past else "sein", self.subject.agreement)

    def _german_rest(self) -> str:
        return english.joined(self.time.de if self.time else "", "nicht" if self.negated else "", self.de_words)

    def de(self, front: str = "") -> str:
        finite, subject = self._german_finite(), self.subject.de["nom"]
        head = (front, finite, subject) if front else (subject, finite)
        return english.joined(*head, self._german_rest())

    def de_question(self) -> str:
        return english.joined(self._german_finite(), self.subject.de["nom"], self._german_rest())

    def de_subordinate(self, connector: str = "") -> str:
        return english.joined(connector, self.subject.de["nom"], self._german_rest(), self._german_finite())

    def zh(self) -> str:
        return self.subject.zh + self.zh_predicate()

    def zh_predicate(self) -> str:
        return (self.time.zh if self.time else "") + (self.zh_negated if self.negated else self.zh_words)


@dataclass(frozen=True)
class Saying:
    """A clause that is always the same, with its German main and subordinate order."""

    en: str
    de: str
    de_subordinate: str
    zh: str

    @property
    def lemma(self) -> str:
        return self.en


def sayings(table: str) -> list[Saying]:
    """Read lines `it is raining | es regnet | es regnet | 外面在下雨`."""
    return [Saying(*(part.strip() for part in line.split("|"))) for line in table.strip().splitlines()]


# What the weather does, present and past.
WEATHER = sayings("""
it is raining | es regnet | es regnet | 外面在下雨
it is snowing | es schneit | es schneit | 外面在下雪
it is very cold | es ist sehr kalt | es sehr kalt ist | 天气很冷
it is very hot | es ist sehr heiß | es sehr heiß ist | 天气很热
it is very windy | es ist sehr windig | es sehr windig ist | 外面风很大
it is already dark | es ist schon dunkel | es schon dunkel ist | 天已经黑了
it is still early | es ist noch früh | es noch früh ist | 时间还早
""")
WEATHER_PAST = sayings("""
it was raining | es hat geregnet | es geregnet hat | 外面在下雨
it was snowing | es hat geschneit | es geschneit hat | 外面在下雪
it was very cold | es war sehr kalt | es sehr kalt war | 天气很冷
it was very hot | es war sehr heiß | es sehr heiß war | 天气很热
it was very windy | es war sehr windig | es sehr windig war | 外面风很大
it was already dark | es war schon dunkel | es schon dunkel war | 天已经黑了
it was very late | es war sehr spät | es sehr spät war | 已经很晚了
""")


def mood(subject: Nominal, adjective: object, past: bool = False, **features: object) -> Predicate:
    """Say how somebody feels: very tired, sehr müde, 很累."""
    return Predicate(
        subject,
        f"very {adjective.en}",
        f"sehr {adjective.de}",
        f"很{adjective.zh}",
        f"不{adjective.zh}",
        past,
        **features,
    )
