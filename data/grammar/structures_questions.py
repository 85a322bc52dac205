"""Questions: yes or no, who, what, where, when, why, how, which."""

from __future__ import annotations

from . import actions, clauses, nominals
from . import lexicon_places as places
from . import lexicon_things as things
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .clauses import Clause
from .draw import Draw, nouns_of
from .lexicon import Adverb, Place
from .nominals import Nominal
from .structures import Triple, question, structure

# Chinese asks in the place of the answer, so these stand in as time, place or adverb.
WHEN = Adverb("", "", "什么时候")
WHY = Adverb("", "", "为什么")
WHERE = Place(next(iter(things.FURNITURE.values())), "", "", "", "", "在哪里", "哪里")
EVER = Adverb("ever", "schon einmal", "")


def asked(
    draw: Draw,
    tense: str = "past",
    without: tuple[str, ...] = ("state", "past"),
    mode: str = "plain",
    **features: object,
) -> Clause:
    """Draw a clause to be asked about; one does not ask `did I`."""
    draw.mode = mode
    subject = draw.subject()
    while subject.agreement == "1sg":
        subject = draw.subject()
    return Clause(subject, draw.action(subject, without), tense, **features)


def yes_no(clause: Clause, zh: str = "") -> Triple:
    return question(clause.en_question(), clause.de_question(), f"{zh or clause.zh()}吗")


def wh(en: str, de: str, clause: Clause, zh: str) -> Triple:
    return question(f"{en} {clause.en_question()}", f"{de} {clause.de_question()}", zh)


@structure
def ask_habit(draw: Draw) -> Triple:
    clause = asked(draw, "present", ("state", "past", "once", "long"), "habit")
    return yes_no(draw.placed(clause.but(time=draw.time("habit", clause.action))))


@structure
def ask_progressive(draw: Draw) -> Triple:
    return yes_no(draw.placed(asked(draw, "progressive", ("state", "past", "once"), "negated"), 0.9))


@structure
def ask_past(draw: Draw) -> Triple:
    clause = asked(draw)
    return yes_no(draw.placed(clause.but(time=draw.time("past", clause.action))))


@structure
def ask_already(draw: Draw) -> Triple:
    return yes_no(draw.placed(asked(draw, "perfect", ("state", "past", "ongoing"), focus=clauses.ALREADY)))


@structure
def ask_ever(draw: Draw) -> Triple:
    clause = draw.placed(asked(draw, "perfect", ("state", "past", "known", "daily", "ongoing"), "habit", focus=EVER))
    pattern = clauses.replace(clause.action, zh=clause.action.zh_negated or clause.action.zh)
    return yes_no(clause, clause.but(action=pattern).zh("过"))


@structure
def ask_future(draw: Draw) -> Triple:
    clause = asked(draw, "future")
    return yes_no(draw.placed(clause.but(time=draw.time("future", clause.action))))


@structure
def ask_can(draw: Draw) -> Triple:
    clause = asked(draw, modal=clauses.CAN)
    return yes_no(draw.placed(clause.but(time=draw.time("future", clause.action))))


@structure
def ask_have_to(draw: Draw) -> Triple:
    clause = asked(draw, modal=clauses.Modal("have to", "has to", "müssen", "必须", ""))
    return yes_no(draw.placed(clause.but(time=draw.time("future", clause.action))))


@structure
def ask_want(draw: Draw) -> Triple:
    clause = asked(draw, modal=clauses.WANT)
    return yes_no(draw.placed(clause.but(time=draw.time("future", clause.action))))


@structure
def ask_may(draw: Draw) -> Triple:
    clause = asked(draw, modal=clauses.MAY)
    return yes_no(draw.placed(clause.but(time=draw.time("future", clause.action))))


WHO = Nominal("who", "whom", {"nom": "wer", "acc": "wen", "dat": "wem"}, "谁", "3sg")


@structure
def who_did(draw: Draw) -> Triple:
    clause = Clause(WHO, draw.action(None, ("state",)), "past")
    clause = draw.placed(clause.but(time=draw.time("past", clause.action)))
    return question(clause.en(), clause.de(), clause.zh())


@structure
def who_will(draw: Draw) -> Triple:
    clause = Clause(WHO, draw.action(None), "future")
    clause = draw.placed(clause.but(time=draw.time("future", clause.action)))
    return question(clause.en(), clause.de(), clause.zh())


@structure
def who_can(draw: Draw) -> Triple:
    clause = Clause(WHO, draw.action(None), modal=clauses.CAN)
    clause = draw.placed(clause.but(time=draw.time("future", clause.action)))
    return question(clause.en(), clause.de(), clause.zh())


def gap(draw: Draw, kinds: tuple[str, ...], lacking: tuple[str, ...] = (), **features: object) -> tuple[Clause, str]:
    """Draw a clause without its object; return the noun that it could have been, too."""
    barred = {"state", "known", "ongoing"}
    pool = [
        entry
        for entry in verbs.TRANSITIVE
        if not entry.flags & barred
        and entry.lemma not in lacking
        and any(noun.group in kinds for noun in nouns_of(entry.objects))
    ]
    subject = features.pop("subject", None) or draw.subject(adult=True)
    while subject.agreement == "1sg":
        subject = draw.subject(adult=True)
    entry = draw.choose(pool, content=True)
    noun = draw.choose([noun for noun in nouns_of(entry.objects) if noun.group in kinds], content=True)
    return Clause(subject, actions.gapped(entry), "past", **features), noun


@structure
def what_did(draw: Draw) -> Triple:
    pool = [
        entry
        for entry in verbs.TRANSITIVE
        if entry.lemma
        in (
            "buy",
            "eat",
            "drink",
            "order",
            "cook",
            "bake",
            "read",
            "write",
            "paint",
            "photograph",
            "sell",
            "translate",
            "print",
            "repair",
            "learn",
            "lose",
            "find",
            "borrow",
        )
    ]
    subject = draw.subject(adult=True, pronoun=0.2)
    entry = draw.choose(pool, content=True)
    clause = Clause(subject, actions.gapped(entry), "past")
    clause = clause.but(
        time=draw.time("past", clause.action),
        place=draw.choose(places.group(entry.places), True) if entry.places else None,
    )
    filled = clauses.replace(clause.action, zh=entry.zh.replace("~", "什么"))
    return wh("what", "was", clause, clause.but(action=filled).zh())


@structure
def whom_did(draw: Draw) -> Triple:
    people = [
        entry
        for entry in verbs.TRANSITIVE
        if entry.lemma in ("visit", "help", "call", "thank", "meet", "invite", "ask", "greet", "pick up", "interview")
        and entry.objects[0] in ("person", "kin", "singer")
    ]
    clause, entry = person_gap(draw, people)
    filled = clauses.replace(clause.action, zh=entry.zh.replace("~", "谁"))
    return wh("whom", WHO.de[entry.case], clause, clause.but(action=filled).zh())


def person_gap(draw: Draw, pool: list) -> tuple[Clause, object]:
    subject = draw.subject(adult=True, pronoun=0.2)
    entry = draw.choose(pool, content=True)
    clause = Clause(subject, actions.gapped(entry), "past", time=draw.choose(times.PAST_NEAR))
    return clause.but(place=draw.choose(places.group(entry.places), True) if entry.places else None), entry


@structure
def where_did(draw: Draw) -> Triple:
    clause = asked(draw, "past", ("state", "daily"))
    while not clause.action.places:
        draw.begin()
        clause = asked(draw, "past", ("state", "daily"))
    clause = clause.but(time=draw.time("past", clause.action))
    return wh("where", "wo", clause, where_zh(clause))


def where_zh(clause: Clause) -> str:
    """Ask 在哪里; without an object the past asks with 的: 在哪里跑的步."""
    return clause.but(place=WHERE).zh(
        "的" if clause.tense == "past" and "^" in clause.action.zh and not clause.action.object else None
    )


@structure
def where_does(draw: Draw) -> Triple:
    without = ("state", "past", "once", "long", "daily")
    clause = asked(draw, "present", without, "habit")
    while not clause.action.places:
        draw.begin()
        clause = asked(draw, "present", without, "habit")
    clause = clause.but(time=draw.time("habit", clause.action))
    return wh("where", "wo", clause, where_zh(clause))


@structure
def where_will_go(draw: Draw) -> Triple:
    subject = draw.subject(pronoun=0.2)
    company = draw.receiver(subject)
    time = draw.choose(times.FUTURE + times.FUTURE_FAR)
    go = actions.with_company(actions.Action("go", actions.GO[0], "", actions.TRAVEL[1], (), "去*哪里"), company)
    draw.content += [company.en, time.en]
    clause = Clause(subject, go, "future", time=time)
    return wh("where", "wohin", clause, clause.zh())


@structure
def when_did(draw: Draw) -> Triple:
    clause = draw.placed(asked(draw, "past", ("state", "past")))
    return wh("when", "wann", clause, clause.but(time=WHEN).zh("的" if "^" in clause.action.zh else None))


@structure
def when_will(draw: Draw) -> Triple:
    clause = draw.placed(asked(draw, "future"))
    return wh("when", "wann", clause, clause.but(time=WHEN).zh())


@structure
def when_can(draw: Draw) -> Triple:
    clause = draw.placed(asked(draw, modal=clauses.CAN))
    return wh("when", "wann", clause, clause.but(time=WHEN).zh())


@structure
def why_did(draw: Draw) -> Triple:
    clause = asked(draw)
    clause = draw.placed(clause.but(time=draw.time("past", clause.action)))
    return wh("why", "warum", clause, clause.but(frequency=WHY).zh(""))


@structure
def why_not(draw: Draw) -> Triple:
    clause = asked(draw, "past", ("state", "past"), "negated", negated=True)
    clause = draw.placed(clause.but(time=draw.time("past", clause.action)))
    en = clause.en_question()
    auxiliary, _, rest = en.partition(" ")
    rest = clause.but(negated=False).en_question().partition(" ")[2]
    subject = clause.subject.en
    return question(
        f"why {auxiliary} {subject} not{rest.removeprefix(subject)}",
        f"warum {clause.de_question()}",
        clause.but(frequency=WHY).zh(),
    )


@structure
def why_must(draw: Draw) -> Triple:
    clause = asked(draw, modal=clauses.Modal("have to", "has to", "müssen", "必须", ""))
    clause = draw.placed(clause.but(time=draw.time("future", clause.action)))
    return wh("why", "warum", clause, clause.but(frequency=WHY).zh())


@structure
def how_often(draw: Draw) -> Triple:
    clause = draw.placed(
        asked(draw, "present", ("state", "past", "once", "long", "daily", "ongoing", "known"), "habit"), 0.9
    )
    counting = clause.but(action=clauses.replace(clause.action, zh=clause.action.zh_negated or clause.action.zh))
    return wh("how often", "wie oft", clause, f"{clause.subject.zh}多久{counting.zh_predicate('一次')}")


@structure
def which_did(draw: Draw) -> Triple:
    pool = (
        "reading",
        "mail",
        "film",
        "thing",
        "furniture",
        "clothes",
        "vehicle",
        "culture",
        "machine",
        "place",
        "building",
    )
    clause, noun = gap(draw, pool)
    clause = clause.but(time=draw.time("past", clause.action))
    which = nominals.declined(noun, "welch")[clause.action.entry.case]
    filled = clauses.replace(clause.action, zh=clause.action.entry.zh.replace("~", f"哪{noun.measure}{noun.zh}"))
    return question(
        f"which {noun.en} {clause.en_question()}", f"{which} {clause.de_question()}", clause.but(action=filled).zh()
    )


@structure
def how_many_did(draw: Draw) -> Triple:
    clause, noun = gap(
        draw,
        ("reading", "mail", "thing", "household", "furniture", "clothes", "plant", "food"),
        ("use", "describe", "prepare", "taste", "admire"),
    )
    clause = clause.but(time=draw.time("past", clause.action))
    filled = clauses.replace(clause.action, zh=clause.action.entry.zh.replace("~", f"多少{noun.measure}{noun.zh}"))
    return question(
        f"how many {noun.en_plural} {clause.en_question()}",
        f"wie viele {noun.de_plural} {clause.de_question()}",
        clause.but(action=filled).zh(),
    )


@structure
def how_long_worked(draw: Draw) -> Triple:
    subject = draw.subject(adult=True, pronoun=0.2)
    entry = draw.choose(
        [entry for entry in verbs.INTRANSITIVE if entry.lemma in ("work", "study", "rest")], content=True
    )
    clause = Clause(
        subject,
        actions.intransitive(entry),
        "past",
        time=draw.choose(times.PAST_NEAR),
        place=draw.choose(places.group(entry.places), True),
    )
    return wh("how long", "wie lange", clause, clause.zh("").replace("*", "") + "了多久")


@structure
def how_does_one_go(draw: Draw) -> Triple:
    subject = draw.subject(third=True)
    place = draw.choose(places.group("go"), content=True)
    time = draw.choose(times.HABIT)
    draw.content.append(time.en)
    clause = Clause(
        subject,
        actions.Action(
            "go",
            actions.GO[0],
            place.en_to,
            actions.GO[1],
            (actions.Part(actions.RANK_PREPOSITIONAL, place.de_to),),
            f"怎么去*{place.zh_to}",
        ),
        time=time,
    )
    travelling = clauses.replace(clause.action, de=actions.TRAVEL[1])
    return wh("how", "wie", clause.but(action=travelling), clause.zh())


@structure
def with_whom_did(draw: Draw) -> Triple:
    subject = draw.subject(adult=True, third=True)
    action = draw.action(None, ("state", "known", "ongoing"), "social")
    while action.object and action.object.referent:
        draw.begin()
        action = draw.action(None, ("state", "known", "ongoing"), "social")
    clause = draw.placed(Clause(subject, action, "past", time=draw.time("past", action)))
    company = clauses.replace(clause.action, zh="跟谁一起" + clause.action.zh, zh_done="")
    return wh("with whom", "mit wem", clause, clause.but(action=company).zh())
