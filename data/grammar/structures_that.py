"""That-clauses: think, hope, know, say, hear that; it is nice, a pity that; glad that."""

from __future__ import annotations

from . import clauses, english, german
from . import lexicon_adjectives as adjectives
from . import lexicon_time as times
from .clauses import Clause
from .draw import Draw
from .predicates import mood
from .structures import Triple, statement, structure
from .structures_subordinate import Said, deed, habit

# English by person, German verb, Chinese.
THINKING = [
    ("think", "thinks", "glauben, glaubt, geglaubt", "认为"), ("hope", "hopes", "hoffen, hofft, gehofft", "希望"),
    ("know", "knows", "wissen, weiß, gewusst", "知道"), ("am sure", "is sure", "sein, ist, ist gewesen", "相信"),
]  # fmt: skip
TELLING = [
    ("said", "sagen, sagt, gesagt", "说"),
    ("heard", "hören, hört, gehört", "听说"),
    ("wrote", "schreiben, schreibt, geschrieben", "写信说"),
]


def thinking(draw: Draw, index: int, content: Said, zh: str = "") -> Triple:
    one, third, verb, word = THINKING[index]
    thinker = draw.other(content.subject)
    en = third if thinker.agreement == "3sg" else one
    finite = german.verb(verb).present(thinker.agreement)
    return statement(
        f"{thinker.en} {en} that {content.en()}",
        f"{thinker.de['nom']} {finite}, {content.de_subordinate('dass')}",
        f"{thinker.zh}{word}{zh or content.zh()}",
    )


@structure
def think_that_future(draw: Draw) -> Triple:
    return thinking(draw, 0, deed(draw, draw.subject(), "future", timed=True))


@structure
def think_that_past(draw: Draw) -> Triple:
    return thinking(draw, 0, deed(draw, draw.subject(), "past", timed=True))


@structure
def think_that_should(draw: Draw) -> Triple:
    return thinking(draw, 0, deed(draw, draw.subject(), "future", modal=clauses.SHOULD, timed=True))


@structure
def hope_that_future(draw: Draw) -> Triple:
    content = deed(draw, draw.subject(), "future", timed=True)
    return thinking(draw, 1, content, content.but(modal=clauses.CAN).zh())


@structure
def know_that_past(draw: Draw) -> Triple:
    return thinking(draw, 2, deed(draw, draw.subject(), "past", timed=True))


@structure
def know_that_habit(draw: Draw) -> Triple:
    return thinking(draw, 2, habit(draw, draw.subject(), timed=True))


@structure
def know_that_not(draw: Draw) -> Triple:
    return thinking(draw, 2, deed(draw, draw.subject(), "past", negated=True, timed=True))


@structure
def said_that_can_not(draw: Draw) -> Triple:
    return telling(draw, 0, deed(draw, draw.subject(), "future", negated=True, modal=clauses.CAN, timed=True))


@structure
def said_that_must(draw: Draw) -> Triple:
    return telling(draw, 0, deed(draw, draw.subject(), "future", modal=clauses.HAVE_TO, timed=True))


@structure
def said_that_mood(draw: Draw) -> Triple:
    subject = draw.subject()
    return telling(draw, 0, mood(subject, draw.choose(adjectives.MOODS, True), time=draw.choose(times.TODAY)))


@structure
def heard_that_future(draw: Draw) -> Triple:
    return telling(draw, 1, deed(draw, draw.subject(), "future", timed=True))


@structure
def heard_that_past(draw: Draw) -> Triple:
    return telling(draw, 1, deed(draw, draw.subject(), "past", timed=True))


@structure
def wrote_that_habit(draw: Draw) -> Triple:
    return telling(draw, 2, habit(draw, draw.subject(), timed=True))


def telling(draw: Draw, index: int, content: Said) -> Triple:
    en, verb, zh = TELLING[index]
    teller = draw.other(content.subject)
    spoken = german.verb(verb)
    have = german.auxiliary("haben", teller.agreement)
    return statement(
        f"{teller.en} {en} that {content.en()}",
        f"{teller.de['nom']} {have} {spoken.participle}, {content.de_subordinate('dass')}",
        f"{teller.zh}{zh}{content.zh()}",
    )


JUDGEMENTS = [
    ("it is nice that", "es ist schön, dass", "{}，真好"), ("it is a pity that", "es ist schade, dass", "{}，真可惜"),
    ("it is important that", "es ist wichtig, dass", "重要的是，{}"),
]  # fmt: skip


@structure
def nice_that(draw: Draw) -> Triple:
    return judged(0, deed(draw, draw.subject(), "past", timed=True))


@structure
def pity_that_not(draw: Draw) -> Triple:
    return judged(1, deed(draw, draw.subject(), "past", negated=True, timed=True))


@structure
def pity_that_cannot(draw: Draw) -> Triple:
    return judged(1, deed(draw, draw.subject(), "future", negated=True, modal=clauses.CAN, timed=True))


def judged(index: int, content: Clause) -> Triple:
    en, de, zh = JUDGEMENTS[index]
    return statement(f"{en} {content.en()}", f"{de} {content.de_subordinate()}", zh.format(content.zh()))


@structure
def glad_that(draw: Draw) -> Triple:
    subject = draw.subject()
    content = deed(draw, draw.other(subject), "past", timed=True)
    be_en, be_de = english.BE_PRESENT[subject.agreement], german.auxiliary("sein", subject.agreement)
    return statement(
        f"{subject.en} {be_en} glad that {content.en()}",
        f"{subject.de['nom']} {be_de} froh, {content.de_subordinate('dass')}",
        f"{subject.zh}很高兴{content.zh()}",
    )


@structure
def surprised_that_not(draw: Draw) -> Triple:
    subject = draw.subject()
    content = deed(draw, draw.other(subject), "past", negated=True, timed=True)
    be_en, be_de = english.BE_PRESENT[subject.agreement], german.auxiliary("sein", subject.agreement)
    return statement(
        f"{subject.en} {be_en} surprised that {content.en()}",
        f"{subject.de['nom']} {be_de} überrascht, {content.de_subordinate('dass')}",
        f"{subject.zh}很惊讶，{content.zh()}",
    )
