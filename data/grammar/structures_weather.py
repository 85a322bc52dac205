"""The weather of two towns, and dates."""

from __future__ import annotations

from . import chinese, nominals
from . import lexicon_places as places
from . import lexicon_things as things
from . import lexicon_time as times
from .draw import Draw
from .structures import Triple, statement, structure

WEATHER_WORDS = [
    ("warm", "warm", "wärmer", "暖和", "warmer"), ("cold", "kalt", "kälter", "冷", "colder"), ("hot", "heiß", "heißer", "热", "hotter"), ("windy", "windig", "windiger", "风大", "windier"),
]  # fmt: skip


@structure
def weather_was(draw: Draw) -> Triple:
    (en, de, _, zh, _), (other_en, other_de, _, other_zh, _) = (
        draw.choose(WEATHER_WORDS[:3], True),
        draw.choose(WEATHER_WORDS[:3], True),
    )
    first, second, time = draw.choose(places.CITIES, True), draw.choose(places.CITIES, True), draw.choose(times.PAST)
    while first == second:
        second = draw.choose(places.CITIES, True)
    return statement(
        f"{time.en} it was very {en} in {first[0]}, and it was {other_en} in {second[0]}", f"{time.de} war es in {first[1]} sehr {de}, und in {second[1]} war es {other_de}",
        f"{time.zh}{first[2]}很{zh}，{second[2]}也很{other_zh}" if en == other_en else f"{time.zh}{first[2]}很{zh}，{second[2]}很{other_zh}",
    )  # fmt: skip


@structure
def weather_will_be(draw: Draw) -> Triple:
    first, second, time = (
        draw.choose(places.CITIES + places.COUNTRIES, True),
        draw.choose(places.CITIES + places.COUNTRIES, True),
        draw.choose([item for item in times.FUTURE if item.en != "next year"]),
    )
    while first == second:
        second = draw.choose(places.CITIES, True)
    return statement(
        f"{time.en} it will rain in {first[0]} and snow in {second[0]}",
        f"{time.de} wird es in {first[1]} regnen und in {second[1]} schneien",
        f"{time.zh}{first[2]}会下雨，{second[2]}会下雪",
    )


@structure
def weather_compared(draw: Draw) -> Triple:
    first, second, time = (
        draw.choose(places.CITIES + places.COUNTRIES, True),
        draw.choose(places.CITIES + places.COUNTRIES, True),
        draw.choose(times.FUTURE),
    )
    while first == second:
        second = draw.choose(places.CITIES, True)
    _, _, de, zh, en = draw.choose(WEATHER_WORDS[:3], True)
    return statement(
        f"{time.en} it will be {en} in {first[0]} than in {second[0]}",
        f"{time.de} wird es in {first[1]} {de} als in {second[1]} sein",
        f"{time.zh}{first[2]}会比{second[2]}{zh}",
    )


ORDINALS_EN = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
]
ORDINALS_DE = [
    "ersten",
    "zweiten",
    "dritten",
    "vierten",
    "fünften",
    "sechsten",
    "siebten",
    "achten",
    "neunten",
    "zehnten",
    "elften",
    "zwölften",
    "dreizehnten",
    "vierzehnten",
    "fünfzehnten",
    "sechzehnten",
    "siebzehnten",
    "achtzehnten",
    "neunzehnten",
    "zwanzigsten",
]


@structure
def takes_place_on(draw: Draw) -> Triple:
    event = draw.choose([things.ALL["concert"], things.ALL["exhibition"], things.ALL["test"]], True)
    adjective = draw.adjective(event) if draw.chance(0.5) else None
    thing, place = nominals.definite(event, adjective), draw.choose(places.group("culture"), True)
    day, (en, de, zh) = draw.random.randint(1, 12), draw.choose(times.MONTHS, True)
    draw.content.append(str(day))
    return statement(
        f"{thing.en} takes place {place.en} on the {ORDINALS_EN[day - 1]} of {en}", f"{thing.de['nom']} findet am {ORDINALS_DE[day - 1]} {de} {place.de} statt",
        f"{thing.zh}{zh}{chinese.numeral(day)}日{place.zh}举行",
    )  # fmt: skip
