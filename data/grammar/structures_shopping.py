"""Whose a thing is and what it costs."""

from __future__ import annotations

from . import chinese, german, nominals
from . import lexicon_time as times
from .draw import GROUPS, Draw
from .numbers import english_number, german_number
from .structures import Triple, statement, structure

# Prices are few enough to be learned, each as one word in German.
PRICES = [*range(8, 21), *range(25, 100, 5)]


@structure
def belongs_to(draw: Draw) -> Triple:
    noun = draw.choose(GROUPS["thing"] + GROUPS["vehicle"] + GROUPS["clothes"] + GROUPS["animal"][:2], True)
    thing = nominals.demonstrative(noun, draw.adjective(noun) if draw.chance(0.6) else None)
    first, second = draw.receiver(None), draw.receiver(None)
    while first.en == second.en:
        second = draw.receiver(None)
    return statement(
        f"{thing.en} does not belong to {first.en_object}, but to {second.en_object}",
        f"{thing.de['nom']} gehört nicht {first.de['dat']}, sondern {second.de['dat']}", f"{thing.zh}不是{first.zh}的，而是{second.zh}的",
    )  # fmt: skip


@structure
def price_of_thing(draw: Draw) -> Triple:
    noun = draw.choose(GROUPS["thing"] + GROUPS["clothes"] + GROUPS["household"] + GROUPS["furniture"], True)
    other = draw.choose(GROUPS["thing"] + GROUPS["clothes"] + GROUPS["household"] + GROUPS["furniture"], True)
    first, second = (
        nominals.demonstrative(item, draw.adjective(item) if draw.chance(0.5) else None) for item in (noun, other)
    )
    one, two = draw.choose(PRICES), draw.choose(PRICES)
    draw.content += [str(one), str(-two)]
    return statement(
        f"{first.en} costs {english_number(one)} euros, and {second.en} costs {english_number(two)} euros",
        f"{first.de['nom']} kostet {german_number(one)} Euro, und {second.de['nom']} kostet {german_number(two)} Euro",
        f"{first.zh}{price(one)}欧元，{second.zh}{price(two)}欧元",
    )  # fmt: skip


def price(value: int) -> str:
    return "两" if value == 2 else chinese.numeral(value)


@structure
def paid_for_thing(draw: Draw) -> Triple:
    subject, time = draw.subject(adult=True), draw.choose(times.PAST_NEAR)
    noun = draw.choose(GROUPS["thing"] + GROUPS["clothes"] + GROUPS["furniture"] + GROUPS["household"], True)
    thing, value = nominals.indefinite(noun, draw.adjective(noun) if draw.chance(0.6) else None), draw.choose(PRICES)
    draw.content.append(str(value))
    return statement(
        f"{subject.en} bought {thing.en} for {english_number(value)} euros {time.en}",
        f"{subject.de['nom']} {german.auxiliary('haben', subject.agreement)} {time.de} {thing.de['acc']} für {german_number(value)} Euro gekauft",
        f"{subject.zh}{time.zh}花{chinese.numeral(value)}欧元买了{thing.zh}",
    )  # fmt: skip
