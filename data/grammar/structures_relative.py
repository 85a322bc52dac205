"""Relative clauses: the man who, the book that, the house in which, the colleague whom."""

from __future__ import annotations

from dataclasses import replace

from . import actions, clauses, english, german, nominals
from . import lexicon_adjectives as adjectives
from . import lexicon_people as people
from . import lexicon_places as places
from . import lexicon_verbs as verbs
from .clauses import Clause
from .draw import PERSONS, Draw, nouns_of
from .lexicon import Noun
from .nominals import Nominal
from .structures import Triple, question, statement, structure

SINGULAR = [noun for noun in PERSONS.values() if noun.lemma not in ("neighbor", "colleague", "friend", "boss")]


def who(noun: Noun) -> Nominal:
    """Return the relative pronoun of a person as subject."""
    return Nominal("who", "whom", german.RELATIVE[noun.gender], "", "3sg", f"3sg {noun.gender}")


def described_person(draw: Draw, tense: str) -> tuple[Noun, Clause]:
    """Draw a person and what this person does, as a relative clause."""
    draw.mode = "habit" if tense == "present" else "plain"
    noun = draw.choose(SINGULAR)
    subject = who(noun)
    without = ("state", "past", "once", "long") if tense == "present" else ("state",)
    action = draw.action(subject, without)
    clause = Clause(subject, action, tense, time=draw.time("habit" if tense == "present" else "past", action))
    draw.mode = "plain"
    return noun, draw.placed(clause, 0.5)


def relative_parts(noun: Noun, clause: Clause) -> tuple[str, str, str]:
    """Word `the man who …` in each language; Chinese puts the clause before the noun with 的."""
    en = f"the {noun.en} {clause.en()}"
    de = f"{german.DEFINITE[noun.gender]['nom']} {noun.de}, {clause.de_subordinate()},"
    zh = f"{clause.zh_predicate('')}的那{noun.measure}{noun.zh}"
    return en, de, zh


@structure
def person_who_did_is_kin(draw: Draw) -> Triple:
    noun, clause = described_person(draw, "past")
    en, de, zh = relative_parts(noun, clause)
    kin = draw.choose(
        [item for item in people.KIN.values() if item.gender == noun.gender and item.en_plural != item.en], True
    )
    other = nominals.possessed(kin, draw.choose(["1sg", "2sg"]))
    return statement(f"{en} is {other.en}", f"{de} ist {other.de['nom']}", f"{zh}是{other.zh}")


@structure
def person_who_does_comes_from(draw: Draw) -> Triple:
    noun, clause = described_person(draw, "present")
    en, de, zh = relative_parts(noun, clause)
    country = draw.choose(places.COUNTRIES, True)
    return statement(f"{en} comes from {country[0]}", f"{de} kommt aus {country[1]}", f"{zh}来自{country[2]}")


@structure
def person_who_did_is_mood(draw: Draw) -> Triple:
    noun, clause = described_person(draw, "past")
    en, de, zh = relative_parts(noun, clause)
    feeling = draw.choose(adjectives.MOODS, True)
    return statement(f"{en} is very {feeling.en} today", f"{de} ist heute sehr {feeling.de}", f"{zh}今天很{feeling.zh}")


@structure
def know_person_who_does(draw: Draw) -> Triple:
    draw.mode = "habit"
    subject = draw.subject(adult=True)
    noun = draw.choose(SINGULAR, True)
    whom = who(noun)
    action = draw.action(whom, ("state", "past", "once", "long"))
    clause = draw.placed(Clause(whom, action, time=draw.time("habit", action)), 0.4)
    know = "knows" if subject.agreement == "3sg" else "know"
    kennen = german.verb("kennen, kennt, gekannt").present(subject.agreement)
    person = nominals.indefinite(noun, draw.adjective(noun) if draw.chance(0.3) else None)
    return statement(
        f"{subject.en} {know} {person.en} {clause.en()}", f"{subject.de['nom']} {kennen} {person.de['acc']}, {clause.de_subordinate()}",
        f"{subject.zh}认识一{noun.measure}{clause.zh_predicate('')}的{person.zh.removeprefix('一' + noun.measure)}",
    )  # fmt: skip


@structure
def looking_for_person_who_can(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    noun = draw.choose(list(people.PROFESSIONS.values()), True)
    entry = draw.choose([entry for entry in verbs.TRANSITIVE if "skill" in entry.flags], True)
    skill = actions.transitive(entry, draw.thing(draw.choose(nouns_of(entry.objects), True)))
    clause = Clause(who(noun), skill, modal=clauses.SKILL)
    looking = english.BE_PRESENT[subject.agreement]
    suchen = german.verb("suchen, sucht, gesucht").present(subject.agreement)
    person = nominals.indefinite(noun)
    return statement(
        f"{subject.en} {looking} looking for {person.en} {clause.en()}", f"{subject.de['nom']} {suchen} gerade {person.de['acc']}, {clause.de_subordinate()}",
        f"{subject.zh}正在找一{noun.measure}{clause.zh_predicate()}的{noun.zh}",
    )  # fmt: skip


# --- the object is what is spoken of -----------------------------------------------------------


def thing_done(draw: Draw, groups: tuple[str, ...], lacking: tuple[str, ...] = ()) -> tuple[Noun, Clause]:
    """Draw a thing and who did what with it: the book (that) Anna read yesterday."""
    barred = {"state", "ongoing", "plural"}
    pool = [
        entry for entry in verbs.TRANSITIVE
        if entry.case == "acc" and not entry.flags & barred and entry.lemma not in lacking and any(noun.group in groups for noun in nouns_of(entry.objects))
    ]  # fmt: skip
    entry = draw.choose(pool, True)
    noun = draw.choose([noun for noun in nouns_of(entry.objects) if noun.group in groups], True)
    subject = draw.subject(adult=True, pronoun=0.4)
    action = actions.gapped(entry)
    clause = Clause(subject, action, "past", time=draw.time("past", action))
    if entry.places and draw.chance(0.4):
        clause = clause.but(place=draw.choose(places.group(entry.places)))
    return noun, clause


def that(noun: Noun, clause: Clause, case: str = "acc") -> tuple[str, str, str]:
    """Word `the book that Anna read`; the German pronoun stands in the case of the verb."""
    relative = german.RELATIVE[noun.gender][case]
    en = f"the {noun.en} that {clause.en()}"
    de = f"{german.DEFINITE[noun.gender]['nom']} {noun.de}, {clause.de_subordinate(relative)},"
    return en, de, f"{clause.zh('')}的那{noun.measure}{noun.zh}"


THINGS = ("reading", "thing", "machine", "clothes", "vehicle", "furniture", "culture", "building", "task")


@structure
def thing_that_was_done_is(draw: Draw) -> Triple:
    noun, clause = thing_done(draw, THINGS)
    while not fitting(noun):
        draw.begin()
        noun, clause = thing_done(draw, THINGS)
    quality = draw.choose(fitting(noun), True)
    en, de, zh = that(noun, clause)
    return statement(f"{en} is very {quality.en}", f"{de} ist sehr {quality.de}", f"{zh}很{quality.zh}")


@structure
def thing_that_was_done_was_not(draw: Draw) -> Triple:
    noun, clause = thing_done(draw, THINGS)
    while not fitting(noun):
        draw.begin()
        noun, clause = thing_done(draw, THINGS)
    quality = draw.choose(fitting(noun), True)
    en, de, zh = that(noun, clause)
    return statement(f"{en} was not very {quality.en}", f"{de} war nicht sehr {quality.de}", f"{zh}不太{quality.zh}")


def fitting(noun: Noun) -> list:
    return [item for item in adjectives.said_of(noun) if item.en not in ("new", "old", "clean", "dirty")]


@structure
def where_is_thing_that(draw: Draw) -> Triple:
    kinds = ("reading", "mail", "thing", "clothes", "household", "food")
    noun, clause = thing_done(
        draw, kinds, ("eat", "find", "lose", "hide", "break", "taste", "sell", "order", "describe")
    )
    en, de, zh = that(noun, clause)
    return question(f"where is {en}", f"wo ist {de.removesuffix(',')}", f"{zh}在哪里")


@structure
def cannot_find_thing_that(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    noun, clause = thing_done(
        draw, ("reading", "mail", "thing", "clothes"), ("find", "lose", "sell", "describe", "try on")
    )
    can = german.auxiliary("können", subject.agreement)
    article = german.DEFINITE[noun.gender]["acc"]
    en, de, zh = that(noun, clause)
    relative = de.split(", ", 1)[1]
    return statement(
        f"{subject.en} cannot find {en}",
        f"{subject.de['nom']} {can} {article} {noun.de} nicht finden, {relative.removesuffix(',')}",
        f"{subject.zh}找不到{zh}",
    )


@structure
def likes_thing_that(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    noun, clause = thing_done(
        draw, ("reading", "culture", "clothes", "furniture", "building"), ("sell", "describe", "carry", "clean", "wash")
    )
    mögen = german.auxiliary("mögen", subject.agreement)
    en, de, zh = that(noun, clause)
    like = "likes" if subject.agreement == "3sg" else "like"
    article = german.DEFINITE[noun.gender]["acc"]
    relative = de.split(", ", 1)[1]
    return statement(
        f"{subject.en} {like} {en}",
        f"{subject.de['nom']} {mögen} {article} {noun.de}, {relative.removesuffix(',')}",
        f"{subject.zh}喜欢{zh}",
    )


@structure
def person_whom_is(draw: Draw) -> Triple:
    entry = draw.choose(
        [
            entry
            for entry in verbs.TRANSITIVE
            if entry.lemma in ("help", "thank", "invite", "call", "visit", "greet", "ask", "pick up", "interview")
            and entry.objects[0] in ("person", "kin", "singer")
        ],
        True,
    )
    noun = draw.choose(SINGULAR, True)
    subject = draw.subject(adult=True, pronoun=0.4)
    action = replace(actions.gapped(entry), zh=entry.zh.replace("给~", "给他").replace("跟~", "跟他").replace("~", ""))
    clause = Clause(subject, action, "past", time=draw.time("past", action))
    if "给~" in entry.zh or "跟~" in entry.zh:
        pronoun = "她" if noun.gender == "f" else "他"
        action = replace(action, zh=entry.zh.replace("~", pronoun))
        clause = clause.but(action=action)
    relative = german.RELATIVE[noun.gender][entry.case]
    country = draw.choose(places.COUNTRIES, True)
    return statement(
        f"the {noun.en} whom {clause.en()} comes from {country[0]}",
        f"{german.DEFINITE[noun.gender]['nom']} {noun.de}, {clause.de_subordinate(relative)}, kommt aus {country[1]}",
        f"{clause.zh('')}的那{noun.measure}{noun.zh}来自{country[2]}",
    )  # fmt: skip


@structure
def person_with_whom(draw: Draw) -> Triple:
    noun = draw.choose(SINGULAR, True)
    subject = draw.subject(adult=True, pronoun=0.4)
    action = draw.action(subject, ("state", "known", "ongoing"), "social")
    while action.object and action.object.referent:
        action = draw.action(subject, ("state", "known", "ongoing"), "social")
    clause = draw.placed(Clause(subject, action, "past", time=draw.time("past", action)), 0.4)
    pronoun = "她" if noun.gender == "f" else "他"
    zh = clause.but(action=replace(action, zh=f"跟{pronoun}一起" + action.zh, zh_done=""))
    town = draw.choose(places.CITIES, True)
    return statement(
        f"the {noun.en} with whom {clause.en()} lives in {town[0]}",
        f"{german.DEFINITE[noun.gender]['nom']} {noun.de}, {clause.de_subordinate('mit ' + german.RELATIVE[noun.gender]['dat'])}, wohnt in {town[1]}",
        f"{zh.zh('')}的那{noun.measure}{noun.zh}住在{town[2]}",
    )  # fmt: skip


@structure
def place_where_one_does(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    entry = draw.choose(
        [
            entry
            for entry in verbs.INTRANSITIVE + verbs.TRANSITIVE
            if entry.lemma
            in (
                "work",
                "study",
                "swim",
                "dance",
                "jog",
                "go shopping",
                "have lunch",
                "have dinner",
                "play",
                "read",
                "eat",
                "drink",
                "buy",
            )
        ],
        True,
    )
    draw.mode = "habit"
    action = (
        actions.transitive(entry, draw.object_for(entry, subject)) if entry.objects else actions.intransitive(entry)
    )
    place = draw.choose([item for item in places.group(entry.places) if adjectives.said_of(item.noun)], True)
    quality = draw.choose([item for item in adjectives.said_of(place.noun) if item.en != "new"], True)
    noun = place.noun
    clause = Clause(subject, action, time=draw.time("habit", action))
    preposition = {"am": "an", "im": "in", "auf": "auf", "beim": "bei", "zum": "zu"}.get(
        place.de.split()[0], place.de.split()[0]
    )
    return statement(
        f"the {noun.en} where {clause.en()} is very {quality.en}",
        f"{german.DEFINITE[noun.gender]['nom']} {noun.de}, {preposition} {german.RELATIVE[noun.gender]['dat']} {clause.de_subordinate()}, ist sehr {quality.de}",
        f"{clause.subject.zh}{clause.zh_predicate('')}的那{noun.measure}{noun.zh}很{quality.zh}",
    )  # fmt: skip
