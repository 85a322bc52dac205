"""Questions inside sentences: do you know where, can you tell me why, they asked whether."""

from __future__ import annotations

from . import clauses, german
from .clauses import Clause
from .draw import Draw
from .structures import Triple, question, statement, structure
from .structures_questions import WHEN, WHO, WHY, asked, where_zh

KNOWING = [
    ("do you know", "weißt du", "你知道", "吗"),
    ("can you tell me", "kannst du mir sagen", "你能告诉我", "吗"),
    ("do you remember", "weißt du noch", "你还记得", "吗"),
]


def indirect(draw: Draw, en: str, de: str, clause: Clause, zh: str) -> Triple:
    """Put a question into `do you know …`, with the German verb at the end."""
    head_en, head_de, head_zh, particle = draw.choose(KNOWING if clause.tense == "past" else KNOWING[:2])
    return question(
        f"{head_en} {en} {clause.en()}", f"{head_de}, {clause.de_subordinate(de)}", f"{head_zh}{zh}{particle}"
    )


@structure
def know_where_did(draw: Draw) -> Triple:
    clause = asked(draw, "past", ("state", "daily"))
    while not clause.action.places:
        draw.begin()
        clause = asked(draw, "past", ("state", "daily"))
    clause = clause.but(time=draw.time("past", clause.action))
    return indirect(draw, "where", "wo", clause, where_zh(clause))


@structure
def know_when_will(draw: Draw) -> Triple:
    clause = draw.placed(asked(draw, "future"))
    return indirect(draw, "when", "wann", clause, clause.but(time=WHEN).zh())


@structure
def know_why_did(draw: Draw) -> Triple:
    clause = asked(draw)
    clause = draw.placed(clause.but(time=draw.time("past", clause.action)))
    return indirect(draw, "why", "warum", clause, clause.but(frequency=WHY).zh(""))


@structure
def know_who_did(draw: Draw) -> Triple:
    clause = Clause(WHO, draw.action(None, ("state",)), "past")
    clause = draw.placed(clause.but(time=draw.time("past", clause.action)))
    head_en, head_de, head_zh, particle = draw.choose(KNOWING)
    return question(
        f"{head_en} {clause.en()}", f"{head_de}, {clause.de_subordinate()}", f"{head_zh}{clause.zh()}{particle}"
    )


@structure
def wonder_whether(draw: Draw) -> Triple:
    clause = asked(draw, "future")
    clause = draw.placed(clause.but(time=draw.time("future", clause.action)))
    asker = draw.other(clause.subject)
    while asker.agreement == "2sg":
        asker = draw.other(clause.subject)
    en = "does not know" if asker.agreement == "3sg" else "do not know"
    zh = clause.zh().replace("会", "会不会", 1)
    return statement(
        f"{asker.en} {en} whether {clause.en()}",
        f"{asker.de['nom']} {german.auxiliary('wissen', asker.agreement)} nicht, {clause.de_subordinate('ob')}",
        f"{asker.zh}不知道{zh}",
    )


@structure
def asked_whether(draw: Draw) -> Triple:
    asker = draw.subject(third=True)
    clause = asked(draw, modal=clauses.CAN)
    while clause.subject.referent == asker.referent:
        draw.begin()
        clause = asked(draw, modal=clauses.CAN)
    clause = draw.placed(clause.but(time=draw.time("future", clause.action)))
    have = german.auxiliary("haben", asker.agreement)
    zh = clause.zh().replace("能", "能不能", 1)
    return statement(
        f"{asker.en} asked whether {clause.en()}",
        f"{asker.de['nom']} {have} gefragt, {clause.de_subordinate('ob')}",
        f"{asker.zh}问{zh}",
    )
