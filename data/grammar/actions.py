"""A verb with its objects, worded in three languages but not yet in a tense."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import english, german
from .english import EnglishVerb
from .german import GermanVerb
from .lexicon import Adverb, Place, VerbEntry
from .nominals import Nominal

# Order in the German middle field; a lower rank stands further left.
RANK_PRONOUN, RANK_DEFINITE_NEGATED, RANK_TIME, RANK_FREQUENCY, RANK_DATIVE, RANK_DEFINITE = 0, 1, 2, 3, 4, 5
RANK_MANNER, RANK_PLACE, RANK_INDEFINITE, RANK_NICHT, RANK_MEANS, RANK_PREPOSITIONAL = 6, 7, 8, 9, 10, 11


@dataclass(frozen=True)
class Part:
    """A complement of the German middle field, with its form under kein if it has one."""

    rank: int
    text: str
    negative: str = ""


@dataclass(frozen=True)
class Action:
    """What somebody does.

    Attributes:
        en_tail: The English words behind the verb and its particle.
        parts: The German complements.
        zh: The Chinese pattern with aspect marks; `zh_done` the one with 把 for finished deeds,
            `zh_negated` the one for deeds not done.
    """

    lemma: str
    en: EnglishVerb
    en_tail: str
    de: GermanVerb
    parts: tuple[Part, ...]
    zh: str
    zh_done: str = ""
    zh_negated: str = ""
    reflexive: bool = False
    flags: frozenset[str] = frozenset()
    places: str = ""
    object: Nominal | None = None
    entry: VerbEntry | None = None

    @property
    def takes_kein(self) -> bool:
        return any(part.negative for part in self.parts)

    @property
    def known_object(self) -> bool:
        return any(part.rank in (RANK_DEFINITE, RANK_PRONOUN) for part in self.parts)


def object_part(nominal: Nominal, case: str) -> Part:
    """Place an object: pronouns first, then the known, then the new, prepositional ones last."""
    preposition, _, case = case.rpartition(" ")
    text = nominal.de[case]
    if preposition:
        return Part(RANK_PREPOSITIONAL, german.contracted(preposition, text))
    negative = nominal.de_negative[case] if nominal.de_negative else ""
    if nominal.pronoun:
        return Part(RANK_PRONOUN, text)
    if case == "dat":
        return Part(RANK_DATIVE, text, negative)
    if nominal.noun and nominal.noun.group == "game":
        return Part(RANK_PREPOSITIONAL, text)
    return Part(RANK_DEFINITE if nominal.definite else RANK_INDEFINITE, text, negative)


def _bare(entry: VerbEntry, **extra: object) -> Action:
    return Action(
        entry.lemma, entry.en, extra.pop("en_tail", ""), entry.de, extra.pop("parts", ()),
        reflexive=entry.reflexive, flags=entry.flags, places=entry.places, entry=entry, **extra,
    )  # fmt: skip


def intransitive(entry: VerbEntry) -> Action:
    return _bare(entry, zh=entry.zh)


def transitive(entry: VerbEntry, obj: Nominal) -> Action:
    done = entry.zh_definite if obj.definite else ""
    return _bare(
        entry, en_tail=english.joined(entry.en_preposition, obj.en_object), parts=(object_part(obj, entry.case),),
        zh=entry.zh.replace("~", obj.zh), zh_done=done.replace("~", obj.zh),
        zh_negated=entry.zh.replace("~", obj.zh_negated or obj.zh), object=obj,
    )  # fmt: skip


def ditransitive(entry: VerbEntry, receiver: Nominal, thing: Nominal) -> Action:
    if entry.case.endswith(" to"):
        tail = f"{thing.en_object} to {receiver.en_object}"
    else:
        tail = f"{receiver.en_object} {thing.en_object}"
    return _bare(
        entry, en_tail=tail, parts=(object_part(receiver, "dat"), object_part(thing, "acc")),
        zh=entry.zh.replace("@", receiver.zh).replace("~", thing.zh),
        zh_negated=entry.zh.replace("@", receiver.zh).replace("~", thing.zh_negated or thing.zh), object=thing,
    )  # fmt: skip


def gapped(entry: VerbEntry) -> Action:
    """Leave the object out, for relative clauses and wh-questions: (the book) that I bought."""
    return _bare(entry, en_tail=entry.en_preposition, zh=entry.zh.replace("~", ""))


GO = (english.verb("go-went-gone"), german.verb("gehen, geht, ist gegangen"))
TRAVEL = (english.verb("travel"), german.verb("fahren, fährt, ist gefahren"))
FLY = (english.verb("fly-flew-flown"), german.verb("fliegen, fliegt, ist geflogen"))


def motion(place: Place, means: Adverb | None = None, company: Nominal | None = None) -> Action:
    """Go somewhere on foot, or travel there by some means."""
    en, de = GO[0], (TRAVEL if means else GO)[1]
    parts = [Part(RANK_PREPOSITIONAL, place.de_to)]
    parts += [Part(RANK_MEANS, means.de)] if means else []
    parts += [Part(RANK_MANNER, f"mit {company.de['dat']}")] if company else []
    zh_with = f"跟{company.zh}一起" if company else ""
    with_en = f"with {company.en_object}" if company else ""
    tail = english.joined(place.en_to, means.en if means else "", with_en)
    return Action(
        f"{en.base} {place.lemma}", en, tail, de, tuple(parts), f"{zh_with}{means.zh if means else ''}去*{place.zh_to}"
    )


def journey(town: list[str], means: Adverb | None) -> Action:
    """Travel to a town or country, by train or other means; without means by plane."""
    en_town, de_town, zh_town = town
    en, de = TRAVEL if means else FLY
    parts = [Part(RANK_PREPOSITIONAL, f"nach {de_town}")]
    parts += [Part(RANK_MEANS, means.de)] if means else []
    tail = english.joined(f"to {en_town}", means.en if means else "")
    return Action(f"{en.base} {en_town}", en, tail, de, tuple(parts), f"{means.zh if means else '坐飞机'}去*{zh_town}")


def with_company(action: Action, company: Nominal) -> Action:
    """Add `with my friends`; 跟 … 一起 stands before the verb."""
    part = Part(RANK_MANNER, f"mit {company.de['dat']}")
    zh = f"跟{company.zh}一起"
    return replace(
        action, en_tail=english.joined(action.en_tail, f"with {company.en_object}"), parts=(*action.parts, part),
        zh=zh + action.zh, zh_done="", zh_negated=zh + (action.zh_negated or action.zh),
    )  # fmt: skip
