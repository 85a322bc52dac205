"""English word forms: verbs, auxiliaries, adjectives, articles, plurals.

Spelling rules live here; what is irregular is written out in the lexicon.
"""

from __future__ import annotations

from dataclasses import dataclass

VOWELS = "aeiou"
DOUBLING = {
    "swim",
    "run",
    "hug",
    "get",
    "sit",
    "plan",
    "shop",
    "put",
    "cut",
    "jog",
    "forget",
    "begin",
    "hot",
    "big",
    "sad",
    "thin",
    "wet",
    "chat",
}
AN_EXCEPTIONS = {"hour": "an", "honest": "an", "uniform": "a", "university": "a", "useful": "a", "european": "a"}
AGREEMENTS = ("1sg", "2sg", "3sg", "1pl", "3pl")

BE_PRESENT = {"1sg": "am", "2sg": "are", "3sg": "is", "1pl": "are", "3pl": "are"}
BE_PAST = {"1sg": "was", "2sg": "were", "3sg": "was", "1pl": "were", "3pl": "were"}


@dataclass(frozen=True)
class EnglishVerb:
    """The principal parts of a verb; `particle` stands right behind it (`turn on`)."""

    base: str
    past: str
    participle: str
    particle: str = ""

    @property
    def third(self) -> str:
        if self.base == "have":
            return "has"
        if self.base.endswith(("s", "sh", "ch", "x", "o")):
            return self.base + "es"
        if self.base.endswith("y") and self.base[-2] not in VOWELS:
            return self.base[:-1] + "ies"
        return self.base + "s"

    @property
    def gerund(self) -> str:
        if self.base in DOUBLING:
            return self.base + self.base[-1] + "ing"
        if self.base.endswith("ie"):
            return self.base[:-2] + "ying"
        if self.base.endswith("e") and not self.base.endswith("ee"):
            return self.base[:-1] + "ing"
        return self.base + "ing"


def verb(spec: str) -> EnglishVerb:
    """Read `write-wrote-written` or the regular `turn on`; a second word is the particle."""
    head, _, particle = spec.partition(" ")
    parts = head.split("-")
    if len(parts) == 1:
        past = regular_past(head)
        parts = [head, past, past]
    return EnglishVerb(parts[0], parts[1], parts[2], particle)


def regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ied"
    if base in DOUBLING:
        return base + base[-1] + "ed"
    return base + "ed"


def article(following: str) -> str:
    """Choose `a` or `an` by the sound of the next word."""
    word = following.split()[0].lower()
    if word in AN_EXCEPTIONS:
        return AN_EXCEPTIONS[word]
    return "an" if word[0] in VOWELS else "a"


def comparative(adjective: str) -> str:
    return graded(adjective, "er", "more")


def superlative(adjective: str) -> str:
    return graded(adjective, "est", "most")


def graded(adjective: str, ending: str, word: str) -> str:
    """Grade short adjectives by an ending and long ones by a word."""
    if adjective in DOUBLING:
        return adjective + adjective[-1] + ending
    if adjective.endswith("y") and len(adjective) <= 8:
        return adjective[:-1] + "i" + ending
    if len(adjective) <= 6 and adjective not in {
        "famous",
        "modern",
        "boring",
        "useful",
        "polite",
        "tired",
        "brown",
        "honest",
    }:
        return adjective + (ending[1:] if adjective.endswith("e") else ending)
    return f"{word} {adjective}"


def capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def joined(*parts: str) -> str:
    """Put single spaces between the parts that are not empty."""
    return " ".join(filter(None, parts))
