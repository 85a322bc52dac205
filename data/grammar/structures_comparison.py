"""Comparison: bigger than, much bigger, as big as, not as big, the biggest."""

from __future__ import annotations

from . import english, german
from . import lexicon_adjectives as adjectives
from . import lexicon_places as places
from .draw import GROUPS, Draw
from .lexicon import Adjective, Noun
from .nominals import Nominal
from .structures import Triple, question, statement, structure
from .structures_description import OWNED, described, pointed_at


def compared(draw: Draw) -> tuple[Nominal, Nominal, Adjective]:
    """Draw two things of one kind, or two people, and what they are compared by."""
    if draw.chance(0.4):
        quality = draw.choose([item for item in adjectives.QUALITIES["person"] if item.en != "famous"], content=True)
        first, second = draw.subject(adult=True, third=True, pronoun=0), draw.subject(adult=True, third=True, pronoun=0)
        while second.en == first.en:
            second = draw.subject(adult=True, third=True, pronoun=0)
        draw.content += [first.en, second.en]
        return first, second, quality
    noun, quality = described(draw, OWNED)
    first = pointed_at(draw, noun)
    other = (
        noun
        if draw.chance(0.5)
        else draw.choose(
            [
                other
                for other in GROUPS[noun.group]
                if quality.en in {item.en for item in adjectives.said_of(other)} and other.group == noun.group
            ],
            True,
        )
    )
    second = pointed_at(draw, other)
    while second.en == first.en or (other is noun and second.zh.startswith("那")):
        second = pointed_at(draw, other)
    return first, second, quality


def are(nominal: Nominal) -> tuple[str, str]:
    return english.BE_PRESENT[nominal.agreement], german.auxiliary("sein", nominal.agreement)


@structure
def more_than(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    en, de = are(first)
    return statement(
        f"{first.en} {en} {quality.more} than {second.en_object}",
        f"{first.de['nom']} {de} {quality.de_comparative} als {second.de['nom']}",
        f"{first.zh}比{second.zh}{quality.zh}",
    )


@structure
def much_more_than(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    en, de = are(first)
    return statement(
        f"{first.en} {en} much {quality.more} than {second.en_object}",
        f"{first.de['nom']} {de} viel {quality.de_comparative} als {second.de['nom']}",
        f"{first.zh}比{second.zh}{quality.zh}得多",
    )


@structure
def ask_more_than(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    en, de = are(first)
    return question(
        f"{en} {first.en} {quality.more} than {second.en_object}",
        f"{de} {first.de['nom']} {quality.de_comparative} als {second.de['nom']}",
        f"{first.zh}比{second.zh}{quality.zh}吗",
    )


@structure
def as_as(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    en, de = are(first)
    return statement(
        f"{first.en} {en} as {quality.en} as {second.en_object}",
        f"{first.de['nom']} {de} so {quality.de} wie {second.de['nom']}",
        f"{first.zh}跟{second.zh}一样{quality.zh}",
    )


@structure
def not_as_as(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    en, de = are(first)
    return statement(
        f"{first.en} {en} not as {quality.en} as {second.en_object}",
        f"{first.de['nom']} {de} nicht so {quality.de} wie {second.de['nom']}",
        f"{first.zh}没有{second.zh}那么{quality.zh}",
    )


@structure
def think_more_than(draw: Draw) -> Triple:
    first, second, quality = compared(draw)
    thinker = draw.other(first)
    _, de = are(first)
    be_en = are(first)[0]
    think = {"3sg": "thinks"}.get(thinker.agreement, "think")
    glauben = german.verb("glauben, glaubt, geglaubt").present(thinker.agreement)
    return statement(
        f"{thinker.en} {think} that {first.en} {be_en} {quality.more} than {second.en_object}",
        f"{thinker.de['nom']} {glauben}, dass {first.de['nom']} {quality.de_comparative} {de} als {second.de['nom']}",
        f"{thinker.zh}认为{first.zh}比{second.zh}{quality.zh}",
    )  # fmt: skip


def superlative(draw: Draw) -> tuple[Noun, str, str, str]:
    noun, quality = described(draw, ("thing", "furniture", "machine", "clothes", "building"))
    ending = german.adjective_ending("der", noun.gender, "nom")
    de = f"{german.DEFINITE[noun.gender]['nom']} {german.inflected(quality.de_superlative, ending)} {noun.de}"
    return noun, f"the {quality.most} {noun.en}", de, f"最{quality.zh}的{noun.zh}"


@structure
def most_in_place(draw: Draw) -> Triple:
    noun, en, de, zh = superlative(draw)
    while noun.group == "building":
        draw.begin()
        noun, en, de, zh = superlative(draw)
    place = draw.choose([places.PLACES[name] for name in ("department store", "market")])
    inside = place.zh.removeprefix("在").removesuffix("里")
    return statement(f"this is {en} {place.en}", f"das ist {de} {place.de}", f"这是{inside}里{zh}")


@structure
def most_in_city(draw: Draw) -> Triple:
    place = draw.choose(
        [
            place
            for place in places.PLACES.values()
            if place.noun.en
            in (
                "park",
                "café",
                "library",
                "market",
                "school",
                "hotel",
                "restaurant",
                "museum",
                "theater",
                "church",
                "hospital",
                "station",
                "stadium",
                "zoo",
                "cinema",
                "university",
            )
        ],
        True,
    )
    quality = draw.choose([item for item in adjectives.said_of(place.noun) if item.en != "new"], True)
    town = draw.choose(places.CITIES, True)
    ending = german.adjective_ending("der", place.noun.gender, "nom")
    de = f"{german.DEFINITE[place.noun.gender]['nom']} {german.inflected(quality.de_superlative, ending)} {place.noun.de}"
    return statement(
        f"this is the {quality.most} {place.noun.en} in {town[0]}",
        f"das ist {de} in {town[1]}",
        f"这是{town[2]}最{quality.zh}的{place.noun.zh}",
    )
