"""What people are, have, wear, know and like; a profession is named by gender in German."""

from __future__ import annotations

from . import chinese, english, german, nominals
from . import lexicon_adjectives as adjectives
from . import lexicon_people as people
from . import lexicon_places as places
from . import lexicon_things as things
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .clauses import Clause
from .draw import GROUPS, Draw
from .lexicon import Adverb, Noun
from .nominals import Nominal
from .numbers import english_number, german_number
from .structures import Triple, statement, structure

# Numbers are few enough to be learned, each as one word in German.
AGES = [*range(6, 21), *range(22, 30, 2), *range(30, 95, 5)]

WORKPLACES = {
    "teacher": "school", "doctor": "hospital", "cook": "restaurant hotel", "scientist": "university museum", "baker": "bakery",
    "programmer": "bank university", "mechanic": "factory airport", "gardener": "park hotel zoo", "musician": "theater church",
    "engineer": "factory airport", "singer": "theater", "actor": "theater", "police officer": "airport station", "photographer": "museum university",
    "lawyer": "bank town hall", "dentist": "hospital", "architect": "university town hall", "painter": "school university",
}  # fmt: skip


def person_of_gender(draw: Draw) -> Nominal:
    """Draw one person whose profession is named by gender."""
    subject = draw.subject(adult=True, pronoun=0.2, third=True)
    while subject.agreement != "3sg" or (subject.noun and subject.noun.group != "kin"):
        subject = draw.subject(adult=True, pronoun=0.2, third=True)
    return subject


def is_woman(subject: Nominal) -> bool:
    return subject.referent.endswith("f")


def job(noun: Noun, subject: Nominal) -> str:
    return noun.feminine if is_woman(subject) else noun.de


@structure
def works_as(draw: Draw) -> Triple:
    subject = person_of_gender(draw)
    noun = draw.choose([people.PROFESSIONS[name] for name in WORKPLACES], True)
    place = draw.choose([places.PLACES[name] for name in split_names(WORKPLACES[noun.en])], True)
    at = nominals.indefinite(place.noun)
    preposition = place.en.split()[0]
    de_preposition = (
        "an" if place.noun.en in ("university", "airport", "station") else "bei" if place.noun.en == "bank" else "in"
    )
    return statement(
        f"{subject.en} is {english.article(noun.en)} {noun.en} and works {preposition} {at.en}",
        f"{subject.de['nom']} ist {job(noun, subject)} und arbeitet {de_preposition} {at.de['dat']}",
        f"{subject.zh}是{noun.zh}，在{at.zh}工作",
    )  # fmt: skip


def split_names(names: str) -> list[str]:
    return [name for name in places.PLACES if name in names]


@structure
def lives_as(draw: Draw) -> Triple:
    subject = person_of_gender(draw)
    noun = draw.choose(list(people.PROFESSIONS.values()), True)
    town = draw.choose(places.CITIES, True)
    return statement(
        f"{subject.en} lives in {town[0]} and works there as {english.article(noun.en)} {noun.en}",
        f"{subject.de['nom']} wohnt in {town[1]} und arbeitet dort als {job(noun, subject)}",
        f"{subject.zh}住在{town[2]}，在那里当{noun.zh}",
    )  # fmt: skip


@structure
def wants_to_become(draw: Draw) -> Triple:
    subject = person_of_gender(draw)
    noun = draw.choose(list(people.PROFESSIONS.values()), True)
    other = draw.choose(list(people.PROFESSIONS.values()), True)
    while other.en == noun.en:
        other = draw.choose(list(people.PROFESSIONS.values()), True)
    return statement(
        f"{subject.en} does not want to become {english.article(noun.en)} {noun.en}, but {english.article(other.en)} {other.en}",
        f"{subject.de['nom']} will nicht {job(noun, subject)}, sondern {job(other, subject)} werden",
        f"{subject.zh}不想当{noun.zh}，而是想当{other.zh}",
    )  # fmt: skip


@structure
def comes_from(draw: Draw) -> Triple:
    subject = draw.referring(third=False)
    country, town = draw.choose(places.COUNTRIES, True), draw.choose(places.CITIES, True)
    while places.HOME.get(town[0]) == country[0]:
        town = draw.choose(places.CITIES, True)
    singular = subject.agreement == "3sg"
    come, live = ("comes", "lives") if singular else ("come", "live")
    kommen = german.verb("kommen, kommt, ist gekommen").present(subject.agreement)
    wohnen = german.verb("wohnen, wohnt, gewohnt").present(subject.agreement)
    again = draw.again(subject)
    return statement(
        f"{subject.en} {come} from {country[0]}, but now {again.en} {live} in {town[0]}",
        f"{subject.de['nom']} {kommen} aus {country[1]}, aber jetzt {wohnen} {again.de['nom']} in {town[1]}",
        f"{subject.zh}来自{country[2]}，但是现在住在{town[2]}",
    )  # fmt: skip


@structure
def is_years_old(draw: Draw) -> Triple:
    old = draw.choose([noun for noun in people.KIN.values() if noun.en_plural != noun.en], True)
    owner = draw.choose(["1sg", "2sg", "3sg m", "3sg f"])
    first, second = nominals.possessed(old, owner), draw.name()
    ages = {
        "grandmother": (60, 95),
        "grandfather": (60, 95),
        "son": (6, 29),
        "daughter": (6, 29),
        "mother": (40, 70),
        "father": (40, 70),
        "uncle": (31, 70),
        "aunt": (31, 70),
    }
    low, high = ages.get(old.en, (20, 45))
    age, other = (
        draw.choose([age for age in AGES if low <= age <= high]),
        draw.choose([age for age in AGES if age < 85]),
    )
    draw.content += [str(age), str(-other)]
    return statement(
        f"{first.en} is {english_number(age)} years old, and {second.en} is {english_number(other)}",
        f"{first.de['nom']} ist {german_number(age)} Jahre alt, und {second.de['nom']} ist {german_number(other)}",
        f"{first.zh}{chinese.numeral(age)}岁，{second.zh}{chinese.numeral(other)}岁",
    )  # fmt: skip


@structure
def has_this_and_that(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    first, second = draw.choose(GROUPS["animal"][:10], True), draw.choose(GROUPS["animal"][:10], True)
    while second.en == first.en:
        second = draw.choose(GROUPS["animal"][:10], True)
    one = nominals.counted(first, draw.number(), draw.adjective(first) if draw.chance(0.4) else None)
    two = nominals.indefinite(second, draw.adjective(second) if draw.chance(0.4) else None)
    has = "has" if subject.agreement == "3sg" else "have"
    return statement(
        f"{subject.en} {has} {one.en} and {two.en}", f"{subject.de['nom']} {german.auxiliary('haben', subject.agreement)} {one.de['acc']} und {two.de['acc']}",
        f"{subject.zh}有{one.zh}和{two.zh}",
    )  # fmt: skip


def possession(draw: Draw) -> Noun:
    return draw.choose(GROUPS["thing"] + GROUPS["machine"] + GROUPS["vehicle"] + GROUPS["animal"][:2], True)


@structure
def has_but_lacks(draw: Draw) -> Triple:
    subject = draw.subject(adult=True)
    first, second = possession(draw), possession(draw)
    while second.en == first.en:
        second = possession(draw)
    one = nominals.indefinite(first, draw.adjective(first) if draw.chance(0.5) else None)
    two = nominals.indefinite(second)
    has = "has" if subject.agreement == "3sg" else "have"
    return statement(
        f"{subject.en} {has} {one.en}, but no {second.en}",
        f"{subject.de['nom']} {german.auxiliary('haben', subject.agreement)} {one.de['acc']}, aber {two.de_negative['acc']}",
        f"{subject.zh}有{one.zh}，但是没有{second.zh}",
    )  # fmt: skip


@structure
def had_back_then(draw: Draw) -> Triple:
    subject, time = draw.subject(adult=True), draw.choose(times.PAST_FAR)
    first, second = possession(draw), possession(draw)
    while second.en == first.en:
        second = possession(draw)
    one, two = nominals.indefinite(first, draw.adjective(first)), nominals.indefinite(second)
    hatte = german.auxiliary("hatte", subject.agreement)
    return statement(
        f"{time.en} {subject.en} still had {one.en} and {two.en}", f"{time.de} {hatte} {subject.de['nom']} noch {one.de['acc']} und {two.de['acc']}",
        f"{time.zh}{subject.zh}还有{one.zh}和{two.zh}",
    )  # fmt: skip


@structure
def needs_something(draw: Draw) -> Triple:
    return state(draw, "need")


@structure
def does_not_need(draw: Draw) -> Triple:
    return state(draw, "need", negated=True)


@structure
def knows_somebody(draw: Draw) -> Triple:
    return state(draw, "know")


@structure
def does_not_know(draw: Draw) -> Triple:
    return state(draw, "know", negated=True)


@structure
def does_not_understand(draw: Draw) -> Triple:
    return state(draw, "understand", negated=True)


@structure
def likes_something(draw: Draw) -> Triple:
    return state(draw, "like")


def state(draw: Draw, lemma: str, negated: bool = False) -> Triple:
    """Say what two people need, know or like, one after the other."""
    draw.mode = "negated" if negated else "plain"
    entry = next(entry for entry in verbs.TRANSITIVE if entry.lemma == lemma)
    subject = draw.subject(adult=True)
    first = Clause(subject, draw.acting(entry, subject), negated=negated)
    other = draw.other(subject, adult=True)
    second = Clause(other, draw.acting(entry, other), negated=negated)
    if negated:
        return statement(
            f"{first.en()}, and {second.en()}", f"{first.de()}, und {second.de()}", f"{first.zh()}，{second.zh()}"
        )
    return statement(
        f"{first.en()}, and {second.en()}", f"{first.de()}, und {second.de()}", f"{first.zh()}，{second.zh()}"
    )


@structure
def is_wearing(draw: Draw) -> Triple:
    subject = draw.subject(third=True)
    woman = is_woman(subject)
    first = draw.choose([noun for noun in things.CLOTHES.values() if woman or noun.en not in ("dress", "skirt")], True)
    second = draw.choose(list(things.HEADWEAR.values())[: 2 if woman else 3], True)
    one, two = (
        nominals.indefinite(first, draw.choose(adjectives.COLORS + adjectives.before_noun(first), True)),
        nominals.indefinite(second, draw.choose(adjectives.COLORS, True)),
    )
    time = draw.choose(times.TODAY)
    tragen = german.verb("tragen, trägt, getragen").present(subject.agreement)
    if subject.agreement == "3pl":
        subject = draw.name()
        tragen = "trägt"
    return statement(
        f"{subject.en} is wearing {one.en} and {two.en} {time.en}", f"{subject.de['nom']} {tragen} {time.de} {one.de['acc']} und {two.de['acc']}",
        f"{subject.zh}{time.zh}穿着{one.zh}，戴着{two.zh}",
    )  # fmt: skip


@structure
def likes_to_do(draw: Draw) -> Triple:
    draw.mode = "liking"
    subject = draw.subject()
    gladly = Clause(
        subject, draw.action(subject, ("state", "past", "once", "long"), "fun"), frequency=Adverb("", "gern", "")
    )
    gladly = draw.placed(gladly)
    like = "likes" if subject.agreement == "3sg" else "like"
    plain = gladly.but(frequency=None)
    return statement(
        f"{subject.en} {like} {plain.en_infinitive()}", gladly.de(), f"{subject.zh}喜欢{plain.zh_predicate('')}"
    )


@structure
def does_not_like_to_do(draw: Draw) -> Triple:
    draw.mode = "liking"
    subject = draw.subject()
    action = draw.action(subject, ("state", "past", "once", "long"), "chore" if draw.chance(0.5) else "fun")
    gladly = draw.placed(Clause(subject, action, frequency=Adverb("", "nicht gern", "")))
    like = "does not like" if subject.agreement == "3sg" else "do not like"
    plain = gladly.but(frequency=None)
    return statement(
        f"{subject.en} {like} {plain.en_infinitive()}", gladly.de(), f"{subject.zh}不喜欢{plain.zh_predicate('')}"
    )
