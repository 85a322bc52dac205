"""Infinitives: try to, forget to, promise to, in order to, without, instead of, it is important to."""

from __future__ import annotations

from dataclasses import replace

from . import clauses, english, german
from . import lexicon_adjectives as adjectives
from . import lexicon_places as places
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .actions import intransitive, motion, transitive
from .clauses import Clause
from .draw import Draw, nouns_of
from .nominals import Nominal
from .structures import Triple, statement, structure

DOABLE = ("state", "past", "ongoing")


def task(
    draw: Draw,
    subject: Nominal,
    only: str = "",
    without: tuple[str, ...] = DOABLE,
    mode: str = "plain",
    place: float = 0.4,
) -> Clause:
    """Draw something to be done, for an infinitive."""
    draw.mode = mode
    clause = draw.placed(Clause(subject, draw.action(subject, without, only)), place)
    draw.mode = "plain"
    return clause


def past_with_infinitive(draw: Draw, en: str, de: str, zh: str, only: str = "") -> Triple:
    """Say that somebody tried, began … to do something, at a past time put first."""
    subject = draw.subject()
    clause = task(draw, subject, only)
    time = draw.time("past", clause.action)
    verb = german.verb(de)
    finite = german.auxiliary(verb.perfect, subject.agreement)
    return statement(
        f"{time.en} {subject.en} {en} {clause.en_infinitive()}", f"{time.de} {finite} {subject.de['nom']} {verb.participle}, {clause.de_zu()}",
        f"{time.zh}{subject.zh}{zh}{clause.zh_predicate('')}",
    )  # fmt: skip


@structure
def tried_to(draw: Draw) -> Triple:
    return past_with_infinitive(draw, "tried", "versuchen, versucht, versucht", "试着")


@structure
def forgot_to(draw: Draw) -> Triple:
    return past_with_infinitive(draw, "forgot", "vergessen, vergisst, vergessen", "忘了", "chore")


@structure
def decided_to(draw: Draw) -> Triple:
    return past_with_infinitive(draw, "decided", "beschließen, beschließt, beschlossen", "决定")


@structure
def promised_to(draw: Draw) -> Triple:
    subject = draw.subject()
    other = draw.other(subject, pronoun=0)
    clause = task(draw, subject)
    time = draw.time("future", clause.action)
    clause = clause.but(time=time)
    finite = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{subject.en} promised {other.en_object} {clause.en_infinitive()}", f"{subject.de['nom']} {finite} {other.de['dat']} versprochen, {clause.de_zu()}",
        f"{subject.zh}答应{other.zh}{clause.zh_predicate('')}",
    )  # fmt: skip


@structure
def hopes_to(draw: Draw) -> Triple:
    subject = draw.subject()
    clause = task(draw, subject)
    clause = clause.but(time=draw.time("future", clause.action))
    hope = "hopes" if subject.agreement == "3sg" else "hope"
    hoffen = german.verb("hoffen, hofft, gehofft").present(subject.agreement)
    return statement(
        f"{subject.en} {hope} {clause.en_infinitive()}",
        f"{subject.de['nom']} {hoffen}, {clause.de_zu()}",
        f"{subject.zh}希望{clause.but(modal=clauses.CAN).zh_predicate()}",
    )


@structure
def plans_to(draw: Draw) -> Triple:
    subject = draw.subject()
    clause = task(draw, subject)
    clause = clause.but(time=draw.time("future", clause.action))
    plan = "plans" if subject.agreement == "3sg" else "plan"
    planen = german.verb("planen, plant, geplant").present(subject.agreement)
    return statement(
        f"{subject.en} {plan} {clause.en_infinitive()}",
        f"{subject.de['nom']} {planen}, {clause.de_zu()}",
        f"{subject.zh}打算{clause.zh_predicate('')}",
    )


@structure
def has_no_time_to(draw: Draw) -> Triple:
    subject = draw.subject()
    clause = task(draw, subject, mode="negated")
    time = draw.choose([*times.TODAY, *times.FUTURE_NEAR[:2]])
    has = "does not have" if subject.agreement == "3sg" else "do not have"
    haben = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{subject.en} {has} time {clause.en_infinitive()} {time.en}",
        f"{subject.de['nom']} {haben} {time.de} keine Zeit, {clause.de_zu()}",
        f"{subject.zh}{time.zh}没有时间{clause.zh_predicate('')}",
    )


@structure
def too_tired_to(draw: Draw) -> Triple:
    subject = draw.subject()
    clause = task(draw, subject, mode="negated")
    feeling = draw.choose(
        [item for item in adjectives.MOODS if item.en in ("tired", "busy", "nervous", "angry", "sad")], True
    )
    time = draw.choose(times.PAST_NEAR)
    war = german.auxiliary("war", subject.agreement)
    return statement(
        f"{time.en} {subject.en} {english.BE_PAST[subject.agreement]} too {feeling.en} {clause.en_infinitive()}",
        f"{time.de} {war} {subject.de['nom']} zu {feeling.de}, um {clause.de_zu()}", f"{time.zh}{subject.zh}太{feeling.zh}了，不能{clause.zh_predicate('')}",
    )  # fmt: skip


EVALUATED = [
    ("important", "wichtig", "重要"), ("difficult", "schwierig", "难"), ("healthy", "gesund", "健康"), ("fun", "", ""), ("dangerous", "gefährlich", "危险"),
]  # fmt: skip


@structure
def it_is_important_for(draw: Draw) -> Triple:
    subject = draw.subject(pronoun=0)
    clause = task(draw, subject)
    en, de, zh = draw.choose(EVALUATED[:2], True)
    return statement(
        f"it is {en} for {subject.en_object} {clause.en_infinitive()}", f"es ist für {subject.de['acc']} {de}, {clause.de_zu()}",
        f"{clause.zh_predicate('')}对{subject.zh}来说很{zh}",
    )  # fmt: skip


@structure
def it_was_not_easy_for(draw: Draw) -> Triple:
    subject = draw.subject(pronoun=0)
    clause = task(draw, subject, "chore")
    return statement(
        f"it was not easy for {subject.en_object} {clause.en_infinitive()}", f"es war für {subject.de['acc']} nicht einfach, {clause.de_zu()}",
        f"{clause.zh_predicate('')}对{subject.zh}来说不容易",
    )  # fmt: skip


def purpose(draw: Draw, subject: Nominal) -> tuple[Clause, Clause] | None:
    """Draw a place one goes to and what one can do there."""
    action = draw.action(subject, ("state", "past", "daily", "known", "ongoing"))
    if action.lemma == "speak":
        return None
    spots = [place for place in places.group(action.places) if place.noun.en in GOALS] if action.places else []
    if not spots:
        return None
    place = draw.choose(spots, True)
    return Clause(subject, motion(place)), Clause(subject, action)


GOALS = places.PLACE_GROUPS["go"].split("; ")


@structure
def went_in_order_to(draw: Draw) -> Triple:
    while True:
        draw.begin()
        subject = draw.subject()
        found = purpose(draw, subject)
        if found:
            break
    way, goal = found
    way = way.but(tense="past", time=draw.choose(times.PAST_NEAR))
    return statement(
        f"{way.en()} {goal.en_infinitive()}", f"{way.de()}, um {goal.de_zu()}", f"{way.zh('')}{done(goal)}"
    )


def done(goal: Clause) -> str:
    """Return the purpose as done, with its 了."""
    return goal.but(tense="past").zh_predicate()


@structure
def will_go_in_order_to(draw: Draw) -> Triple:
    while True:
        draw.begin()
        subject = draw.subject()
        found = purpose(draw, subject)
        if found:
            break
    way, goal = found
    way = way.but(tense="future", time=draw.choose(times.FUTURE_NEAR))
    return statement(
        f"{way.en()} {goal.en_infinitive()}", f"{way.de()}, um {goal.de_zu()}", f"{way.zh()}{goal.zh_predicate('')}"
    )


@structure
def has_to_go_in_order_to(draw: Draw) -> Triple:
    while True:
        draw.begin()
        subject = draw.subject()
        found = purpose(draw, subject)
        if found:
            break
    way, goal = found
    way = way.but(modal=clauses.HAVE_TO, time=draw.choose(times.FUTURE_NEAR))
    return statement(
        f"{way.en()} {goal.en_infinitive()}", f"{way.de()}, um {goal.de_zu()}", f"{way.zh()}{goal.zh_predicate('')}"
    )


def undone(clause: Clause) -> str:
    """Return the Chinese words for what is not done, without 一 and measure word."""
    action = clause.action
    return clause.but(action=replace(action, zh=action.zh_negated or action.zh)).zh_predicate("")


@structure
def without_doing(draw: Draw) -> Triple:
    subject, leaving = draw.subject(), draw.choose(["leave the house", "go to bed", "come home"])
    entry = next(entry for entry in verbs.INTRANSITIVE if entry.lemma == leaving)
    main = Clause(subject, intransitive(entry), "past", time=draw.choose(times.PAST_NEAR))
    other = task(draw, subject, "chore", ("state", "past", "ongoing", "long"), "negated", 0)
    return statement(
        f"{main.en()} without {other.en_gerund()}",
        f"{main.de()}, ohne {other.de_zu()}",
        f"{main.subject.zh}{main._chinese_time()}没{undone(other)}就{main.but(time=None).zh_predicate()}",
    )


@structure
def instead_of_doing(draw: Draw) -> Triple:
    subject = draw.subject()
    main = task(draw, subject, "fun").but(tense="past")
    main = main.but(time=draw.time("past", main.action))
    other = task(draw, subject, "chore", mode="negated")
    return statement(
        f"{main.en()} instead of {other.en_gerund()}",
        f"{main.de()}, statt {other.de_zu()}",
        f"{subject.zh}{main._chinese_time()}没有{undone(other)}，而是{main.but(time=None).zh_predicate()}",
    )


# --- somebody gets somebody else to do it --------------------------------------------------------


def caused(draw: Draw, en: str, verb: str, zh: str, only: str = "", case: str = "acc") -> Triple:
    """Say that one person asked, allowed, advised … another one to do something."""
    subject = draw.subject()
    other = draw.other(subject, pronoun=0.3)
    clause = task(draw, other, only)
    time = draw.time("past")
    spoken = german.verb(verb)
    finite = german.auxiliary("haben", subject.agreement)
    people = f"{subject.de['nom']} {other.de[case]}"
    if other.pronoun and not subject.pronoun:
        people = f"{other.de[case]} {subject.de['nom']}"
    return statement(
        f"{time.en} {subject.en} {en} {other.en_object} {clause.en_infinitive()}",
        f"{time.de} {finite} {people} {spoken.participle}, {clause.de_zu()}",
        f"{time.zh}{subject.zh}{zh}{other.zh}{clause.zh_predicate('')}",
    )  # fmt: skip


@structure
def asked_to(draw: Draw) -> Triple:
    return caused(draw, "asked", "bitten, bittet, gebeten", "请")


@structure
def allowed_to(draw: Draw) -> Triple:
    return caused(draw, "allowed", "erlauben, erlaubt, erlaubt", "允许", "", "dat")


@structure
def advised_to(draw: Draw) -> Triple:
    return caused(draw, "advised", "raten, rät, geraten", "建议", "", "dat")


@structure
def helped_to(draw: Draw) -> Triple:
    return caused(draw, "helped", "helfen, hilft, geholfen", "帮", "chore", "dat")


@structure
def taught_to(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    other = draw.other(subject, pronoun=0)
    entry = draw.choose([entry for entry in verbs.TRANSITIVE if "skill" in entry.flags and entry.lemma == "play"], True)
    noun = draw.choose(nouns_of(entry.objects), True)
    clause = Clause(other, transitive(entry, draw.thing(noun)), "past")
    time = draw.choose(times.PAST_FAR)
    finite = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{time.en} {subject.en} taught {other.en_object} {clause.en_infinitive()}", f"{time.de} {finite} {subject.de['nom']} {other.de['dat']} beigebracht, {clause.de_zu()}",
        f"{time.zh}{subject.zh}教会了{other.zh}{clause.zh_predicate('')}",
    )  # fmt: skip


@structure
def saw_doing(draw: Draw) -> Triple:
    subject = draw.subject()
    other = draw.other(subject, pronoun=0)
    draw.mode = "negated"
    pool = [
        entry
        for entry in verbs.INTRANSITIVE
        if entry.lemma in ("dance", "swim", "go for a walk", "jog", "fish", "camp", "go shopping", "work", "study")
    ]
    clause = draw.placed(Clause(other, intransitive(draw.choose(pool, True))))
    time = draw.choose(times.PAST_NEAR)
    finite = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{time.en} {subject.en} saw {other.en_object} {clause.en_gerund()}", f"{time.de} {finite} {subject.de['nom']} gesehen, wie {clause.de_subordinate()}",
        f"{time.zh}{subject.zh}看见{other.zh}{clause.zh_predicate('')}",
    )  # fmt: skip
