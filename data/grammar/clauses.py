"""A clause: who does what, when, where, in which tense and mood, in three word orders each.

`Clause.en()`, `de()`, `zh()` say it as a statement; the other methods give the word orders that
questions, subordinate clauses and infinitives need. Sentences are put together in `structures_*`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from . import chinese, english, german
from .actions import (
    RANK_DATIVE,
    RANK_DEFINITE,
    RANK_DEFINITE_NEGATED,
    RANK_FREQUENCY,
    RANK_MANNER,
    RANK_NICHT,
    RANK_PLACE,
    RANK_PRONOUN,
    RANK_TIME,
    Action,
    Part,
)  # fmt: skip
from .lexicon import Adverb, Place
from .lexicon_time import NEVER as NEVER_HABIT
from .nominals import Nominal


@dataclass(frozen=True)
class Modal:
    """A modal: finite English by agreement or one word, German auxiliary, Chinese yes and no."""

    en: str
    en_third: str
    de: str
    zh: str
    zh_negated: str
    en_negated: str = ""
    de_negated: str = ""


CAN = Modal("can", "can", "können", "能", "不能", "cannot")
SKILL = Modal("can", "can", "können", "会", "不会", "cannot")
MUST = Modal("must", "must", "müssen", "必须", "不可以", "must not", "dürfen")
SHOULD = Modal("should", "should", "sollten", "应该", "不应该", "should not")
MAY = Modal("may", "may", "dürfen", "可以", "不可以", "may not")
WANT = Modal("want to", "wants to", "wollen", "想", "不想")
LIKE = Modal("would like to", "would like to", "möchten", "想要", "不想", "would not like to")
HAVE_TO = Modal("have to", "has to", "müssen", "得", "不用")
COULD = Modal("could", "could", "konnte", "能", "没能", "could not")
HAD_TO = Modal("had to", "had to", "musste", "不得不", "不用")
WANTED = Modal("wanted to", "wanted to", "wollte", "想", "没想")
ALLOWED = Modal("was allowed to", "was allowed to", "durfte", "可以", "不可以", "was not allowed to")

# Focus adverbs: English before the participle, German, Chinese (with the aspect it asks for).
ALREADY = Adverb("already", "schon", "已经")
JUST = Adverb("just", "gerade", "刚")
NEVER = Adverb("never", "noch nie", "从来没")
YET = Adverb("", "noch", "还")


@dataclass(frozen=True)
class Clause:
    """One clause; `tense` is present, progressive, past, perfect, pluperfect or future."""

    subject: Nominal
    action: Action
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    time: Adverb | None = None
    clock: Adverb | None = None
    frequency: Adverb | None = None
    focus: Adverb | None = None
    place: Place | None = None
    manner: Adverb | None = None
    extra: tuple[Part, ...] = field(default=())

    # --- English ---------------------------------------------------------------------------

    def _english_verb(self, question: bool) -> tuple[str, str]:
        """Return the auxiliary (with `not`) and the rest of the verb; questions move the former."""
        verb, agreement = self.action.en, self.subject.agreement
        singular, negation = agreement == "3sg", "not" if self.negated else ""
        base = english.joined(verb.base, verb.particle)
        support = question or self.negated
        if self.modal:
            return self._english_modal(question, base)
        if self.tense == "present":
            if support:
                return english.joined("does" if singular else "do", negation), base
            return "", english.joined(verb.third if singular else verb.base, verb.particle)
        if self.tense == "past":
            return (
                (english.joined("did", negation), base) if support else ("", english.joined(verb.past, verb.particle))
            )
        participle = english.joined(verb.participle, verb.particle)
        auxiliary, rest = {
            "progressive": (english.BE_PRESENT[agreement], english.joined(verb.gerund, verb.particle)),
            "perfect": ("has" if singular else "have", participle),
            "pluperfect": ("had", participle),
            "future": ("will", base),
        }[self.tense]
        return english.joined(auxiliary, negation), rest

    def _english_modal(self, question: bool, base: str) -> tuple[str, str]:
        modal, singular = self.modal, self.subject.agreement == "3sg"
        if self.negated and modal.en_negated:
            return modal.en_negated, base
        word = modal.en_third if singular else modal.en
        if modal.en in ("want to", "have to"):
            if question or self.negated:
                return english.joined("does" if singular else "do", "not" if self.negated else ""), f"{modal.en} {base}"
            return "", f"{word} {base}"
        if modal.en in ("wanted to", "had to"):
            if question or self.negated:
                infinitive = {"wanted to": "want to", "had to": "have to"}[modal.en]
                return english.joined("did", "not" if self.negated else ""), f"{infinitive} {base}"
            return "", f"{word} {base}"
        head, _, tail = word.partition(" ")
        return head, english.joined(tail, base)

    def _english_end(self) -> str:
        return english.joined(
            self.action.en_tail, self.manner.en if self.manner else "", self.place.en if self.place else "",
            self.clock.en if self.clock else "", self.time.en if self.time else "",
        )  # fmt: skip

    def _english_middle(self) -> str:
        return english.joined(self.focus.en if self.focus else "", self.frequency.en if self.frequency else "")

    def en(self) -> str:
        auxiliary, rest = self._english_verb(False)
        return english.joined(self.subject.en, auxiliary, self._english_middle(), rest, self._english_end())

    def en_question(self) -> str:
        auxiliary, rest = self._english_verb(True)
        return english.joined(auxiliary, self.subject.en, self._english_middle(), rest, self._english_end())

    def en_infinitive(self) -> str:
        verb = self.action.en
        return english.joined("not" if self.negated else "", "to", verb.base, verb.particle, self._english_end())

    def en_base(self) -> str:
        return english.joined(self.action.en.base, self.action.en.particle, self._english_end())

    def en_gerund(self) -> str:
        return english.joined(self.action.en.gerund, self.action.en.particle, self._english_end())

    def en_predicate(self) -> str:
        """Return the statement without its subject, for coordination."""
        auxiliary, rest = self._english_verb(False)
        return english.joined(auxiliary, self._english_middle(), rest, self._english_end())

    # --- German ----------------------------------------------------------------------------

    def _german_finite(self) -> tuple[str, str]:
        """Return the finite verb and the tail of the verb bracket."""
        verb, agreement = self.action.de, self.subject.agreement
        if self.modal:
            name = self.modal.de_negated if self.negated and self.modal.de_negated else self.modal.de
            return german.auxiliary(name, agreement), verb.full_infinitive
        if self.tense in ("present", "progressive"):
            return verb.present(agreement), verb.prefix.strip()
        if self.tense == "future":
            return german.auxiliary("werden", agreement), verb.full_infinitive
        helper = verb.perfect
        if self.tense == "pluperfect":
            helper = {"haben": "hatte", "sein": "war"}[helper]
        return german.auxiliary(helper, agreement), verb.participle

    def _german_parts(self, fronted: bool, reflexive: bool = True) -> list[str]:
        """Order the middle field; a fronted time is not in it."""
        action = self.action
        kein = self.negated and action.takes_kein and self.focus is not NEVER
        parts = list(self.extra)
        if action.reflexive and reflexive:
            parts.append(Part(RANK_PRONOUN, german.REFLEXIVE[self.subject.agreement]))
        for part in action.parts:
            early = self.negated and not kein and part.rank in (RANK_DATIVE, RANK_DEFINITE)
            rank = RANK_DEFINITE_NEGATED + part.rank / 10 if early else part.rank
            parts.append(Part(rank, part.negative if kein and part.negative else part.text))
        if not fronted:
            when = english.joined(self.time.de if self.time else "", self.clock.de if self.clock else "")
            parts.append(Part(RANK_TIME, when))
        elif self.clock and self.time:
            parts.append(Part(RANK_TIME, self.clock.de))
        if self.tense == "progressive":
            parts.append(Part(RANK_FREQUENCY, "gerade"))
        for rank, word in (
            (RANK_FREQUENCY, self.frequency),
            (RANK_FREQUENCY, self.focus),
            (RANK_MANNER, self.manner),
            (RANK_PLACE, self.place),
        ):
            parts.append(Part(rank, word.de if word else ""))
        if self.negated and not kein:
            early = self.place or self.manner or any(part.rank == RANK_MANNER for part in action.parts)
            rank = RANK_MANNER - 0.5 if early else RANK_NICHT
            parts.append(Part(rank, "nicht"))
        return [part.text for part in sorted(parts, key=lambda part: part.rank) if part.text]

    def de(self, front: str = "") -> str:
        """Return the statement, verb second; `front` pushes the subject behind the verb."""
        finite, tail = self._german_finite()
        if front:
            return english.joined(front, finite, *self._german_inverted(False), tail)
        return english.joined(self.subject.de["nom"], finite, *self._german_parts(False), tail)

    def _german_inverted(self, fronted: bool) -> list[str]:
        """Return subject and middle field behind the verb; `sich` goes before a noun."""
        parts, subject = self._german_parts(fronted), self.subject.de["nom"]
        if self.action.reflexive and not self.subject.pronoun:
            return [parts[0], subject, *parts[1:]]
        return [subject, *parts]

    def de_time_first(self) -> str:
        finite, tail = self._german_finite()
        first = self.time or self.clock
        return english.joined(first.de, finite, *self._german_inverted(True), tail)

    def de_question(self) -> str:
        finite, tail = self._german_finite()
        return english.joined(finite, *self._german_inverted(False), tail)

    def de_subordinate(self, connector: str = "") -> str:
        """Return the clause with its finite verb at the end: weil er das Buch gelesen hat."""
        finite, tail = self._german_finite()
        if self.tense in ("present", "progressive") and not self.modal:
            cluster = tail + (" " if self.action.de.prefix.endswith(" ") else "") + finite
        else:
            cluster = f"{tail} {finite}"
        return english.joined(connector, self.subject.de["nom"], *self._german_parts(False), cluster)

    def de_zu(self) -> str:
        return english.joined(*self._german_parts(False), self.action.de.zu_infinitive)

    def de_infinitive(self) -> str:
        return english.joined(*self._german_parts(False), self.action.de.full_infinitive)

    def de_predicate(self, same_auxiliary: bool = False) -> str:
        """Return the statement without its subject, for coordination; a repeated auxiliary is left out."""
        finite, tail = self._german_finite()
        return english.joined("" if same_auxiliary else finite, *self._german_parts(False), tail)

    def de_imperative(self, particle: str = "") -> str:
        parts = self._german_parts(False)
        pronouns = sum(part.rank == RANK_PRONOUN for part in self.action.parts) + self.action.reflexive
        parts.insert(pronouns, particle)
        return english.joined(self.action.de.imperative(), *parts, self.action.de.prefix.strip())

    # --- Chinese ---------------------------------------------------------------------------

    def _chinese_time(self) -> str:
        return (self.time.zh if self.time else "") + (self.clock.zh if self.clock else "")

    def _chinese_verb(self, aspect: str | None) -> str:
        place = self.place.zh if self.place else ""
        manner = self.manner.zh if self.manner else ""
        before, mark = self._chinese_before(), aspect
        if aspect is None:
            mark = self._chinese_aspect()
        pattern = self.action.zh
        if self.negated or self.focus is NEVER or self.frequency is NEVER_HABIT:
            pattern = self.action.zh_negated or pattern
        elif self.focus is JUST or aspect == "done":
            pattern, mark = self._chinese_just()
        elif mark == "完" and self.action.zh_done:
            pattern, mark = self.action.zh_done, ""
        elif mark == "了" and self.action.zh_done:
            pattern = self.action.zh_done
        if before == "正在" and place:
            before = "正"
        return before + place + manner + chinese.with_aspect(pattern, mark)

    def _chinese_aspect(self) -> str:
        if self.modal or self.tense in ("present", "progressive", "future"):
            return ""
        if self.focus is NEVER:
            return "过"
        return "" if self.negated else "了"

    def _chinese_just(self) -> tuple[str, str]:
        """Return pattern and mark after 刚 and before 之后: 刚把门打开, 刚买了一本书, 刚起床."""
        if self.action.zh_done:
            return self.action.zh_done, ""
        pattern = self.action.zh
        if "^" in pattern:
            return pattern.replace("*", "").replace("^", "*"), "了"
        return pattern, "了" if self.action.object else ""

    def _chinese_before(self) -> str:
        """Return adverb, negation and modal, in this order, before place and verb."""
        adverb = (self.frequency.zh if self.frequency else "") + (self.focus.zh if self.focus else "")
        if self.focus is NEVER:
            return adverb
        if self.modal:
            return adverb + (self.modal.zh_negated if self.negated else self.modal.zh)
        yes, no = {
            "present": ("", "不"), "progressive": ("正在", "没在"), "past": ("", "没"), "perfect": ("", "没"),
            "pluperfect": ("", "没"), "future": ("会", "不会"),
        }[self.tense]  # fmt: skip
        return adverb + (no if self.negated else yes)

    def zh(self, aspect: str | None = None) -> str:
        return self.subject.zh + self._chinese_time() + self._chinese_verb(aspect)

    def zh_predicate(self, aspect: str | None = None) -> str:
        return self._chinese_time() + self._chinese_verb(aspect)

    def zh_time_first(self) -> str:
        return self._chinese_time() + self.subject.zh + self._chinese_verb(None)

    # --- variants --------------------------------------------------------------------------

    def en_time_first(self) -> str:
        first = self.time or self.clock
        rest = replace(self, time=None, clock=self.clock if self.time else None)
        return f"{first.en}, {rest.en()}" if len(first.en.split()) > 3 else f"{first.en} {rest.en()}"

    def but(self, **changes: object) -> Clause:
        """Return the same clause with some features changed."""
        return replace(self, **changes)
