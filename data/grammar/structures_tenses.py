"""One clause with a verb: habits, present, past, perfect and future, affirmed and denied."""

from __future__ import annotations

from . import actions
from . import lexicon_places as places
from . import lexicon_time as times
from .clauses import ALREADY, JUST, NEVER, Clause
from .draw import Draw
from .structures import Triple, statement, structure

NOT_TOLD = ("state", "past")
NO_HABIT = ("state", "past", "once", "long")


def told(clause: Clause) -> Triple:
    return statement(clause.en(), clause.de(), clause.zh())


def told_time_first(clause: Clause) -> Triple:
    return statement(clause.en_time_first(), clause.de_time_first(), clause.zh_time_first())


def habit(draw: Draw, **features: object) -> Clause:
    """Draw what somebody does again and again."""
    draw.mode = "habit"
    subject = draw.subject()
    action = draw.action(subject, NO_HABIT)
    if features.pop("timed", False):
        features["time"] = draw.time("habit", action)
    return draw.placed(Clause(subject, action, **features))


def past(draw: Draw, without: tuple[str, ...] = ("state",), **features: object) -> Clause:
    """Draw what somebody did, with a time."""
    draw.mode = "negated" if features.get("negated") else "plain"
    subject = draw.subject()
    action = draw.action(subject, without)
    return draw.placed(Clause(subject, action, "past", time=draw.time("past", action), **features))


def future(draw: Draw, **features: object) -> Clause:
    """Draw what somebody will do, with a time."""
    draw.mode = "negated" if features.get("negated") else "plain"
    subject = draw.subject()
    action = draw.action(subject, NOT_TOLD)
    return draw.placed(Clause(subject, action, "future", time=draw.time("future", action), **features))


@structure
def habit_with_frequency(draw: Draw) -> Triple:
    return told(
        habit(draw, frequency=draw.frequency(), time=draw.choose(times.PART_OF_WEEK) if draw.chance(0.4) else None)
    )


@structure
def habit_every_time(draw: Draw) -> Triple:
    return told(habit(draw, timed=True))


@structure
def habit_time_first(draw: Draw) -> Triple:
    return told_time_first(habit(draw, timed=True))


@structure
def habit_denied(draw: Draw) -> Triple:
    return told(habit(draw, time=draw.choose(times.DAYS + times.PART_OF_WEEK), negated=True))


@structure
def habit_in_season(draw: Draw) -> Triple:
    return told_time_first(habit(draw, time=draw.time("season"), frequency=draw.frequency()))


@structure
def routine_at_clock(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, only="daily")
    return told(draw.placed(Clause(subject, action, time=draw.choose(times.EVERY_DAY), clock=draw.clock(action))))


@structure
def routine_yesterday(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, only="daily")
    time = draw.choose(times.PAST[-7:] + times.PAST[:1])
    return told_time_first(draw.placed(Clause(subject, action, "past", time=time, clock=draw.clock(action))))


@structure
def routine_tomorrow(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, only="daily")
    time = draw.choose(times.FUTURE[-7:] + times.FUTURE[:1])
    return told(draw.placed(Clause(subject, action, "future", time=time, clock=draw.clock(action))))


@structure
def progressive_now(draw: Draw) -> Triple:
    draw.mode = "negated"
    subject = draw.subject()
    return told(draw.placed(Clause(subject, draw.action(subject, ("state", "past", "once")), "progressive"), 0.9))


@structure
def past_with_time(draw: Draw) -> Triple:
    return told(past(draw))


@structure
def past_time_first(draw: Draw) -> Triple:
    return told_time_first(past(draw))


@structure
def past_at_clock(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, ("state", "daily", "long", "ongoing"))
    time = draw.choose(times.PAST[-7:] + times.PAST[:1])
    return told(draw.placed(Clause(subject, action, "past", time=time, clock=draw.clock())))


@structure
def past_denied(draw: Draw) -> Triple:
    return told(past(draw, negated=True))


@structure
def past_denied_time_first(draw: Draw) -> Triple:
    return told_time_first(past(draw, negated=True))


@structure
def past_with_company(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, ("state", "known", "ongoing"), "social")
    while action.object and action.object.referent:
        draw.begin()
        action = draw.action(subject, ("state", "known", "ongoing"), "social")
    clause = Clause(
        subject, actions.with_company(action, draw.receiver(subject)), "past", time=draw.time("past", action)
    )
    return told(draw.placed(clause))


@structure
def future_with_time(draw: Draw) -> Triple:
    return told(future(draw))


@structure
def future_time_first(draw: Draw) -> Triple:
    return told_time_first(future(draw))


@structure
def future_denied(draw: Draw) -> Triple:
    return told(future(draw, negated=True))


@structure
def future_denied_time_first(draw: Draw) -> Triple:
    return told_time_first(future(draw, negated=True))


@structure
def perfect_already(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, ("state", "past", "ongoing"))
    return told(draw.placed(Clause(subject, action, "perfect", focus=ALREADY), 0.4))


@structure
def perfect_just(draw: Draw) -> Triple:
    subject = draw.subject()
    action = draw.action(subject, ("state", "ongoing", "long"))
    return told(draw.placed(Clause(subject, action, "perfect", focus=JUST)))


@structure
def perfect_never(draw: Draw) -> Triple:
    draw.mode = "habit"
    subject = draw.subject()
    action = draw.action(subject, ("state", "past", "known", "daily", "ongoing"))
    return told(draw.placed(Clause(subject, action, "perfect", focus=NEVER)))


@structure
def motion_past(draw: Draw) -> Triple:
    return told(motion(draw, "past"))


@structure
def motion_past_time_first(draw: Draw) -> Triple:
    return told_time_first(motion(draw, "past"))


@structure
def motion_future(draw: Draw) -> Triple:
    return told(motion(draw, "future"))


@structure
def motion_habit(draw: Draw) -> Triple:
    return told_time_first(motion(draw, "present"))


def motion(draw: Draw, tense: str) -> Clause:
    """Draw a way through the town, by some means or with company."""
    subject = draw.subject()
    place = draw.choose(places.group("go"), content=True)
    means = draw.means(subject) if draw.chance(0.5) else None
    company = None if means else draw.receiver(subject)
    time = draw.time({"present": "habit"}.get(tense, tense))
    return Clause(subject, actions.motion(place, means, company), tense, time=time)


@structure
def journey_past(draw: Draw) -> Triple:
    return told(journey(draw, "past"))


@structure
def journey_future(draw: Draw) -> Triple:
    return told_time_first(journey(draw, "future"))


def journey(draw: Draw, tense: str) -> Clause:
    """Draw a journey to a town or country; overseas one flies."""
    subject = draw.subject(adult=True)
    town = draw.choose(places.CITIES + places.COUNTRIES, content=True)
    flies = town[0] in places.OVERSEAS or draw.chance(0.3)
    action = actions.journey(town, None if flies else draw.choose(places.FAR_TRAVEL_BY, content=True))
    if flies:
        action = actions.with_company(action, draw.receiver(subject))
    return Clause(subject, action, tense, time=draw.choose(times.PAST_FAR if tense == "past" else times.FUTURE_FAR))
