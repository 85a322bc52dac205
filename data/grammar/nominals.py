"""Noun phrases, pronouns and names, each ready in three languages and all German cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from . import chinese, english, german
from .german import CASES
from .lexicon import Adjective, Noun

# agreement (with gender) -> English, German stem, Chinese possessive
POSSESSIVES = {
    "1sg": ("my", "mein", "我"), "2sg": ("your", "dein", "你"), "3sg m": ("his", "sein", "他"),
    "3sg f": ("her", "ihr", "她"), "1pl": ("our", "unser", "我们"), "3pl": ("their", "ihr", "他们"),
}  # fmt: skip
# English subject and object form, Chinese.
PRONOUNS = {
    "1sg": ("I", "me", "我"), "2sg": ("you", "you", "你"), "3sg m": ("he", "him", "他"),
    "3sg f": ("she", "her", "她"), "1pl": ("we", "us", "我们"), "3pl": ("they", "them", "他们"),
}  # fmt: skip
# Known without 那 in Chinese when no adjective stands before them.
BARE_IN_CHINESE = {"kin", "child kin", "place", "fixture", "transport", "bare"}
PEOPLE = {"person", "child", "kin", "child kin"}


@dataclass(frozen=True)
class Nominal:
    """A noun phrase.

    Attributes:
        de: The German phrase by case.
        zh_negated: The Chinese phrase under negation, where 一 and its measure word go: 没租小船.
        de_negative: The same with kein, by case; empty when `nicht` negates the sentence.
        referent: Key of the pronoun that stands for it, such as `3sg f` or `3pl`; empty for things.
    """

    en: str
    en_object: str
    de: dict[str, str]
    zh: str
    agreement: str
    referent: str = ""
    definite: bool = True
    pronoun: bool = False
    adult: bool = True
    de_negative: dict[str, str] | None = None
    noun: Noun | None = None
    gender: str = "p"
    zh_negated: str = ""


def personal_pronoun(key: str) -> Nominal:
    subject, obj, zh = PRONOUNS[key]
    return Nominal(subject, obj, german.PERSONAL[key], zh, key.split()[0], key, pronoun=True)


def named(en: str, de: str, zh: str, gender: str) -> Nominal:
    return Nominal(en, en, dict.fromkeys(CASES, de), zh, "3sg", f"3sg {gender}", gender=gender)


def pair(first: Nominal, second: Nominal) -> Nominal:
    """Join two people: Anna and Paul."""
    de = {case: f"{first.de[case]} und {second.de[case]}" for case in CASES}
    en = f"{first.en} and {second.en}"
    return Nominal(en, en, de, f"{first.zh}和{second.zh}", "3pl", "3pl", adult=first.adult and second.adult)


def german_noun(noun: Noun, case: str, plural: bool) -> str:
    if plural:
        return german.dative_plural(noun.de_plural) if case == "dat" else noun.de_plural
    if noun.weak and case != "nom":
        return noun.de + ("n" if noun.de[-1] in "er" and noun.de != "Elefant" else "en")
    return noun.de


def _german_phrase(noun: Noun, case: str, determiner: str, kind: str, adjective: Adjective | None, plural: bool) -> str:
    gender = "p" if plural else noun.gender
    ending = german.adjective_ending(kind, gender, case)
    stems = [stem for stem in (adjective.de if adjective else "", noun.de_adjective) if stem]
    return english.joined(
        determiner, *(german.inflected(stem, ending) for stem in stems), german_noun(noun, case, plural)
    )


@cache
def declined(noun: Noun, stem: str, adjective: Adjective | None = None, plural: bool = False) -> dict[str, str]:
    """Decline with `der`, `dies`, an ein-word such as `mein`, a numeral, or nothing as determiner."""
    gender = "p" if plural else noun.gender
    forms = {}
    for case in CASES:
        if stem == "der":
            word, kind = german.DEFINITE[gender][case], "der"
        elif stem in ("dies", "jed", "welch"):
            word, kind = stem + german.DIES_ENDINGS[gender][case], "der"
        elif stem in ("ein", "kein") or stem in {entry[1] for entry in POSSESSIVES.values()}:
            word, kind = stem + german.EIN_ENDINGS[gender][case], "ein"
        else:
            word, kind = stem, "none"
        forms[case] = _german_phrase(noun, case, word, kind, adjective, plural)
    return forms


def _referent(noun: Noun, plural: bool) -> str:
    if noun.group not in PEOPLE:
        return ""
    return "3pl" if plural else f"3sg {noun.gender}"


def _build(noun: Noun, en: str, de: dict[str, str], zh: str, plural: bool, **extra: object) -> Nominal:
    plural = plural or (noun.en == noun.en_plural and noun.group in ("kin", "child kin"))
    return Nominal(
        en, en, de, zh, "3pl" if plural else "3sg", _referent(noun, plural),
        adult="child" not in noun.group, noun=noun, gender="p" if plural else noun.gender, **extra,
    )  # fmt: skip


def _adjectives(adjective: Adjective | None, noun: Noun) -> tuple[str, str]:
    """Return the English and Chinese attribute: 红色毛衣, but 红色的花."""
    if not adjective:
        return "", ""
    linked = adjective.zh_attribute.endswith("色") and len(noun.zh) == 1
    return adjective.en, adjective.zh_attribute + ("的" if linked else "")


def definite(noun: Noun, adjective: Adjective | None = None, plural: bool = False) -> Nominal:
    """Build `the old book`; Chinese points with 那 unless the noun is known by itself."""
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    bare = noun.group in BARE_IN_CHINESE and not adjective
    if plural:
        zh = noun.zh + "们" if bare and noun.group in PEOPLE else "那些" + zh_adjective + noun.zh
    else:
        zh = noun.zh if bare else "那" + noun.measure + zh_adjective + noun.zh
    en = english.joined("the", en_adjective, noun.en_plural if plural else noun.en)
    return _build(noun, en, declined(noun, "der", adjective, plural), zh, plural)


def demonstrative(noun: Noun, adjective: Adjective | None = None, plural: bool = False) -> Nominal:
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    en = english.joined("these" if plural else "this", en_adjective, noun.en_plural if plural else noun.en)
    zh = ("这些" if plural else "这" + noun.measure) + zh_adjective + noun.zh
    return _build(noun, en, declined(noun, "dies", adjective, plural), zh, plural)


def indefinite(noun: Noun, adjective: Adjective | None = None) -> Nominal:
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    rest = english.joined(en_adjective, noun.en)
    return _build(
        noun, f"{english.article(rest)} {rest}", declined(noun, "ein", adjective, False),
        "一" + noun.measure + zh_adjective + noun.zh, False,
        definite=False, de_negative=declined(noun, "kein", adjective, False), zh_negated=zh_adjective + noun.zh,
    )  # fmt: skip


def bare(noun: Noun, adjective: Adjective | None = None, plural: bool = False) -> Nominal:
    """Build `fresh bread` or `new shoes`, without any article."""
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    en = english.joined(en_adjective, noun.en_plural if plural else noun.en)
    negative = declined(
        noun,
        "kein",
        adjective,
        plural or noun.de in ("Karten", "Briefmarken", "Münzen", "Postkarten", "Nudeln", "Teigtaschen"),
    )
    return _build(
        noun,
        en,
        declined(noun, "", adjective, plural),
        zh_adjective + noun.zh,
        plural,
        definite=False,
        de_negative=None if noun.group == "game" else negative,
    )


def counted(noun: Noun, number: tuple[int, str, str], adjective: Adjective | None = None) -> Nominal:
    """Build `three new books` from a number and its English and German word."""
    value, en_number, de_number = number
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    en = english.joined(en_number, en_adjective, noun.en_plural)
    zh = chinese.counted(value, noun.measure) + zh_adjective + noun.zh
    return _build(noun, en, declined(noun, de_number, adjective, True), zh, True, definite=False)


def possessed(
    noun: Noun, owner: str, adjective: Adjective | None = None, plural: bool = False, own: bool = False
) -> Nominal:
    """Build `my new car`; `own` means that the owner is the subject of the clause."""
    en_owner, stem, zh_owner = POSSESSIVES[owner]
    en_adjective, zh_adjective = _adjectives(adjective, noun)
    plural = plural or (noun.en == noun.en_plural and noun.group in ("kin", "child kin"))
    en = english.joined(en_owner, en_adjective, noun.en_plural if plural else noun.en)
    zh_noun = zh_adjective + noun.zh
    if noun.group in ("kin", "child kin") and noun.zh != "孩子":
        zh = zh_owner + zh_noun
    elif own and owner.startswith("3"):
        zh = "自己的" + zh_noun
    else:
        zh = zh_owner + "的" + zh_noun
    if noun.group in PEOPLE and plural and not noun.zh.endswith(("父母", "爷爷奶奶")):
        zh += "们"
    return _build(noun, en, declined(noun, stem, adjective, plural), zh, plural)


def contained(
    container: Noun, number: tuple[int, str, str], drink: Noun, adjective: Adjective | None = None
) -> Nominal:
    """Build `a cup of hot tea`; eine Tasse heißer Tee agrees in case."""
    value, _en_number, _de_number = number
    en_adjective, zh_adjective = _adjectives(adjective, drink)
    plural = value > 1
    head = counted(container, number) if plural else indefinite(container)
    content = declined(drink, "", adjective, False)
    en = f"{head.en} of {english.joined(en_adjective, drink.en)}"
    join = {case: f"{head.de[case]} {content[case]}" for case in CASES}
    negative = None
    if head.de_negative:
        negative = {case: f"{head.de_negative[case]} {content[case]}" for case in CASES}
    zh = chinese.counted(value, container.zh) + zh_adjective + drink.zh
    built = _build(
        drink, en, join, zh, plural, definite=False, de_negative=negative, zh_negated=zh_adjective + drink.zh
    )
    return replace(built, gender="p" if plural else container.gender)
