"""What things are like and how people feel: very, too, but not, today, for somebody."""

from __future__ import annotations

from . import english, german, nominals
from . import lexicon_adjectives as adjectives
from . import lexicon_time as times
from .draw import GROUPS, Draw
from .lexicon import Adjective, Noun
from .nominals import Nominal
from .predicates import Predicate, mood
from .structures import Triple, statement, structure

DESCRIBED = ("thing", "furniture", "machine", "clothes", "vehicle", "building", "reading", "culture", "task", "place")
OWNED = ("thing", "furniture", "machine", "clothes", "vehicle")


def described(draw: Draw, groups: tuple[str, ...] = DESCRIBED) -> tuple[Noun, Adjective]:
    """Draw a noun and a quality that can be said of it."""
    while True:
        noun = draw.choose(GROUPS[draw.choose(groups)])
        fitting = [item for item in adjectives.said_of(noun) if not item.en.startswith(("new", "old"))]
        if fitting:
            draw.content.append(noun.lemma)
            return noun, draw.choose(fitting, content=True)


def pointed_at(draw: Draw, noun: Noun, quality: Adjective | None = None) -> Nominal:
    """Draw `this book`, `my red bag`, `the old table`, with an adjective of another kind."""
    pool = [item for item in adjectives.before_noun(noun) if item in adjectives.COLORS or item.en in ("new", "old")]
    adjective = draw.choose(pool) if pool and draw.chance(0.6) else None
    kind = draw.weighted(this=2, the=2, my=3)
    if kind == "this":
        return nominals.demonstrative(noun, adjective)
    if kind == "the" or noun.group not in OWNED:
        return nominals.definite(noun, adjective)
    return nominals.possessed(noun, draw.choose(["1sg", "2sg", "3sg m", "3sg f", "1pl", "3pl"]), adjective)


def be(
    subject: Nominal,
    quality: Adjective,
    degree: tuple[str, str, str, str] = ("very", "sehr", "很", ""),
    **features: object,
) -> Predicate:
    en, de, zh, zh_end = degree
    return Predicate(
        subject, f"{en} {quality.en}", f"{de} {quality.de}", zh + quality.zh + zh_end, f"不{quality.zh}", **features
    )


# One can have too much of these, and judge things by those.
TOO = {"expensive", "big", "small", "heavy", "warm", "elegant"}
JUDGED = {"boring", "interesting", "exciting", "difficult", "easy", "important", "funny"}


@structure
def thing_is_too(draw: Draw) -> Triple:
    noun, quality = described(draw, OWNED)
    while quality.en not in TOO:
        draw.begin()
        noun, quality = described(draw, OWNED)
    said = be(pointed_at(draw, noun), quality, ("too", "zu", "太", "了"))
    person = draw.receiver(None)
    return statement(
        f"{said.en()} for {person.en_object}",
        f"{said.subject.de['nom']} ist für {person.de['acc']} {said.de_words}",
        f"{said.subject.zh}对{person.zh}来说{said.zh_words}",
    )


@structure
def thing_is_but_not(draw: Draw) -> Triple:
    noun, quality = described(draw)
    while len(contrasts(noun, quality)) < 1:
        draw.begin()
        noun, quality = described(draw)
    other = draw.choose(contrasts(noun, quality), content=True)
    subject = pointed_at(draw, noun)
    return statement(
        f"{subject.en} is {quality.en}, but not very {other.en}", f"{subject.de['nom']} ist {quality.de}, aber nicht sehr {other.de}",
        f"{subject.zh}很{quality.zh}，但是不太{other.zh}",
    )  # fmt: skip


def contrasts(noun: Noun, quality: Adjective) -> list[Adjective]:
    """Return the qualities a thing may lack although it has the other one."""
    welcome = {"cheap": "beautiful practical big elegant warm", "expensive": "big heavy warm practical", "beautiful": "expensive cheap practical big warm",
               "practical": "beautiful expensive cheap heavy", "big": "heavy expensive beautiful quiet modern", "small": "cheap expensive light quiet",
               "interesting": "funny long easy", "exciting": "funny sad long", "difficult": "long important", "easy": "short important",
               "long": "difficult boring interesting", "short": "easy interesting funny", "modern": "big beautiful quiet", "fast": "big cheap expensive",
               "heavy": "big expensive", "light": "small cheap", "famous": "big beautiful interesting", "quiet": "big modern beautiful"}  # fmt: skip
    return [item for item in adjectives.said_of(noun) if item.en in welcome.get(quality.en, "").split()]


@structure
def two_things_are(draw: Draw) -> Triple:
    (noun, quality), (other_noun, other_quality) = described(draw), described(draw)
    first, second = be(pointed_at(draw, noun), quality), be(pointed_at(draw, other_noun), other_quality)
    return statement(
        f"{first.en()}, and {second.en()}", f"{first.de()}, und {second.de()}", f"{first.zh()}，{second.zh()}"
    )


@structure
def thing_was(draw: Draw) -> Triple:
    noun, quality = described(draw, ("culture", "reading", "task"))
    while quality.en not in JUDGED:
        draw.begin()
        noun, quality = described(draw, ("culture", "reading", "task"))
    said = be(pointed_at(draw, noun), quality, past=True)
    person = draw.receiver(None)
    return statement(
        f"{said.en()} for {person.en_object}",
        f"{said.subject.de['nom']} war für {person.de['acc']} {said.de_words}",
        f"{said.subject.zh}对{person.zh}来说{said.zh_words}",
    )


@structure
def mood_today(draw: Draw) -> Triple:
    subject, other = draw.subject(pronoun=0.2), draw.subject(pronoun=0)
    first, second = draw.choose(adjectives.MOODS, True), draw.choose(adjectives.MOODS, True)
    time = draw.choose(times.TODAY)
    said, contrast = mood(subject, first, time=time), Predicate(other, second.en, second.de, f"很{second.zh}")
    return statement(
        f"{said.en()}, and {contrast.en()}", f"{said.de()}, und {contrast.de()}", f"{said.zh()}，{contrast.zh()}"
    )


CONTRASTED_MOODS = [
    "happy sad", "happy angry", "satisfied disappointed", "satisfied angry", "nervous tired", "hungry thirsty", "hungry tired", "sad angry",
    "disappointed angry", "nervous happy", "tired nervous", "angry disappointed", "sad tired", "thirsty hungry",
]  # fmt: skip


@structure
def mood_past_denied(draw: Draw) -> Triple:
    subject, time = draw.subject(), draw.choose(times.PAST_NEAR)
    names = draw.choose(CONTRASTED_MOODS, True).split()
    first, second = (next(item for item in adjectives.MOODS if item.en == name) for name in names)
    be_en = english.BE_PAST[subject.agreement]
    war = german.auxiliary("war", subject.agreement)
    return statement(
        f"{subject.en} {be_en} not {first.en} {time.en}, but very {second.en}",
        f"{subject.de['nom']} {war} {time.de} nicht {first.de}, sondern sehr {second.de}",
        f"{subject.zh}{time.zh}不{first.zh}，而是很{second.zh}",
    )  # fmt: skip
