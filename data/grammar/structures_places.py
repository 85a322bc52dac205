"""Where things are, and when places open and trains leave; since when one lives or works there."""

from __future__ import annotations

from . import english, german, nominals
from . import lexicon_places as places
from . import lexicon_things as things
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .actions import intransitive
from .clauses import Clause
from .draw import GROUPS, Draw
from .lexicon import Adverb
from .nominals import Nominal
from .structures import Triple, question, statement, structure
from .structures_description import pointed_at

NEXT_TO = [
    ("next to", "neben", "旁边"), ("behind", "hinter", "后面"), ("in front of", "vor", "前面"), ("opposite", "gegenüber von", "对面"), ("near", "in der Nähe von", "附近"),
]  # fmt: skip
SPOTS = [("on", "auf", "上"), ("under", "unter", "下面"), ("next to", "neben", "旁边"), ("behind", "hinter", "后面")]


@structure
def there_is_in_town(draw: Draw) -> Triple:
    first, second = draw.choose(places.group("town"), True), draw.choose(places.group("town"), True)
    while first.noun.en == second.noun.en:
        second = draw.choose(places.group("town"), True)
    en, de, zh = draw.choose(NEXT_TO, True)
    building = nominals.indefinite(first.noun, draw.adjective(first.noun) if draw.chance(0.7) else None)
    landmark = nominals.definite(second.noun)
    return statement(
        f"there is {building.en} {en} {landmark.en}", f"es gibt {building.de['acc']} {near(de, landmark)}",
        f"{landmark.zh}{zh}有{building.zh}",
    )  # fmt: skip


def near(preposition: str, landmark: Nominal) -> str:
    """Join a local preposition: neben dem Park, in der Nähe vom Park."""
    *head, last = preposition.split()
    return english.joined(*head, german.contracted(last, landmark.de["dat"]))


@structure
def where_is_it(draw: Draw) -> Triple:
    first, second = draw.choose(places.group("town"), True), draw.choose(places.group("town"), True)
    while first.noun.en == second.noun.en:
        second = draw.choose(places.group("town"), True)
    en, de, zh = draw.choose(NEXT_TO, True)
    building, landmark = (
        nominals.definite(first.noun, draw.adjective(first.noun) if draw.chance(0.5) else None),
        nominals.definite(second.noun),
    )
    return question(
        f"excuse me, is {building.en} {en} {landmark.en}", f"Entschuldigung, ist {building.de['nom']} {near(de, landmark)}",
        f"请问，{building.zh}在{landmark.zh}{zh}吗",
    )  # fmt: skip


@structure
def there_are_in_room(draw: Draw) -> Triple:
    room = draw.choose(
        [
            places.PLACES[name]
            for name in (
                "kitchen",
                "living room",
                "bedroom",
                "office",
                "hotel",
                "library",
                "school",
                "café",
                "restaurant",
            )
        ],
        True,
    )
    beds = () if room.noun.en in ("bedroom", "hotel") else ("bed", "washing machine")
    fitting = [item for item in GROUPS["furniture"] + GROUPS["machine"] if item.en not in beds]
    first, second = (
        draw.choose([item for item in fitting if item.group == "furniture"], True),
        draw.choose(fitting, True),
    )
    while first.en == second.en:
        second = draw.choose(fitting, True)
    one = nominals.counted(first, draw.number(), draw.adjective(first) if draw.chance(0.4) else None)
    two = nominals.indefinite(second, draw.adjective(second) if draw.chance(0.4) else None)
    inside = room.zh.removeprefix("在").removesuffix("里") + "里"
    return statement(
        f"there are {one.en} and {two.en} {room.en}",
        f"{room.de} gibt es {one.de['acc']} und {two.de['acc']}",
        f"{inside}有{one.zh}和{two.zh}",
    )


@structure
def thing_is_somewhere(draw: Draw) -> Triple:
    noun, holder = (
        draw.choose(GROUPS["thing"] + GROUPS["reading"] + GROUPS["household"], True),
        draw.choose([item for item in GROUPS["furniture"] if item.en not in ("carpet", "mirror")], True),
    )
    en, de, zh = draw.choose(SPOTS, True)
    room = draw.choose([places.PLACES[name] for name in ("kitchen", "living room", "bedroom", "office")])
    thing, where = pointed_at(draw, noun), nominals.definite(holder)
    inside = room.zh.removeprefix("在").removesuffix("里") + "里"
    return statement(
        f"{thing.en} is {en} {where.en} {room.en}",
        f"{thing.de['nom']} ist {de} {where.de['dat']} {room.de}",
        f"{thing.zh}在{inside}的{holder.zh}{zh}",
    )


# German stands these (stellen) and lays the others (legen); messages lie nowhere.
STANDING = [
    "bag",
    "umbrella",
    "suitcase",
    "backpack",
    "basket",
    "cup",
    "plate",
    "bottle",
    "vase",
    "candle",
    "email",
    "message",
]


@structure
def put_somewhere(draw: Draw) -> Triple:
    subject, time = draw.subject(), draw.choose(times.PAST_NEAR)
    noun, holder = (
        draw.choose(
            [
                item
                for item in GROUPS["thing"] + GROUPS["reading"] + GROUPS["mail"] + GROUPS["household"]
                if item.en not in STANDING
            ],
            True,
        ),
        draw.choose([item for item in GROUPS["furniture"] if item.en not in ("carpet", "mirror")], True),
    )
    en, de, zh = draw.choose(SPOTS, True)
    adjective = draw.adjective(noun) if draw.chance(0.4) else None
    thing, where = (
        nominals.definite(noun, adjective),
        nominals.definite(holder, draw.adjective(holder) if draw.chance(0.3) else None),
    )
    have = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{subject.en} put {thing.en} {en} {where.en} {time.en}", f"{subject.de['nom']} {have} {time.de} {thing.de['acc']} {de} {where.de['acc']} gelegt",
        f"{subject.zh}{time.zh}把{thing.zh}放在了{where.zh}{zh}",
    )  # fmt: skip


@structure
def opens_at(draw: Draw) -> Triple:
    names = (
        "library",
        "museum",
        "bank",
        "pharmacy",
        "bakery",
        "post office",
        "department store",
        "swimming pool",
        "town hall",
        "supermarket",
        "bookstore",
        "zoo",
        "school",
    )
    place, other = (
        draw.choose([places.PLACES[name] for name in names], True),
        draw.choose([places.PLACES[name] for name in names], True),
    )
    while other.noun.en == place.noun.en:
        other = draw.choose([places.PLACES[name] for name in names], True)
    first, second, time = (
        draw.choose(times.clock_between(7, 11), True),
        draw.choose(times.clock_between(7, 11), True),
        draw.choose(times.HABIT[-7:]),
    )
    one, two = nominals.definite(place.noun), nominals.definite(other.noun)
    return statement(
        f"{time.en}, {one.en} opens {first.en}, and {two.en} opens {second.en}", f"{time.de} öffnet {one.de['nom']} {first.de}, und {two.de['nom']} öffnet {second.de}",
        f"{time.zh}{one.zh}{first.zh}开门，{two.zh}{second.zh}开门",
    )  # fmt: skip


@structure
def train_leaves_at(draw: Draw) -> Triple:
    noun = draw.choose([things.TRANSPORT["train"], things.TRANSPORT["bus"]], True)
    town = draw.choose([town for town in places.CITIES if town[0] not in places.OVERSEAS], True)
    clock, time = (
        draw.choose(times.CLOCK, True),
        draw.choose([times.FUTURE[0], times.HABIT[0], *times.FUTURE[-7:], *times.HABIT[-7:]]),
    )
    return statement(
        f"the {noun.en} to {town[0]} leaves {clock.en} {time.en}", f"{german.DEFINITE[noun.gender]['nom']} {noun.de} nach {town[1]} fährt {time.de} {clock.de} ab",
        f"去{town[2]}的{noun.zh}{time.zh}{clock.zh}出发",
    )  # fmt: skip


@structure
def lives_since(draw: Draw) -> Triple:
    subject, town, since = (
        draw.subject(adult=True),
        draw.choose(places.CITIES + places.COUNTRIES, True),
        draw.choose(times.SINCE, True),
    )
    company = draw.kin() if draw.chance(0.6) else draw.name()
    while company.en == subject.en:
        company = draw.name()
    has, wohnen = (
        "has" if subject.agreement == "3sg" else "have",
        german.verb("wohnen, wohnt, gewohnt").present(subject.agreement),
    )
    return statement(
        f"{subject.en} {has} lived in {town[0]} with {company.en_object} {since.en}", f"{subject.de['nom']} {wohnen} {since.de} mit {company.de['dat']} in {town[1]}",
        f"{subject.zh}跟{company.zh}一起在{town[2]}住了{since.zh}了",
    )  # fmt: skip


@structure
def works_since(draw: Draw) -> Triple:
    subject, place, since = (
        draw.subject(adult=True),
        draw.choose(places.group("work"), True),
        draw.choose(times.SINCE, True),
    )
    has, arbeiten = (
        "has" if subject.agreement == "3sg" else "have",
        german.verb("arbeiten, arbeitet, gearbeitet").present(subject.agreement),
    )
    return statement(
        f"{subject.en} {has} worked {place.en} {since.en}",
        f"{subject.de['nom']} {arbeiten} {since.de} {place.de}",
        f"{subject.zh}{place.zh}工作了{since.zh}了",
    )


@structure
def learns_since(draw: Draw) -> Triple:
    subject, language, since = draw.subject(), draw.choose(places.LANGUAGES, True), draw.choose(times.SINCE, True)
    place = draw.choose(places.group("study")[1:3], True)
    has, lernen = (
        "has" if subject.agreement == "3sg" else "have",
        german.verb("lernen, lernt, gelernt").present(subject.agreement),
    )
    return statement(
        f"{subject.en} {has} been learning {language[0]} {place.en} {since.en}", f"{subject.de['nom']} {lernen} {since.de} {place.de} {language[1]}",
        f"{subject.zh}{place.zh}学{language[2]}学了{since.zh}了",
    )  # fmt: skip


@structure
def worked_for_hours(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    entry = draw.choose([entry for entry in verbs.INTRANSITIVE if entry.lemma in ("work", "study", "rest")], True)
    hours = [item for item in times.DURATION if "hours" in item.en]
    duration, time = (
        draw.choose(hours, True),
        draw.choose([item for item in times.PAST_NEAR if item.en not in ("last week", "an hour ago")]),
    )
    place = draw.choose(places.group(entry.places), True)
    clause = Clause(subject, intransitive(entry), "past", time=time, place=place, frequency=Adverb("", duration.de, ""))
    bare = clause.but(time=None)
    return statement(
        f"{time.en} {subject.en} {clause.action.en.past} {place.en} {duration.en}",
        clause.de_time_first(),
        f"{time.zh}{bare.zh('')}了{duration.zh}",
    )
