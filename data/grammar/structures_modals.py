"""Modals and commands: can, must, should, may, want, would like, have to, let us, please."""

from __future__ import annotations

from . import clauses, nominals
from . import lexicon_time as times
from .clauses import Clause, Modal
from .draw import Draw
from .lexicon import Adverb
from .structures import Triple, command, question, statement, structure
from .structures_tenses import told, told_time_first

NOT_MEANT = ("state", "past")


def meant(draw: Draw, modal: Modal, negated: bool = False, tense: str = "future", **features: object) -> Clause:
    """Draw who can, must or wants to do what, and when."""
    draw.mode = "negated" if negated else "plain"
    subject = draw.subject()
    action = draw.action(subject, NOT_MEANT)
    return draw.placed(
        Clause(subject, action, modal=modal, negated=negated, time=draw.time(tense, action), **features), 0.5
    )


@structure
def can_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.CAN))


@structure
def cannot_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.CAN, negated=True))


@structure
def cannot_time_first(draw: Draw) -> Triple:
    return told_time_first(meant(draw, clauses.CAN, negated=True))


@structure
def must_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.MUST))


@structure
def must_time_first(draw: Draw) -> Triple:
    return told_time_first(meant(draw, clauses.MUST))


@structure
def must_not(draw: Draw) -> Triple:
    return told(meant(draw, clauses.MUST, negated=True))


@structure
def should_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.SHOULD))


@structure
def should_not(draw: Draw) -> Triple:
    return told(meant(draw, clauses.SHOULD, negated=True))


@structure
def may_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.MAY))


@structure
def want_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.WANT))


@structure
def want_time_first(draw: Draw) -> Triple:
    return told_time_first(meant(draw, clauses.WANT))


@structure
def want_denied(draw: Draw) -> Triple:
    return told(meant(draw, clauses.WANT, negated=True))


@structure
def would_like_to(draw: Draw) -> Triple:
    return told(meant(draw, clauses.LIKE))


@structure
def have_to_with_time(draw: Draw) -> Triple:
    return told(meant(draw, clauses.HAVE_TO))


@structure
def have_to_denied(draw: Draw) -> Triple:
    return told(meant(draw, clauses.HAVE_TO, negated=True))


@structure
def could_not_past(draw: Draw) -> Triple:
    return told(meant(draw, clauses.COULD, negated=True, tense="past"))


@structure
def could_not_past_time_first(draw: Draw) -> Triple:
    return told_time_first(meant(draw, clauses.COULD, negated=True, tense="past"))


@structure
def had_to_past(draw: Draw) -> Triple:
    return told(meant(draw, clauses.HAD_TO, tense="past"))


@structure
def wanted_past(draw: Draw) -> Triple:
    return told_time_first(meant(draw, clauses.WANTED, tense="past"))


@structure
def skill_and_skill(draw: Draw) -> Triple:
    first, second = skills(draw)
    return statement(
        f"{first.en()} and {second.en_base()}",
        f"{first.de()} und {second.de_infinitive()}",
        f"{first.zh()}，也{second.zh_predicate()}",
    )


@structure
def skill_but_no_skill(draw: Draw) -> Triple:
    first, second = skills(draw)
    second = second.but(subject=draw.again(second.subject), negated=True)
    return statement(
        f"{first.en()}, but {second.en()}",
        f"{first.de()}, aber {second.de()}",
        f"{first.zh()}，但是{second.zh_predicate()}",
    )


def skills(draw: Draw) -> tuple[Clause, Clause]:
    """Draw two different things somebody has learned."""
    subject = draw.referring(adult=False)
    first = skill(draw, subject)
    second = skill(draw, subject)
    while first.zh == second.zh:
        second = skill(draw, subject)
    return Clause(subject, first, modal=clauses.SKILL), Clause(subject, second, modal=clauses.SKILL)


def skill(draw: Draw, subject: nominals.Nominal) -> clauses.Action:
    if draw.chance(0.25):
        return draw.intransitive(subject, only="skill")
    return draw.transitive(subject, only="skill")


@structure
def want_but_have_to(draw: Draw) -> Triple:
    subject = draw.referring(adult=False)
    wish = Clause(subject, draw.action(subject, NOT_MEANT, "fun"), modal=clauses.WANT, time=draw.time("future"))
    duty = Clause(draw.again(subject), draw.action(subject, NOT_MEANT, "chore"), modal=clauses.HAVE_TO)
    wish, duty = draw.placed(wish, 0.3), draw.placed(duty, 0.3)
    return statement(
        f"{wish.en()}, but {duty.en()}", f"{wish.de()}, aber {duty.de()}", f"{wish.zh()}，但是{duty.zh_predicate()}"
    )


@structure
def wanted_but_had_to(draw: Draw) -> Triple:
    subject = draw.referring(adult=False)
    wish = Clause(
        subject, draw.action(subject, NOT_MEANT, "fun"), modal=clauses.WANTED, time=draw.choose(times.PAST_NEAR)
    )
    duty = Clause(draw.again(subject), draw.action(subject, NOT_MEANT, "chore"), modal=clauses.HAD_TO)
    wish, duty = draw.placed(wish, 0.3), draw.placed(duty, 0.3)
    return statement(
        f"{wish.en()}, but {duty.en()}", f"{wish.de()}, aber {duty.de()}", f"{wish.zh()}，但是{duty.zh_predicate()}"
    )


YOU = nominals.personal_pronoun("2sg")
WE = nominals.personal_pronoun("1pl")


def ordered(draw: Draw, negated: bool = False) -> Clause:
    draw.mode = "negated" if negated else "plain"
    action = draw.action(YOU, ("state", "past", "long", "ongoing"))
    return draw.placed(Clause(YOU, action, negated=negated), 0.5)


@structure
def command_please(draw: Draw) -> Triple:
    clause = ordered(draw)
    clause = clause.but(time=draw.choose(times.SOON))
    return command(f"please {clause.en_base()}", clause.de_imperative("bitte"), f"请{clause.zh_predicate('')}")


@structure
def command_not(draw: Draw) -> Triple:
    clause = ordered(draw, negated=True)
    clause = clause.but(time=draw.choose(times.SOON))
    zh = clause.but(negated=False, action=bare_in_chinese(clause)).zh_predicate("")
    return command(
        f"do not {clause.en_base()}", clause.de_imperative(), f"{clause.time.zh}别{zh.removeprefix(clause.time.zh)}"
    )


def bare_in_chinese(clause: Clause) -> clauses.Action:
    """Return the action with the Chinese wording for things not done."""
    return clauses.replace(clause.action, zh=clause.action.zh_negated or clause.action.zh)


@structure
def let_us(draw: Draw) -> Triple:
    clause = draw.placed(Clause(WE, draw.action(WE, ("state", "past", "long")), time=draw.choose(times.SOON)))
    return command(f"let us {clause.en_base()}", f"lass uns {de_let_us(clause)}", f"{clause.zh('')}吧")


def de_let_us(clause: Clause) -> str:
    words = clause.de_infinitive()
    return words.removeprefix("uns ")


@structure
def shall_we(draw: Draw) -> Triple:
    modal = Modal("shall", "shall", "sollen", "", "")
    clause = draw.placed(
        Clause(WE, draw.action(WE, ("state", "past", "long")), modal=modal, time=draw.choose(times.SOON))
    )
    return question(clause.en_question(), clause.de_question(), f"{clause.zh()}好吗")


@structure
def could_you_please(draw: Draw) -> Triple:
    polite = Modal("could", "could", "könnte", "能", "不能")
    clause = draw.placed(
        Clause(
            YOU,
            draw.action(YOU, (*NOT_MEANT, "ongoing", "long", "daily")),
            modal=polite,
            time=draw.choose(times.SOON),
            frequency=Adverb("please", "bitte", ""),
        )
    )
    return question(clause.en_question(), clause.de_question(), f"请问{clause.zh()}吗")
