"""German inflection: articles, adjective endings, nouns, verbs, contractions.

Genders are `m`, `f`, `n` and, for every plural, `p`; cases are `nom`, `acc`, `dat`.
The genitive is not used by the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

CASES = ("nom", "acc", "dat")
GENDER_OF_ARTICLE = {"der": "m", "die": "f", "das": "n"}

DEFINITE = {
    "m": {"nom": "der", "acc": "den", "dat": "dem"},
    "f": {"nom": "die", "acc": "die", "dat": "der"},
    "n": {"nom": "das", "acc": "das", "dat": "dem"},
    "p": {"nom": "die", "acc": "die", "dat": "den"},
}
RELATIVE = {**DEFINITE, "p": {"nom": "die", "acc": "die", "dat": "denen"}}
# Endings of ein, kein, mein … and of dieser, jeder, welcher.
EIN_ENDINGS = {
    "m": {"nom": "", "acc": "en", "dat": "em"},
    "f": {"nom": "e", "acc": "e", "dat": "er"},
    "n": {"nom": "", "acc": "", "dat": "em"},
    "p": {"nom": "e", "acc": "e", "dat": "en"},
}
DIES_ENDINGS = {
    "m": {"nom": "er", "acc": "en", "dat": "em"},
    "f": {"nom": "e", "acc": "e", "dat": "er"},
    "n": {"nom": "es", "acc": "es", "dat": "em"},
    "p": {"nom": "e", "acc": "e", "dat": "en"},
}
WEAK = {
    "m": {"nom": "e", "acc": "en", "dat": "en"},
    "f": {"nom": "e", "acc": "e", "dat": "en"},
    "n": {"nom": "e", "acc": "e", "dat": "en"},
    "p": {"nom": "en", "acc": "en", "dat": "en"},
}
MIXED = {
    "m": {"nom": "er", "acc": "en", "dat": "en"},
    "f": {"nom": "e", "acc": "e", "dat": "en"},
    "n": {"nom": "es", "acc": "es", "dat": "en"},
    "p": {"nom": "en", "acc": "en", "dat": "en"},
}
STRONG = DIES_ENDINGS

CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "zu dem": "zum", "zu der": "zur", "von dem": "vom", "bei dem": "beim",
}  # fmt: skip

PERSONAL = {
    "1sg": {"nom": "ich", "acc": "mich", "dat": "mir"},
    "2sg": {"nom": "du", "acc": "dich", "dat": "dir"},
    "3sg m": {"nom": "er", "acc": "ihn", "dat": "ihm"},
    "3sg f": {"nom": "sie", "acc": "sie", "dat": "ihr"},
    "3sg n": {"nom": "es", "acc": "es", "dat": "ihm"},
    "1pl": {"nom": "wir", "acc": "uns", "dat": "uns"},
    "3pl": {"nom": "sie", "acc": "sie", "dat": "ihnen"},
}
REFLEXIVE = {"1sg": "mich", "2sg": "dich", "3sg": "sich", "1pl": "uns", "3pl": "sich"}

IRREGULAR = {
    "sein": "bin bist ist sind sind", "haben": "habe hast hat haben haben",
    "werden": "werde wirst wird werden werden", "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen", "dürfen": "darf darfst darf dürfen dürfen",
    "wollen": "will willst will wollen wollen", "sollten": "sollte solltest sollte sollten sollten",
    "möchten": "möchte möchtest möchte möchten möchten", "mögen": "mag magst mag mögen mögen",
    "wissen": "weiß weißt weiß wissen wissen",
    "war": "war warst war waren waren", "hatte": "hatte hattest hatte hatten hatten",
    "konnte": "konnte konntest konnte konnten konnten", "musste": "musste musstest musste mussten mussten",
    "wollte": "wollte wolltest wollte wollten wollten", "wurde": "wurde wurdest wurde wurden wurden",
    "durfte": "durfte durftest durfte durften durften", "würde": "würde würdest würde würden würden",
    "hätte": "hätte hättest hätte hätten hätten", "wäre": "wäre wärst wäre wären wären",
    "sollen": "soll sollst soll sollen sollen",
    "könnte": "könnte könntest könnte könnten könnten",
}  # fmt: skip
AGREEMENTS = ("1sg", "2sg", "3sg", "1pl", "3pl")


def adjective_ending(determiner: str, gender: str, case: str) -> str:
    """Return the ending after `der`, `ein` or no word (`none`)."""
    table = {"der": WEAK, "ein": MIXED, "none": STRONG}[determiner]
    return table[gender][case]


def inflected(stem: str, ending: str) -> str:
    """Add an adjective ending: teuer → teures, dunkel → dunkles, rosa stays."""
    if ending and stem.endswith(("euer", "auer", "kel")):
        stem = stem[:-2] + stem[-1]
    if ending and stem == "hoch":
        stem = "hoh"
    if stem.endswith("e") and ending:
        stem = stem[:-1]
    return stem + ending


def dative_plural(plural: str) -> str:
    return plural if plural.endswith(("n", "s")) else plural + "n"


def contracted(preposition: str, phrase: str) -> str:
    """Join preposition and phrase: zu + dem Arzt → zum Arzt."""
    first, _, rest = phrase.partition(" ")
    short = CONTRACTIONS.get(f"{preposition} {first}")
    return f"{short} {rest}" if short and rest else f"{preposition} {phrase}"


def auxiliary(name: str, agreement: str) -> str:
    return IRREGULAR[name].split()[AGREEMENTS.index(agreement)]


@dataclass(frozen=True)
class GermanVerb:
    """The parts a sentence may need; a `prefix` ending in a space is a separate word."""

    infinitive: str
    third: str
    participle: str
    prefix: str = ""
    perfect: str = "haben"

    @property
    def stem(self) -> str:
        return self.infinitive[:-2] if self.infinitive.endswith("en") else self.infinitive[:-1]

    def present(self, agreement: str) -> str:
        """Return the finite verb without its prefix."""
        if self.infinitive in IRREGULAR:
            return auxiliary(self.infinitive, agreement)
        if agreement in ("1pl", "3pl"):
            return self.infinitive
        if agreement == "3sg":
            return self.third
        return self._first() if agreement == "1sg" else self._second()

    def _first(self) -> str:
        stem = self.stem
        return stem[:-2] + "le" if stem.endswith("el") else stem + "e"

    def _second(self) -> str:
        base = self.third[:-1]
        return base + ("t" if base.endswith(("s", "ß", "z", "x")) else "st")

    def imperative(self) -> str:
        """Return the command to a du: lies, warte, kauf, sammle."""
        stem, base = self.stem, self.third[:-1]
        if "e" in stem and "i" in base and "i" not in stem:
            return base
        if stem.endswith(("t", "d", "ffn", "chn", "er")):
            return stem + "e"
        return stem[:-2] + "le" if stem.endswith("el") else stem

    @property
    def full_infinitive(self) -> str:
        return self.prefix + self.infinitive

    @property
    def zu_infinitive(self) -> str:
        if not self.prefix:
            return f"zu {self.infinitive}"
        return (
            f"{self.prefix}zu {self.infinitive}" if self.prefix.endswith(" ") else f"{self.prefix}zu{self.infinitive}"
        )


def verb(spec: str) -> GermanVerb:
    """Read `ein|laden, lädt, eingeladen` or `gehen, geht, ist gegangen`."""
    infinitive, third, participle = (part.strip() for part in spec.split(","))
    prefix, _, base = infinitive.rpartition("|")
    perfect = "sein" if participle.startswith("ist ") else "haben"
    return GermanVerb(base, third, participle.removeprefix("ist "), prefix, perfect)
