"""Food, games and animals side by side: what was eaten and drunk, played, bought and seen."""

from __future__ import annotations

from . import actions, clauses, english, german, nominals
from . import lexicon_places as places
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .clauses import Clause
from .draw import GROUPS, Draw
from .lexicon import Noun
from .nominals import Nominal
from .structures import Triple, question, statement, structure

SAVOURY = GROUPS["food"] + GROUPS["provision"] + [verbs.BARE[name] for name in ("noodles", "dumplings", "vegetables")]
GAMES = list(verbs.GAMES.values())


def portion(draw: Draw, noun: Noun) -> Nominal:
    """Draw `two eggs`, `a banana` or plain `bread`."""
    adjective = draw.adjective(noun) if draw.chance(0.3) else None
    if noun.group in ("provision", "bare"):
        return nominals.bare(noun, adjective if noun.group == "provision" else None)
    if draw.chance(0.5):
        return nominals.counted(noun, draw.number(), adjective)
    return nominals.indefinite(noun, adjective)


def two_of(draw: Draw, nouns: list[Noun]) -> tuple[Noun, Noun]:
    first, second = draw.choose(nouns, True), draw.choose(nouns, True)
    while first.en == second.en:
        second = draw.choose(nouns, True)
    return first, second


def told_of_two(
    subject: Nominal,
    verb: tuple[str, str, str],
    things_done: tuple[Nominal, Nominal],
    time: object,
    place: object = None,
) -> Triple:
    """Say that somebody did something with two things: bought three apples and bread."""
    en, de, zh = verb
    first, second = things_done
    spoken = german.verb(de)
    have = german.auxiliary("haben", subject.agreement)
    return statement(
        english.joined(subject.en, en, first.en, "and", second.en, place.en if place else "", time.en),
        english.joined(subject.de["nom"], have, time.de, place.de if place else "", first.de["acc"], "und", second.de["acc"], spoken.participle),
        f"{subject.zh}{time.zh}{place.zh if place else ''}{zh}了{first.zh}和{second.zh}",
    )  # fmt: skip


BUY, EAT, ORDER, SEE = (
    ("bought", "kaufen, kauft, gekauft", "买"),
    ("ate", "essen, isst, gegessen", "吃"),
    ("ordered", "bestellen, bestellt, bestellt", "点"),
    ("saw", "sehen, sieht, gesehen", "看到"),
)


@structure
def bought_food_and_food(draw: Draw) -> Triple:
    first, second = (portion(draw, noun) for noun in two_of(draw, SAVOURY))
    return told_of_two(
        draw.subject(), BUY, (first, second), draw.choose(times.PAST_NEAR), draw.choose(places.group("grocery"))
    )


@structure
def ate_food_and_food(draw: Draw) -> Triple:
    first, second = (portion(draw, noun) for noun in two_of(draw, SAVOURY))
    return told_of_two(
        draw.subject(), EAT, (first, second), draw.choose(times.PAST_NEAR), draw.choose(places.group("eat"))
    )


@structure
def ordered_dish_and_drink(draw: Draw) -> Triple:
    dish = portion(
        draw,
        draw.choose(
            [
                noun
                for noun in SAVOURY
                if noun.en
                in (
                    "soup",
                    "salad",
                    "pizza",
                    "sandwich",
                    "sausage",
                    "cake",
                    "fish",
                    "meat",
                    "rice",
                    "noodles",
                    "dumplings",
                    "vegetables",
                    "cheese",
                )
            ],
            True,
        ),
    )
    drink = draw.drink(draw.choose(GROUPS["drink"], True))
    return told_of_two(
        draw.subject(), ORDER, (dish, drink), draw.choose(times.PAST_NEAR), draw.choose(places.group("order"))
    )


@structure
def saw_animals_at_zoo(draw: Draw) -> Triple:
    wild = [
        noun
        for noun in GROUPS["animal"]
        if noun.en in ("elephant", "monkey", "lion", "bear", "bird", "horse", "duck", "sheep", "rabbit")
    ]
    first, second = two_of(draw, wild)
    one = nominals.indefinite(first, draw.adjective(first) if draw.chance(0.5) else None)
    two = nominals.counted(second, draw.number(), draw.adjective(second) if draw.chance(0.3) else None)
    return told_of_two(draw.subject(), SEE, (one, two), draw.choose(times.PAST_NEAR), places.PLACES["zoo"])


@structure
def ate_and_then_drank(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    food = portion(draw, draw.choose(SAVOURY, True))
    drink = draw.drink(draw.choose(GROUPS["drink"], True))
    time = draw.choose(times.PAST_NEAR)
    again = draw.again(subject)
    have = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{time.en} {subject.en} ate {food.en}, and then {again.en} drank {drink.en}",
        f"{time.de} {have} {subject.de['nom']} {food.de['acc']} gegessen, und dann {have} {again.de['nom']} {drink.de['acc']} getrunken",
        f"{time.zh}{subject.zh}吃了{food.zh}，然后喝了{drink.zh}",
    )  # fmt: skip


@structure
def likes_food_better(draw: Draw) -> Triple:
    first, second = two_of(draw, draw.random.choice((SAVOURY, SAVOURY, GROUPS["drink"], GAMES[:8])))
    subject = draw.subject()
    one, two = many(first), many(second)
    like = "likes" if subject.agreement == "3sg" else "like"
    return statement(
        f"{subject.en} {like} {one.en} better than {two.en}", f"{subject.de['nom']} {german.auxiliary('mögen', subject.agreement)} {one.de['acc']} lieber als {two.de['acc']}",
        f"比起{two.zh}，{subject.zh}更喜欢{one.zh}",
    )  # fmt: skip


def many(noun: Noun) -> Nominal:
    return nominals.bare(noun, plural=noun.group == "food")


@structure
def would_rather_play(draw: Draw) -> Triple:
    first, second = two_of(draw, GAMES)
    subject, time = draw.subject(), draw.choose(times.FUTURE_NEAR)
    möchten = german.auxiliary("möchten", subject.agreement)
    one, two = played(first), played(second)
    return statement(
        f"{time.en} {subject.en} would rather play {first.en} than {second.en}", f"{time.de} {möchten} {subject.de['nom']} lieber {first.de} als {second.de} spielen",
        f"{time.zh}{subject.zh}更想{one}，而不是{two}",
    )  # fmt: skip


def played(noun: Noun) -> str:
    """Return the Chinese verb with the game: 打网球, 踢足球, 弹钢琴."""
    entry = next(entry for entry in verbs.TRANSITIVE if entry.lemma == "play" and noun.en in entry.objects)
    return clauses.chinese.with_aspect(entry.zh.replace("~", noun.zh))


@structure
def plays_with_whom(draw: Draw) -> Triple:
    noun = draw.choose(GAMES, True)
    subject, time = draw.subject(), draw.choose(times.WEEKLY)
    company = draw.receiver(subject)
    entry = next(entry for entry in verbs.TRANSITIVE if entry.lemma == "play" and noun.en in entry.objects)
    clause = Clause(subject, actions.with_company(actions.transitive(entry, nominals.bare(noun)), company), time=time)
    clause = clause.but(place=draw.choose(places.group(entry.places))) if draw.chance(0.4) else clause
    return statement(clause.en(), clause.de(), clause.zh())


@structure
def how_much_food_did(draw: Draw) -> Triple:
    noun = draw.choose([noun for noun in GROUPS["food"] if noun.en not in ("soup", "salad")], True)
    subject, time = draw.subject(third=True), draw.choose(times.PAST_NEAR)
    bought = draw.chance(0.5)
    place = draw.choose(places.group("grocery" if bought else "eat"), True)
    have = german.auxiliary("haben", subject.agreement)
    en, de, zh = ("buy", "gekauft", "买") if bought else ("eat", "gegessen", "吃")
    return question(
        f"how many {noun.en_plural} did {subject.en} {en} {place.en} {time.en}", f"wie viele {noun.de_plural} {have} {subject.de['nom']} {time.de} {place.de} {de}",
        f"{subject.zh}{time.zh}{place.zh}{zh}了多少{noun.measure}{noun.zh}",
    )  # fmt: skip
