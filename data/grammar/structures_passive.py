"""The passive: is being repaired, was built by, must be washed, has already been, will be, one does."""

from __future__ import annotations

from . import english, german, nominals
from . import lexicon_places as places
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .draw import Draw, nouns_of
from .lexicon import VerbEntry
from .nominals import Nominal
from .structures import Triple, question, statement, structure

# What is said of a thing without its doer; a person is never the subject here.
UNSAID = {
    "wait for",
    "drink",
    "eat",
    "play",
    "take",
    "miss",
    "visit",
    "admire",
    "describe",
    "learn",
    "speak",
    "listen to",
    "collect",
    "try on",
    "put on",
    "take off",
    "taste",
    "carry",
    "find",
}
PASSIVE = [
    entry for entry in verbs.TRANSITIVE
    if entry.case == "acc" and not entry.flags & {"state", "ongoing", "plural"} and entry.lemma not in UNSAID and entry.objects[0] not in ("person", "kin", "singer", "language")
]  # fmt: skip
FINISHED = [entry for entry in PASSIVE if entry.zh_definite and "past" not in entry.flags]


def done_to(draw: Draw, pool: list[VerbEntry], plural: float = 0.1) -> tuple[VerbEntry, Nominal]:
    """Draw a verb and the known thing that it is done to."""
    entry = draw.choose(pool, True)
    noun = draw.choose(
        [
            noun
            for noun in nouns_of(entry.objects)
            if noun.group not in ("bare", "game", "drink", "provision", "kin", "child kin", "person")
        ],
        True,
    )
    adjective = draw.adjective(noun) if draw.chance(0.4) else None
    kind = draw.weighted(
        the=3,
        this=2,
        my=2 if entry.flags & {"known", "own"} and noun.group not in ("fixture", "culture", "building") else 0,
    )
    if kind == "my":
        if adjective and adjective.zh_attribute.endswith("的"):
            adjective = None
        return entry, nominals.possessed(noun, draw.choose(["1sg", "2sg", "3sg m", "3sg f", "1pl"]), adjective)
    return entry, (nominals.definite if kind == "the" else nominals.demonstrative)(noun, adjective)


def agent(draw: Draw) -> Nominal:
    return draw.subject(adult=True, pronoun=0)


def by(person: Nominal) -> str:
    return german.contracted("von", person.de["dat"])


def be(thing: Nominal, past: bool = False) -> str:
    return (english.BE_PAST if past else english.BE_PRESENT)[thing.agreement]


def active(entry: VerbEntry) -> str:
    """Return the bare Chinese verb: 修理, 打扫."""
    return entry.zh.replace("~", "").replace("*", "").replace("^", "")


def resultative(entry: VerbEntry) -> str:
    """Return the Chinese verb of the 把 pattern: 修好, 打扫干净."""
    return entry.zh_definite.removeprefix("把~").replace("*", "")


def plain(entry: VerbEntry) -> bool:
    return not entry.zh.startswith("给~")


@structure
def is_being_done(draw: Draw) -> Triple:
    entry, thing = done_to(draw, [entry for entry in PASSIVE if plain(entry) and not entry.flags & {"past"}])
    person = agent(draw)
    werden = german.auxiliary("werden", thing.agreement)
    return statement(
        f"{thing.en} {be(thing)} being {participle(entry)} by {person.en_object}", f"{thing.de['nom']} {werden} gerade {by(person)} {entry.de.participle}",
        f"{person.zh}正在{active(entry)}{thing.zh}",
    )  # fmt: skip


def participle(entry: VerbEntry) -> str:
    return english.joined(entry.en.participle, entry.en.particle)


@structure
def was_done_by(draw: Draw) -> Triple:
    entry, thing = done_to(draw, FINISHED)
    person, time = agent(draw), times_for(draw, entry)
    wurde = german.auxiliary("wurde", thing.agreement)
    return statement(
        f"{thing.en} {be(thing, True)} {participle(entry)} by {person.en_object} {time.en}", f"{thing.de['nom']} {wurde} {time.de} {by(person)} {entry.de.participle}",
        f"{thing.zh}{time.zh}被{person.zh}{resultative(entry)}了",
    )  # fmt: skip


def times_for(draw: Draw, entry: VerbEntry) -> object:
    return draw.choose(times.PAST_FAR if "long" in entry.flags else times.PAST_NEAR)


@structure
def was_made_by(draw: Draw) -> Triple:
    pool = [
        entry
        for entry in PASSIVE
        if entry.lemma
        in (
            "write",
            "build",
            "paint",
            "translate",
            "photograph",
            "organize",
            "bake",
            "cook",
            "correct",
            "choose",
            "check",
            "print",
        )
    ]
    entry, thing = done_to(draw, pool)
    person, time = agent(draw), times_for(draw, entry)
    wurde = german.auxiliary("wurde", thing.agreement)
    return statement(
        f"{thing.en} {be(thing, True)} {participle(entry)} by {person.en_object} {time.en}", f"{thing.de['nom']} {wurde} {time.de} {by(person)} {entry.de.participle}",
        f"{thing.zh}是{person.zh}{time.zh}{active(entry)}的",
    )  # fmt: skip


@structure
def was_not_done(draw: Draw) -> Triple:
    entry, thing = done_to(draw, FINISHED)
    person, time = agent(draw), times_for(draw, entry)
    wurde = german.auxiliary("wurde", thing.agreement)
    return statement(
        f"{thing.en} {be(thing, True)} not {participle(entry)} by {person.en_object} {time.en}", f"{thing.de['nom']} {wurde} {time.de} nicht {by(person)} {entry.de.participle}",
        f"{thing.zh}{time.zh}没有被{person.zh}{resultative(entry)}",
    )  # fmt: skip


@structure
def was_done_somewhere(draw: Draw) -> Triple:
    pool = [entry for entry in PASSIVE if entry.places and plain(entry) and entry.lemma not in ("feed",)]
    entry, thing = done_to(draw, pool)
    place, time = draw.choose(places.group(entry.places), True), times_for(draw, entry)
    wurde = german.auxiliary("wurde", thing.agreement)
    return statement(
        f"{time.en} {thing.en} {be(thing, True)} {participle(entry)} {place.en}", f"{time.de} {wurde} {thing.de['nom']} {place.de} {entry.de.participle}",
        f"{thing.zh}是{time.zh}{place.zh}{active(entry)}的",
    )  # fmt: skip


@structure
def has_already_been_done(draw: Draw) -> Triple:
    entry, thing = done_to(draw, FINISHED)
    person = agent(draw)
    have, sein = ("has" if thing.agreement == "3sg" else "have"), german.auxiliary("sein", thing.agreement)
    return statement(
        f"{thing.en} {have} already been {participle(entry)} by {person.en_object}", f"{thing.de['nom']} {sein} schon {by(person)} {entry.de.participle} worden",
        f"{thing.zh}已经被{person.zh}{resultative(entry)}了",
    )  # fmt: skip


DONE_LATER = FINISHED + [entry for entry in PASSIVE if entry.lemma in ("pay", "check", "sign", "correct", "prepare")]


def outcome(entry: VerbEntry) -> str:
    """Return the Chinese verb of a task, with its result where there is one."""
    return resultative(entry) if entry.zh_definite else active(entry)


@structure
def must_be_done(draw: Draw) -> Triple:
    entry, thing = done_to(draw, DONE_LATER)
    time = draw.choose(times.FUTURE_NEAR)
    place = draw.choose(places.group(entry.places)) if entry.places and draw.chance(0.5) else None
    müssen = german.auxiliary("müssen", thing.agreement)
    return statement(
        english.joined(thing.en, "must be", participle(entry), place.en if place else "", time.en),
        english.joined(thing.de["nom"], müssen, time.de, place.de if place else "", entry.de.participle, "werden"),
        f"{thing.zh}{time.zh}必须{place.zh if place else ''}{outcome(entry)}",
    )  # fmt: skip


@structure
def will_be_done_by(draw: Draw) -> Triple:
    entry, thing = done_to(draw, DONE_LATER)
    person, time = agent(draw), draw.choose(times.FUTURE_NEAR)
    werden = german.auxiliary("werden", thing.agreement)
    return statement(
        f"{time.en} {thing.en} will be {participle(entry)} by {person.en_object}", f"{time.de} {werden} {thing.de['nom']} {by(person)} {entry.de.participle} werden",
        f"{time.zh}{thing.zh}会由{person.zh}{outcome(entry)}",
    )  # fmt: skip


@structure
def ask_when_it_was_done(draw: Draw) -> Triple:
    pool = [entry for entry in PASSIVE if plain(entry) and entry.lemma not in ("feed", "use", "read", "close", "open")]
    entry, thing = done_to(draw, pool)
    person = agent(draw)
    wurde = german.auxiliary("wurde", thing.agreement)
    return question(
        f"when {be(thing, True)} {thing.en} {participle(entry)} by {person.en_object}", f"wann {wurde} {thing.de['nom']} {by(person)} {entry.de.participle}",
        f"{thing.zh}是{person.zh}什么时候{active(entry)}的",
    )  # fmt: skip


@structure
def ask_whether_it_was_done(draw: Draw) -> Triple:
    entry, thing = done_to(draw, FINISHED)
    person, time = agent(draw), times_for(draw, entry)
    wurde = german.auxiliary("wurde", thing.agreement)
    return question(
        f"{be(thing, True)} {thing.en} {participle(entry)} by {person.en_object} {time.en}", f"{wurde} {thing.de['nom']} {time.de} {by(person)} {entry.de.participle}",
        f"{thing.zh}{time.zh}被{person.zh}{resultative(entry)}了吗",
    )  # fmt: skip
