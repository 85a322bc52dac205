"""Two clauses, one subordinate: because, although, if, when, while, before, after, until, that."""

from __future__ import annotations

from . import actions, clauses, english, german
from . import lexicon_adjectives as adjectives
from . import lexicon_places as places
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .clauses import Clause
from .draw import Draw, nouns_of
from .lexicon import Adverb
from .nominals import Nominal
from .predicates import WEATHER_PAST, Predicate, Saying, mood, sayings
from .structures import Triple, statement, structure

Said = Clause | Predicate
PLAIN = ("state", "past")
PAST_MODALS = (clauses.COULD, clauses.HAD_TO, clauses.WANTED)
STILL = Adverb("", "", "还是")


def after(main: Clause, en: str, de: str, sub: Said, zh: str) -> Triple:
    """Put the subordinate clause behind the main one; Chinese is given whole."""
    return statement(f"{main.en()} {en} {sub.en()}", f"{main.de()}, {sub.de_subordinate(de)}", zh)


def ahead(en: str, de: str, sub: Said, main: Clause, zh: str) -> Triple:
    """Put the subordinate clause first, so that the German main verb comes next."""
    front = sub.de_subordinate(de) + ","
    return statement(f"{en} {sub.en()}, {main.en()}", main.de(front), zh)


def deed(
    draw: Draw,
    subject: Nominal,
    tense: str = "past",
    without: tuple[str, ...] = PLAIN,
    only: str = "",
    timed: bool = False,
    **features: object,
) -> Clause:
    draw.mode = "negated" if features.get("negated") else "plain"
    place = features.pop("place", 0.4)
    action = draw.action(subject, without, only)
    clause = Clause(subject, action, tense, **features)
    if timed:
        kind = "past" if clause.modal in PAST_MODALS or (tense == "past" and not clause.modal) else "future"
        clause = clause.but(time=draw.time(kind, action))
    return draw.placed(clause, place)


def habit(draw: Draw, subject: Nominal, only: str = "", **features: object) -> Clause:
    draw.mode = "habit"
    action = draw.action(subject, ("state", "past", "once", "long"), only)
    draw.mode = "plain"
    if features.pop("timed", False):
        features["time"] = draw.time("habit", action)
    return draw.placed(Clause(subject, action, **features), 0.4)


# --- because and although --------------------------------------------------------------------

HINDERING = [
    item for item in adjectives.MOODS if item.en in ("tired", "busy", "nervous", "sad", "angry", "disappointed")
]


@structure
def not_done_because_of_mood(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, negated=True, timed=True)
    reason = mood(draw.again(subject), draw.choose(HINDERING, True), past=True)
    return after(main, "because", "weil", reason, f"{main.zh()}，因为{reason.zh()}")


@structure
def because_of_mood_not_done(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    reason = mood(subject, draw.choose(HINDERING, True), past=True)
    main = deed(draw, draw.again(subject), negated=True, timed=True)
    return ahead("because", "weil", reason, main, f"因为{reason.zh()}，所以{main.zh_predicate()}")


@structure
def not_possible_because_of_duty(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, negated=True, modal=clauses.COULD, only="fun").but(time=draw.time("past"))
    duty = deed(draw, draw.again(subject), modal=clauses.HAD_TO, only="chore")
    return after(main, "because", "weil", duty, f"{main.zh()}，因为{duty.zh()}")


@structure
def cannot_because_of_duty(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, negated=True, modal=clauses.CAN, only="fun", timed=True)
    duty = deed(draw, draw.again(subject), modal=clauses.HAVE_TO, only="chore")
    return after(main, "because", "weil", duty, f"{main.zh()}，因为{duty.zh()}")


@structure
def not_done_because_of_weather(draw: Draw) -> Triple:
    main = deed(draw, draw.subject(), negated=True, timed=True, only="outdoor")
    weather = draw.choose(WEATHER_PAST, True)
    return statement(
        f"{main.en()} because {weather.en}",
        f"{main.de()}, weil {weather.de_subordinate}",
        f"{main.zh()}，因为{weather.zh}",
    )


THANKFUL = [item for item in adjectives.MOODS if item.en in ("happy", "satisfied")]
UPSET = [item for item in adjectives.MOODS if item.en in ("sad", "angry", "disappointed", "nervous")]


@structure
def happy_because_of_gift(draw: Draw) -> Triple:
    subject = draw.referring(adult=False)
    main = mood(subject, draw.choose(THANKFUL))
    giver = draw.other(subject, pronoun=0)
    entry = draw.choose(
        [
            entry
            for entry in verbs.DITRANSITIVE
            if entry.lemma in ("give", "bring", "buy", "send", "show", "read to", "tell", "lend")
        ],
        True,
    )
    noun = draw.choose(nouns_of(entry.objects), True)
    act = actions.ditransitive(entry, draw.again(subject), draw.thing(noun))
    gift = Clause(giver, act, "past")
    return after(main, "because", "weil", gift, f"{main.zh()}，因为{gift.zh()}")


@structure
def upset_because_of_loss(draw: Draw) -> Triple:
    subject = draw.referring(adult=False)
    main = mood(subject, draw.choose(UPSET, True))
    entry = draw.choose([entry for entry in verbs.TRANSITIVE if entry.lemma in ("lose", "miss", "break")], True)
    again = draw.again(subject)
    loss = Clause(again, actions.transitive(entry, draw.object_for(entry, again)), "past")
    loss = draw.placed(loss, 0.5)
    return after(main, "because", "weil", loss, f"{main.zh()}，因为{loss.zh()}")


@structure
def tired_because_of_work(draw: Draw) -> Triple:
    subject = draw.referring(adult=True, third=False)
    main = mood(subject, next(item for item in adjectives.MOODS if item.en == "tired"), time=draw.choose(times.TODAY))
    entry = draw.choose(
        [entry for entry in verbs.INTRANSITIVE if entry.lemma in ("work", "study", "dance", "jog", "swim")], True
    )
    time = draw.choose(
        [item for item in times.PAST if item.en in ("yesterday", "yesterday evening", "yesterday afternoon")]
    )
    work = draw.placed(Clause(draw.again(subject), actions.intransitive(entry), "past", time=time))
    return after(main, "because", "weil", work, f"{main.zh()}，因为{work.zh()}")


@structure
def although_mood(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, timed=True)
    mind = mood(draw.again(subject), draw.choose(HINDERING, True), past=True)
    return after(
        main,
        "although",
        "obwohl",
        mind,
        f"虽然{subject.zh}{mind.zh_predicate()}，但是{draw.again(subject).zh}{main.but(frequency=STILL).zh_predicate()}",
    )


@structure
def although_mood_first(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    mind = mood(subject, draw.choose(HINDERING, True), past=True)
    main = deed(draw, draw.again(subject), timed=True)
    return ahead(
        "although",
        "obwohl",
        mind,
        main,
        f"虽然{mind.zh()}，但是{main.subject.zh}{main.but(frequency=STILL).zh_predicate()}",
    )


@structure
def although_weather(draw: Draw) -> Triple:
    weather = draw.choose(WEATHER_PAST, True)
    main = deed(draw, draw.subject(), timed=True, only="outdoor")
    return statement(
        f"although {weather.en}, {main.en()}",
        main.de(f"obwohl {weather.de_subordinate},"),
        f"虽然{weather.zh}，但是{main.subject.zh}{main.but(frequency=STILL).zh_predicate()}",
    )


@structure
def although_not_wanted(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, modal=clauses.HAVE_TO, only="chore", timed=True)
    wish = deed(draw, draw.again(subject), modal=clauses.WANT, only="fun")
    return after(
        main,
        "although",
        "obwohl",
        wish,
        f"虽然{wish.but(subject=subject).zh()}，但是{draw.again(subject).zh}{main.zh_predicate()}",
    )


# --- if and when -----------------------------------------------------------------------------

CONDITIONS = sayings("""
it rains tomorrow | es regnet morgen | es morgen regnet | 明天下雨
it snows tomorrow | es schneit morgen | es morgen schneit | 明天下雪
the weather is good tomorrow | das Wetter ist morgen gut | das Wetter morgen gut ist | 明天天气好
the weather is bad tomorrow | das Wetter ist morgen schlecht | das Wetter morgen schlecht ist | 明天天气不好
it is too cold tomorrow | es ist morgen zu kalt | es morgen zu kalt ist | 明天太冷
it is too hot tomorrow | es ist morgen zu heiß | es morgen zu heiß ist | 明天太热
""")
HABITUAL_WEATHER = sayings("""
it rains | es regnet | es regnet | 下雨
it snows | es schneit | es schneit | 下雪
it is cold | es ist kalt | es kalt ist | 天气冷
it is hot | es ist heiß | es heiß ist | 天气热
the weather is good | das Wetter ist gut | das Wetter gut ist | 天气好
the weather is bad | das Wetter ist schlecht | das Wetter schlecht ist | 天气不好
""")


def door(weather: Saying) -> str:
    """Return the tag of deeds for this weather."""
    return "outdoor" if "good" in weather.en else "indoor"


@structure
def if_weather_then_future(draw: Draw) -> Triple:
    weather = draw.choose(CONDITIONS, True)
    main = deed(draw, draw.subject(), "future", ("state", "past", "long"), door(weather))
    return statement(
        f"if {weather.en}, {main.en()}",
        main.de(f"wenn {weather.de_subordinate},"),
        f"如果{weather.zh}，{main.subject.zh}就{main.zh_predicate()}",
    )


@structure
def if_weather_then_not(draw: Draw) -> Triple:
    weather = draw.choose([item for item in CONDITIONS if "good" not in item.en], True)
    main = deed(draw, draw.subject(), "future", ("state", "past", "long"), "outdoor", negated=True)
    return statement(
        f"{main.en()} if {weather.en}",
        f"{main.de()}, wenn {weather.de_subordinate}",
        f"如果{weather.zh}，{main.subject.zh}就{main.zh_predicate()}",
    )


@structure
def when_weather_habit(draw: Draw) -> Triple:
    weather = draw.choose(HABITUAL_WEATHER, True)
    main = habit(draw, draw.subject(), door(weather), frequency=draw.frequency())
    return statement(
        f"when {weather.en}, {main.en()}",
        main.de(f"wenn {weather.de_subordinate},"),
        f"{weather.zh}的时候，{main.zh()}",
    )


def has_time(subject: Nominal, time: Adverb) -> Saying:
    has = "has" if subject.agreement == "3sg" else "have"
    haben = german.auxiliary("haben", subject.agreement)
    return Saying(
        f"{subject.en} {has} time {time.en}",
        "",
        f"{subject.de['nom']} {time.de} Zeit {haben}",
        f"{subject.zh}{time.zh}有时间",
    )


@structure
def if_time_then_future(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    time = has_time(subject, draw.choose(times.SOON[:-2]))
    main = deed(draw, draw.again(subject), "future", ("state", "past", "long"))
    return statement(
        f"if {time.en}, {main.en()}",
        main.de(f"wenn {time.de_subordinate},"),
        f"如果{time.zh}，{main.subject.zh}就{main.zh_predicate()}",
    )


@structure
def if_time_then_can(draw: Draw) -> Triple:
    subject = draw.subject()
    time = has_time(subject, draw.choose(times.SOON[:-2]))
    main = deed(draw, draw.other(subject), "future", ("state", "past", "long"), modal=clauses.CAN)
    return statement(
        f"{main.en()} if {time.en}",
        f"{main.de()}, wenn {time.de_subordinate}",
        f"如果{time.zh}，{main.subject.zh}就{main.zh_predicate()}",
    )


@structure
def if_helped_then_fun(draw: Draw) -> Triple:
    first = deed(draw, draw.subject(), "present", ("state", "past", "long"), "chore").but(time=None)
    second = deed(
        draw, draw.other(first.subject), "future", ("state", "past", "long"), "fun", modal=clauses.CAN, timed=True
    )
    return ahead(
        "if",
        "wenn",
        first,
        second,
        f"如果{first.zh()}，{second.subject.zh}{second._chinese_time()}就{second.but(time=None).zh_predicate()}",
    )


def comes_home(subject: Nominal, tense: str) -> Clause:
    entry = next(entry for entry in verbs.INTRANSITIVE if entry.lemma == "come home")
    return Clause(subject, actions.intransitive(entry), tense)


@structure
def when_home_then_doing(draw: Draw) -> Triple:
    subject = draw.subject()
    home = comes_home(subject, "past")
    other = draw.other(subject)
    draw.mode = "negated"
    doing = draw.placed(Clause(other, draw.action(other, ("state", "past", "once")), "progressive"), 0.6)
    en = doing.en().replace(
        f"{other.en} {english.BE_PRESENT[other.agreement]}", f"{other.en} {english.BE_PAST[other.agreement]}", 1
    )
    was = doing.but(tense="past", frequency=Adverb("", "gerade", ""))
    return statement(
        f"when {home.en()}, {en}", was.de(home.de_subordinate("als") + ","), f"{home.zh('')}的时候，{doing.zh()}"
    )


@structure
def when_home_habit(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    home = comes_home(subject, "present").but(time=draw.choose(times.PART_OF_DAY))
    main = habit(draw, draw.again(subject), "indoor", frequency=draw.frequency())
    return ahead("when", "wenn", home, main, f"{home.zh()}的时候，{main.zh_predicate()}")


@structure
def as_soon_as_home(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    home = comes_home(subject, "present")
    main = deed(draw, draw.again(subject), "future", ("state", "past", "long"), "indoor", place=0)
    return ahead("as soon as", "sobald", home, main, f"{subject.zh}一回家，就{main.zh_predicate()}")


@structure
def while_both(draw: Draw) -> Triple:
    draw.mode = "negated"
    first = draw.subject()
    second = draw.other(first)
    one = draw.placed(Clause(first, draw.action(first, ("state", "past", "once")), "progressive"), 0.5)
    two = draw.placed(Clause(second, draw.action(second, ("state", "past", "once")), "progressive"), 0.5)
    one_de, two_de = one.but(tense="present"), two.but(tense="present")
    return statement(
        f"while {one.en()}, {two.en()}",
        two_de.de(one_de.de_subordinate("während") + ","),
        f"{one.zh()}的时候，{two.zh()}",
    )


# --- before, after, until, so that -------------------------------------------------------------


@structure
def before_past(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    main = deed(draw, subject, "past", ("state", "past", "ongoing"), timed=True)
    later = deed(draw, draw.again(subject), "past", ("state", "past", "ongoing"))
    return after(
        main,
        "before",
        "bevor",
        later,
        f"{subject.zh}{main._chinese_time()}{later.zh_predicate('')}之前，{main.but(time=None).zh_predicate()}",
    )


@structure
def before_future_first(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    later = deed(draw, subject, "present", ("state", "past", "ongoing", "once", "long"))
    main = deed(draw, draw.again(subject), modal=clauses.HAVE_TO, only="chore")
    return ahead("before", "bevor", later, main, f"{subject.zh}{later.zh_predicate('')}之前，{main.zh_predicate()}")


@structure
def after_pluperfect(draw: Draw) -> Triple:
    subject = draw.referring(adult=False, third=False)
    first = deed(draw, subject, "pluperfect", ("state", "past", "ongoing"))
    second = deed(draw, draw.again(subject), "past", ("state", "past"))
    return ahead("after", "nachdem", first, second, f"{first.zh('done')}之后，{second.zh_predicate()}")


@structure
def after_pluperfect_other(draw: Draw) -> Triple:
    first = deed(draw, draw.subject(), "pluperfect", ("state", "past", "ongoing"))
    second = deed(draw, draw.other(first.subject), "past", ("state", "past"))
    return after(second, "after", "nachdem", first, f"{first.zh('done')}之后，{second.zh()}")


@structure
def waited_until(draw: Draw) -> Triple:
    subject = draw.subject()
    place = draw.choose(places.group("wait"), True)
    other = draw.other(subject)
    chore = Clause(other, draw.action(other, ("state", "past", "ongoing", "long"), "chore"), "pluperfect")
    has = german.auxiliary("haben", subject.agreement)
    return statement(
        f"{subject.en} waited {place.en} until {chore.en()}", f"{subject.de['nom']} {has} {place.de} gewartet, {chore.de_subordinate('bis')}",
        f"{subject.zh}{place.zh}一直等到{chore.zh('完')}",
    )  # fmt: skip


@structure
def so_that_possible(draw: Draw) -> Triple:
    subject = draw.subject()
    main = deed(draw, subject, "past", ("state", "past", "ongoing", "long"), "chore", timed=True)
    other = draw.other(subject)
    goal = deed(draw, other, "past", ("state", "past", "long"), "fun", modal=clauses.COULD)
    return after(main, "so that", "damit", goal, f"{main.zh()}，好让{goal.zh()}")
