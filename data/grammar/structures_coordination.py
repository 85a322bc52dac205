"""Two main clauses side by side: and, but, or, so, still, first … then, either … or, not only."""

from __future__ import annotations

from . import clauses, english
from . import lexicon_adjectives as adjectives
from . import lexicon_time as times
from .clauses import Clause
from .draw import Draw
from .lexicon import Adverb
from .nominals import Nominal
from .predicates import WEATHER, mood
from .structures import Triple, question, statement, structure

DOABLE = ("state", "past")


def clause_of(
    draw: Draw,
    subject: Nominal,
    tense: str,
    only: str = "",
    mode: str = "plain",
    timed: bool = False,
    place: float = 0.3,
    **features: object,
) -> Clause:
    """Draw a clause for the subject; `timed` adds a time that suits the tense."""
    draw.mode = mode
    without = ("state", "past", "once", "long") if mode == "habit" else DOABLE
    action = draw.action(subject, without, only)
    clause = draw.placed(Clause(subject, action, tense, **features), place)
    draw.mode = "plain"
    kind = {"present": "habit", "past": "past"}.get(tense, "future")
    return clause.but(time=draw.time(kind, action)) if timed else clause


def both(first: Clause, en: str, de: str, zh: str, second: Clause) -> Triple:
    return statement(
        f"{first.en()}{en}{second.en()}", f"{first.de()}{de}{second.de()}", f"{first.zh()}{zh}{second.zh()}"
    )


@structure
def past_and_past(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "past", timed=True)
    second = clause_of(draw, draw.other(first.subject), "past")
    return both(first, ", and ", ", und ", "，", second)


@structure
def past_but_past(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "past", timed=True)
    second = clause_of(draw, draw.other(first.subject), "past", mode="negated", negated=True)
    return both(first, ", but ", ", aber ", "，但是", second)


@structure
def future_and_future(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "future", timed=True)
    second = clause_of(draw, draw.other(first.subject), "future")
    return both(first, ", and ", ", und ", "，", second)


@structure
def habit_and_habit(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "present", mode="habit", frequency=draw.frequency())
    second = clause_of(draw, draw.other(first.subject), "present", mode="habit", frequency=draw.frequency())
    return both(first, ", and ", ", und ", "，", second)


@structure
def habit_but_not(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "present", mode="habit", frequency=draw.frequency())
    other = draw.other(first.subject)
    second = clause_of(draw, other, "present", mode="habit", frequency=times.NEVER)
    return both(first, ", but ", ", aber ", "，但是", second)


@structure
def now_and_now(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "progressive", mode="negated")
    second = clause_of(draw, draw.other(first.subject), "progressive", mode="negated")
    return both(first, ", and ", ", und ", "，", second)


@structure
def wants_but_other_wants(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "future", "fun", modal=clauses.WANT)
    second = clause_of(draw, draw.other(first.subject), "future", "fun", modal=clauses.WANT)
    return both(first, ", but ", ", aber ", "，但是", second)


@structure
def must_but_may(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "future", "chore", modal=clauses.HAVE_TO, timed=True)
    second = clause_of(draw, draw.other(first.subject), "future", "fun", modal=clauses.MAY)
    return both(first, ", but ", ", aber ", "，但是", second)


@structure
def can_but_cannot(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "future", modal=clauses.CAN, timed=True)
    second = clause_of(draw, draw.other(first.subject), "future", mode="negated", modal=clauses.CAN, negated=True)
    return both(first, ", but ", ", aber ", "，但是", second)


@structure
def yesterday_and_tomorrow(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = clause_of(draw, subject, "past", timed=True)
    second = clause_of(draw, draw.again(subject), "future", timed=True)
    return statement(
        f"{first.en_time_first()}, and {second.en_time_first()}", f"{first.de_time_first()}, und {second.de_time_first()}",
        f"{first.zh_time_first()}，{second.zh_time_first()}",
    )  # fmt: skip


@structure
def did_and_did(draw: Draw) -> Triple:
    subject = draw.subject()
    first = clause_of(draw, subject, "past", timed=True)
    second = clause_of(draw, subject, "past")
    while (first.action.flags | second.action.flags) & {"ongoing"} or first.action.lemma == second.action.lemma:
        draw.begin()
        first, second = clause_of(draw, subject, "past", timed=True), clause_of(draw, subject, "past")
    time = first.time
    first = first.but(time=None)
    return statement(
        f"{time.en} {first.en()} and {second.en_predicate()}",
        f"{first.de(time.de)} und {second.de_predicate(first.action.de.perfect == second.action.de.perfect)}", f"{time.zh}{first.zh()}，还{second.zh_predicate()}",
    )  # fmt: skip


@structure
def first_then_past(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = clause_of(draw, subject, "past", timed=True)
    second = clause_of(draw, draw.again(subject), "past")
    return statement(
        f"{first.en()}, and then {second.en()}",
        f"{first.de()}, und dann {second.de(' ').strip()}",
        f"{first.zh()}，然后{second.zh_predicate()}",
    )


@structure
def first_then_future(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = clause_of(draw, subject, "future", "chore", timed=True, frequency=Adverb("first", "zuerst", "先"))
    second = clause_of(draw, draw.again(subject), "future", "fun")
    zh = first.but(tense="present").zh()
    return statement(
        f"{first.en()}, and then {second.en()}",
        f"{first.de()}, und dann {second.de(' ').strip()}",
        f"{zh}，然后{second.but(tense='present').zh_predicate()}",
    )


@structure
def either_or(draw: Draw) -> Triple:
    subject = draw.subject()
    first = clause_of(draw, subject, "future", timed=True, frequency=Adverb("either", "entweder", "要么"))
    second = clause_of(draw, subject, "future")
    return statement(
        f"{first.en()} or {second.en_base()}", f"{first.de()} oder {second.de_infinitive()}",
        f"{subject.zh}{first.time.zh}要么{first.but(time=None, frequency=None, tense='present').zh_predicate()}，要么{second.but(tense='present').zh_predicate()}",
    )  # fmt: skip


@structure
def not_but_instead(draw: Draw) -> Triple:
    subject = draw.subject()
    first = clause_of(draw, subject, "past", mode="negated", place=0, negated=True, timed=True)
    second = clause_of(draw, subject, "past", place=0)
    while first.action.de.perfect != second.action.de.perfect:
        second = clause_of(draw, subject, "past", place=0)
    infinitive = second.but(time=None)
    return statement(
        f"{first.en()}, but {infinitive.en_predicate()} instead", f"{first.de()}, sondern {english.joined(*infinitive._german_parts(False), infinitive.action.de.participle)}",
        f"{first.zh()}，而是{infinitive.zh_predicate()}",
    )  # fmt: skip


@structure
def not_only_but_also(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = clause_of(draw, subject, "past", timed=True, place=0, frequency=Adverb("not only", "nicht nur", "不但"))
    second = clause_of(draw, draw.again(subject), "past", place=0, frequency=Adverb("also", "auch", "还"))
    time = first.time
    first = first.but(time=None)
    en = english.joined(
        time.en, subject.en, "not only", first.action.en.past, first.action.en.particle, first._english_end()
    )
    return statement(
        f"{en}, but {second.en()}",
        f"{first.de(time.de)}, sondern {second.de()}",
        f"{time.zh}{first.zh()}，而且{second.zh_predicate()}",
    )


@structure
def mood_so_not(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    mind = mood(
        subject,
        draw.choose(
            [item for item in adjectives.MOODS if item.en in ("tired", "busy", "nervous", "sad", "angry")], True
        ),
        time=draw.choose(times.TODAY),
    )
    second = clause_of(draw, draw.again(subject), "future", mode="negated", negated=True)
    return statement(
        f"{mind.en()}, so {second.en()}",
        f"{mind.de()}, deshalb {second.de(' ').strip()}",
        f"{mind.zh()}，所以{second.zh_predicate()}",
    )


@structure
def weather_so(draw: Draw) -> Triple:
    weather = draw.choose(WEATHER[:5], True)
    second = clause_of(
        draw, draw.subject(), "future", "outdoor", mode="negated", negated=True, time=draw.choose(times.TODAY)
    )
    return statement(
        f"{weather.en}, so {second.en()}",
        f"{weather.de}, deshalb {second.de(' ').strip()}",
        f"{weather.zh}，所以{second.zh()}",
    )


@structure
def mood_still(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    mind = mood(
        subject,
        draw.choose(
            [item for item in adjectives.MOODS if item.en in ("tired", "busy", "nervous", "sad", "angry")], True
        ),
        past=True,
        time=draw.choose(times.PAST_NEAR),
    )
    second = clause_of(draw, draw.again(subject), "past", frequency=Adverb("still", "trotzdem", "还是"))
    return statement(
        f"{mind.en()}, but {second.en()}",
        f"{mind.de()}, aber {second.de()}",
        f"{mind.zh()}，但是{second.zh_predicate()}",
    )


@structure
def asked_or(draw: Draw) -> Triple:
    subject = draw.subject(pronoun=0.4)
    while subject.agreement == "1sg":
        subject = draw.subject(pronoun=0.4)
    first = clause_of(draw, subject, "future", "fun", modal=clauses.WANT, timed=True)
    second = clause_of(draw, subject, "future", "fun", modal=clauses.WANT)
    return question(
        f"{first.en_question()} or {second.en_base()}", f"{first.de_question()} oder {second.de_infinitive()}",
        f"{first.zh()}，还是想{second.but(modal=None, tense='present').zh_predicate('')}",
    )  # fmt: skip


@structure
def morning_and_evening(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = clause_of(draw, subject, "present", "chore", mode="habit", place=0.5).but(time=times.HABIT[6])
    second = clause_of(draw, draw.again(subject), "present", "fun", mode="habit", place=0.5).but(time=times.HABIT[7])
    return statement(
        f"{first.en_time_first()}, and {second.en_time_first()}",
        f"{first.de_time_first()}, und {second.de_time_first()}",
        f"{first.zh_time_first()}，{second.zh_time_first()}",
    )


@structure
def both_people_did(draw: Draw) -> Triple:
    first, second = draw.name(), draw.name()
    while (first.gender == "f" and second.gender == "f") or first.en == second.en:
        second = draw.name()
    one = clause_of(draw, first, "past", "fun", timed=True)
    two = clause_of(draw, second, "past", "chore")
    return statement(
        f"{one.time.en} {one.but(time=None).en()} while {two.en()}",
        f"{one.but(time=None).de(one.time.de)}, während {two.de_subordinate()}", f"{one.time.zh}{second.zh}{two.zh_predicate('')}的时候，{one.but(time=None).zh()}",
    )  # fmt: skip


@structure
def known_fact_and_wish(draw: Draw) -> Triple:
    first = clause_of(draw, draw.subject(), "perfect", focus=clauses.ALREADY)
    while first.action.flags & {"ongoing", "daily"}:
        draw.begin()
        first = clause_of(draw, draw.subject(), "perfect", focus=clauses.ALREADY)
    second = clause_of(draw, draw.other(first.subject), "future", modal=clauses.WANT, timed=True)
    return both(first, ", and ", ", und ", "，", second)
