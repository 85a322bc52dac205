"""Seeded choice: draws people, things, deeds and times that fit together.

Of a few random candidates the one used least so far wins, so that no word stays rare. What is drawn
is remembered: `content` (verb, object, adjective …) names the combination by which the corpus is split.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from . import actions, nominals
from . import lexicon_adjectives as adjectives
from . import lexicon_people as people
from . import lexicon_places as places
from . import lexicon_things as things
from . import lexicon_time as times
from . import lexicon_verbs as verbs
from .actions import Action
from .clauses import Clause
from .lexicon import Adjective, Adverb, Noun, Place, VerbEntry
from .nominals import Nominal

T = TypeVar("T")
PERSONS = {**people.PROFESSIONS, **people.ROLES}
EVERY_NOUN: dict[str, Noun] = {
    **{name: place.noun for name, place in places.PLACES.items()}, **things.ALL, **people.ANIMALS, **PERSONS,
    **people.YOUNG, **people.KIN, **people.YOUNG_KIN, **verbs.GAMES, **verbs.BARE, **verbs.LANGUAGE_NOUNS,
}  # fmt: skip
GROUPS: dict[str, list[Noun]] = {}
for _noun in EVERY_NOUN.values():
    GROUPS.setdefault(_noun.group, []).append(_noun)
GROUPS["language"] = list(verbs.LANGUAGE_NOUNS.values())
FEW = [(number, *times.number_words(number)) for number in range(2, 6)]
OWNERS = list(nominals.POSSESSIVES)
TALKERS = ["1sg", "2sg", "3sg m", "3sg f", "1pl", "3pl"]
RATHER_YOUNG = {"3sg m", "3sg f"}


def nouns_of(names: Sequence[str]) -> list[Noun]:
    """Resolve group names and single nouns."""
    found: list[Noun] = []
    for name in names:
        found.extend(GROUPS[name] if name in GROUPS else [EVERY_NOUN[name]])
    return found


class Draw:
    """A stream of choices for one structure; `used` is shared by all structures."""

    def __init__(self, seed: str, used: Counter[str]) -> None:
        self.random = random.Random(seed)
        self.used = used
        self.fitting: dict[tuple[object, ...], list[VerbEntry]] = {}
        self.begin()

    def begin(self) -> None:
        """Forget the last sentence; `mode` becomes `habit`, `liking` or `negated` where these limit the objects."""
        self.mode = "plain"
        self.content: list[str] = []
        self.lemmas: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choose(self, options: Sequence[T], content: bool = False) -> T:
        """Take the least used of three random candidates and remember it."""
        count, pick = len(options), self.random.random
        best, lemma, least = options[0], "", -1
        for _ in range(3):
            option = options[int(pick() * count)]
            name = lemma_of(option)
            if least < 0 or self.used[name] < least:
                best, lemma, least = option, name, self.used[name]
        self.used[lemma] += 1
        self.lemmas.append(lemma)
        if content:
            self.content.append(lemma)
        return best

    def weighted(self, **weights: float) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]

    # --- people ----------------------------------------------------------------------------

    def name(self) -> Nominal:
        return nominals.named(*self.choose(people.NAMES))

    def kin(self, owner: str = "", adult: bool = False, singular: bool = False) -> Nominal:
        table = list(people.KIN.values()) + ([] if adult else list(people.YOUNG_KIN.values()))
        if singular:
            table = [noun for noun in table if noun.en != noun.en_plural]
        return nominals.possessed(self.choose(table), owner or self.choose(["1sg", "2sg", "3sg m", "3sg f"]))

    def person(self, adult: bool = False) -> Nominal:
        """Draw a known person: the young doctor, my neighbor."""
        if not adult and self.chance(0.15):
            noun = self.choose(list(people.YOUNG.values()))
        else:
            noun = self.choose(list(PERSONS.values()))
        if noun.lemma in ("neighbor", "colleague", "friend", "boss", "guest", "customer", "patient"):
            return nominals.possessed(
                noun,
                self.choose(OWNERS if noun.lemma != "friend" else OWNERS[:4]),
                plural=noun.lemma != "boss" and self.chance(0.4),
            )
        adjective = self.adjective(noun) if self.chance(0.45) else None
        return nominals.definite(noun, adjective, plural=self.chance(0.2))

    def someone(self) -> Nominal:
        """Draw an unknown person: an old friend, a famous singer."""
        noun = self.choose(list(PERSONS.values()))
        return nominals.indefinite(noun, self.adjective(noun) if self.chance(0.5) else None)

    def subject(self, adult: bool = False, pronoun: float = 0.22, third: bool = False) -> Nominal:
        """Draw who does something."""
        kind = self.weighted(pronoun=pronoun, name=0.2, kin=0.2, person=0.32, pair=0.05)
        if kind == "pronoun":
            return nominals.personal_pronoun(self.choose(TALKERS[2:] if third else TALKERS))
        if kind == "name":
            return self.name()
        if kind == "kin":
            return self.kin(adult=adult)
        return self.pair() if kind == "pair" else self.person(adult)

    def pair(self) -> Nominal:
        """Join two names, one of them a man's: Chinese tells 他们 from 她们."""
        first, second = self.name(), self.name()
        while second.en == first.en or {first.gender, second.gender} == {"f"}:
            second = self.name()
        return nominals.pair(first, second)

    def referring(self, adult: bool = True, third: bool = True) -> Nominal:
        """Draw a subject that a later pronoun can stand for (no neuter, see `again`)."""
        subject = self.subject(adult, pronoun=0.0 if third else 0.3)
        while (
            not subject.referent
            or subject.referent == "3sg n"
            or (subject.noun and subject.agreement == "3pl" and subject.noun.en in ("woman", "nurse", "girl"))
        ):
            subject = self.subject(adult, pronoun=0.0 if third else 0.3)
        return subject

    def again(self, subject: Nominal) -> Nominal:
        """Return the pronoun for a subject that was named before."""
        if subject.pronoun:
            return subject
        return replace(nominals.personal_pronoun(subject.referent), adult=subject.adult)

    def other(self, subject: Nominal, **options: object) -> Nominal:
        """Draw a subject that is somebody else."""
        found = self.subject(**options)
        while found.referent == subject.referent or found.en == subject.en:
            found = self.subject(**options)
        return found

    # --- things ----------------------------------------------------------------------------

    def adjective(self, noun: Noun, content: bool = False) -> Adjective | None:
        fitting = adjectives.before_noun(noun)
        return self.choose(fitting, content) if fitting else None

    def number(self) -> tuple[int, str, str]:
        return self.choose(FEW)

    def thing(self, noun: Noun, flags: frozenset[str] = frozenset(), owner: str = "", rich: float = 0.55) -> Nominal:
        """Draw determiner and adjective for a noun; `owner` is the subject's key."""
        adjective = self.adjective(noun) if self.chance(rich) else None
        if (
            adjective
            and "made" in flags
            and adjective.en in ("old", "new", "famous", "expensive", "cheap", "fresh", "quiet")
        ):
            adjective = None
        if noun.group in ("bare", "game"):
            return nominals.bare(noun)
        if noun.group == "drink":
            return self.drink(noun)
        if noun.group == "provision":
            return (
                nominals.bare(noun, adjective)
                if self.mode != "plain" or self.chance(0.8)
                else nominals.definite(noun, adjective)
            )
        return self._determined(self._determiner(flags), noun, adjective, owner)

    def _determiner(self, flags: frozenset[str]) -> str:
        """Draw a kind of determiner that suits the verb and the mode of the clause."""
        if "plural" in flags:
            return "bare"
        if "a" in flags:
            few = self.mode == "plain" and "long" not in flags
            return self.weighted(a=0 if self.mode == "liking" else 5, count=int(few), bare=int(self.mode == "liking"))
        if "known" in flags:
            return self.weighted(the=3, my=3, this=1.5 if self.mode == "plain" else 0)
        if self.mode == "liking":
            return "bare"
        if self.mode == "habit":
            return self.weighted(a=5, bare=2.5)
        return self.weighted(
            a=4, the=3, my=2 if "own" in flags else 0, this=1, bare=0.7, count=1.2 if self.mode == "plain" else 0
        )

    def _determined(self, kind: str, noun: Noun, adjective: Adjective | None, owner: str) -> Nominal:
        if kind == "a":
            return nominals.indefinite(noun, adjective)
        if noun.group == "transport":
            return nominals.definite(noun)
        many = self.chance(0.08) and noun.group not in ("place", "building", "machine")
        if kind == "the":
            return nominals.definite(noun, adjective, plural=many)
        if kind == "this":
            return nominals.demonstrative(noun, adjective, plural=many)
        if kind == "count":
            return nominals.counted(noun, self.number(), adjective)
        if kind == "bare":
            return nominals.bare(noun, adjective, plural=True)
        return self._owned(noun, adjective, owner)

    def _owned(self, noun: Noun, adjective: Adjective | None, owner: str) -> Nominal:
        """Draw whose it is; what nobody owns is merely known. Chinese avoids two 的 in a row."""
        nobodys = noun.group in ("place", "building", "culture", "transport", "fixture")
        if not owner or (
            nobodys and noun.en not in ("kitchen", "bathroom", "bedroom", "garage", "office", "house", "apartment")
        ):
            return nominals.definite(noun, adjective)
        if adjective and adjective.zh_attribute.endswith("的"):
            adjective = None
        if noun.en in ("dress", "skirt") and owner != "3sg f":
            return nominals.definite(noun, adjective)
        key = owner
        if owner.startswith("3") and self.chance(0.25):
            key = self.choose(["1sg", "2sg"])
        return nominals.possessed(noun, key, adjective, own=key == owner)

    def drink(self, noun: Noun) -> Nominal:
        hot = noun.lemma in ("coffee", "tea", "cocoa")
        container = (
            EVERY_NOUN["cup"]
            if hot
            else EVERY_NOUN["bottle"]
            if noun.lemma in ("water", "lemonade", "juice") and self.chance(0.4)
            else _GLASS
        )
        number = self.number() if self.mode == "plain" and self.chance(0.2) else (1, "a", "ein")
        pool = [item for item in adjectives.QUALITIES["drink"] if (item.en == "hot") == hot or noun.lemma == "milk"]
        return nominals.contained(
            container_for(container), number, noun, self.choose(pool) if self.chance(0.35) else None
        )

    def object_person(self, subject: Nominal | None, noun: Noun) -> Nominal:
        """Draw a person as object: the subject's own family, a colleague, somebody unknown."""
        owner = owner_of(subject)
        if noun.group in ("kin", "child kin"):
            key = owner if owner and self.chance(0.6) else "1sg" if not owner.startswith("1") else "2sg"
            return own_kin(nominals.possessed(noun, key), noun, key == owner)
        adjective = self.adjective(noun) if self.chance(0.35) else None
        if noun.lemma in ("neighbor", "colleague", "friend", "boss"):
            return nominals.possessed(noun, owner or "1sg", plural=noun.lemma != "boss" and self.chance(0.3), own=True)
        if self.chance(0.3):
            return nominals.indefinite(noun, adjective)
        return nominals.definite(noun, adjective, plural=self.chance(0.12))

    # --- deeds -----------------------------------------------------------------------------

    def action(
        self, subject: Nominal | None = None, without: Sequence[str] = ("state", "past"), only: str = ""
    ) -> Action:
        """Draw what the subject does; `without` and `only` are flags of the verb."""
        kind = self.weighted(transitive=0.68, intransitive=0.16, ditransitive=0.16)
        if only:
            kind = (
                "intransitive"
                if only == "daily" or (only in verbs.TAGS and self.chance(0.12 if only == "chore" else 0.3))
                else "transitive"
            )
        if kind == "intransitive":
            return self.intransitive(subject, without, only)
        return self.ditransitive(subject) if kind == "ditransitive" else self.transitive(subject, without, only)

    def entry(
        self, pool: list[VerbEntry], subject: Nominal | None, without: Sequence[str], only: str = ""
    ) -> VerbEntry:
        barred = frozenset(without) | ({"adult"} if subject and not subject.adult else frozenset())
        key = (id(pool), barred, only)
        if key not in self.fitting:
            self.fitting[key] = [entry for entry in pool if not (entry.flags & barred) and suits(entry, only)]
        return self.choose(self.fitting[key], content=True)

    def transitive(
        self, subject: Nominal | None = None, without: Sequence[str] = ("state", "past"), only: str = ""
    ) -> Action:
        entry = self.entry(verbs.TRANSITIVE, subject, without, only)
        return actions.transitive(entry, self.object_for(entry, subject))

    def acting(self, entry: VerbEntry, subject: Nominal | None) -> Action:
        """Return the action of a given transitive verb with an object drawn for it."""
        if entry.lemma not in self.content:
            self.content.append(entry.lemma)
        self.lemmas.append(entry.lemma)
        return actions.transitive(entry, self.object_for(entry, subject))

    def object_for(self, entry: VerbEntry, subject: Nominal | None) -> Nominal:
        noun = self.choose(
            [noun for noun in nouns_of(entry.objects) if not subject or noun is not subject.noun], content=True
        )
        if noun.group in nominals.PEOPLE:
            obj = self.object_person(subject, noun)
            while "known" in entry.flags and not obj.definite:
                obj = self.object_person(subject, noun)
            return obj
        if "worn" in entry.flags and subject and subject.agreement.endswith("pl"):
            return nominals.possessed(noun, subject.referent, plural=True, own=True)
        return self.thing(noun, entry.flags, owner_of(subject))

    def intransitive(self, subject: Nominal | None = None, without: Sequence[str] = (), only: str = "") -> Action:
        return actions.intransitive(
            self.entry(verbs.INTRANSITIVE, subject, without if only == "daily" else (*without, "daily"), only)
        )

    def ditransitive(self, subject: Nominal | None = None) -> Action:
        entry = self.entry(verbs.DITRANSITIVE, subject, ("once",) if self.mode in ("habit", "liking") else ())
        owner = owner_of(subject) if "own" in entry.flags else ""
        return actions.ditransitive(
            entry,
            self.receiver(subject),
            self.thing(self.choose(nouns_of(entry.objects), True), owner=owner, rich=0.35),
        )

    def receiver(self, subject: Nominal | None) -> Nominal:
        pool = (
            list(people.KIN.values())
            + list(people.YOUNG_KIN.values())
            + list(people.YOUNG.values())
            + list(PERSONS.values())
        )
        noun = self.choose([noun for noun in pool if not subject or noun is not subject.noun])
        person = self.object_person(subject, noun)
        while not person.definite:
            person = self.object_person(subject, noun)
        return person

    def means(self, subject: Nominal) -> Adverb:
        """Draw how to get through the town; children do not drive."""
        return self.choose([way for way in places.TRAVEL_BY if subject.adult or way.en != "by car"], content=True)

    def place_for(self, action: Action) -> Place | None:
        """Draw where the deed is done; food is not bought in a department store, nor a bed in a supermarket."""
        if not action.places:
            return None
        if action.places == "shop" and action.object and action.object.noun:
            groceries = action.object.noun.group in ("food", "provision", "bare")
            return self.choose(
                places.group("grocery") if groceries else [places.PLACES["department store"], places.PLACES["market"]]
            )
        return self.choose(places.group(action.places))

    def placed(self, clause: Clause, chance: float = 0.6) -> Clause:
        """Add a place where the deed is done, where the word order stays plain."""
        action = clause.action
        if clause.negated and (action.known_object or (not action.takes_kein and action.object)):
            return clause
        if not action.object and not clause.place and action.places:
            place = self.choose(places.group(action.places), content=True)
            return clause.but(place=place)
        if action.places and self.chance(chance):
            return clause.but(place=self.place_for(action))
        return clause

    # --- times -----------------------------------------------------------------------------

    def time(self, kind: str, action: Action | None = None) -> Adverb:
        """Draw a time; what takes days is told with far ones (last summer)."""
        if kind == "habit" and action is not None and action.lemma not in verbs.DAILY:
            return self.choose(times.WEEKLY)
        far = action is not None and "long" in action.flags
        tables = {
            "past": times.PAST_FAR if far else times.PAST_NEAR, "future": times.FUTURE_FAR if far else times.FUTURE_NEAR,
            "habit": times.HABIT, "today": times.DAYS, "season": times.SEASONS,
        }  # fmt: skip
        return self.choose(tables[kind])

    def frequency(self) -> Adverb:
        return self.choose(times.FREQUENCY)

    def clock(self, action: Action | None = None) -> Adverb:
        """Draw a clock time, within the hours of a daily deed."""
        hours = [flag for flag in action.flags if flag[0].isdigit()] if action else []
        if not hours:
            return self.choose(times.CLOCK)
        first, last = map(int, hours[0].split("-"))
        return self.choose(times.clock_between(first, last))


def owner_of(subject: Nominal | None) -> str:
    """Return whose `his` or `my` may be; a neuter (das Mädchen) owns nothing here."""
    return subject.referent if subject and subject.referent != "3sg n" else ""


def suits(entry: VerbEntry, only: str) -> bool:
    """Tell whether a verb has the flag asked for, or belongs to a tag such as `fun`."""
    if only in verbs.TAGS:
        return entry.lemma in (verbs.TAGS[only])
    return not only or only in entry.flags


def own_kin(nominal: Nominal, noun: Noun, own: bool) -> Nominal:
    """Leave the owner out in Chinese: he visits his grandmother, 他看望奶奶."""
    return replace(nominal, zh=noun.zh) if own else nominal


_GLASS = Noun("glass", "glasses", "Glas", "n", "Gläser", "杯", "个", "household")


def container_for(noun: Noun) -> Noun:
    """Name the vessel by its Chinese measure word (杯, 瓶) in place of its noun."""
    return replace(noun, zh={"cup": "杯", "glass": "杯", "bottle": "瓶"}[noun.en])


def lemma_of(option: object) -> str:
    """Return the word by which an option is counted."""
    if isinstance(option, (str, int)):
        return str(option)
    if isinstance(option, (list, tuple)):
        return str(option[0])
    return option.lemma
