"""What is wished of translations, from text to ids: how they start, what they have to hold and must not hold.

**A prefix** is cut into pieces as if it stood alone, and the model goes on from its last piece. So its last word may
grow: ``Haus`` may become ``Hausboot`` or ``Haus am See``. White space at its ends is left away, because the space
before a word belongs to the piece of that word: a prefix that ended in one would be followed by a second.

**A required phrase** is cut as it would be inside of a line: with the space in front that its first piece begins with,
or, where the language sets no spaces, without one. It has one spelling here; a model that spells it otherwise says it
again. **A forbidden phrase** is looked for in every spelling (``forbidden.py``).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from transformer_cli.data.languages import writes_spaces
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.decoding.phrases import ANYTHING, Glossary, Phrases
from transformer_cli.errors import UserError
from transformer_cli.wording import counted

#: Behind one of these a phrase is cut into pieces as inside of a line, where a language sets no spaces.
_BEFORE = "，。、的x1"


class Wishes:
    """Prepares wishes for one model and one target language."""

    def __init__(self, tokenizer: Tokenizer, src_lang: str, tgt_lang: str, limit: int) -> None:
        """Take what they depend on.

        Args:
            tokenizer: of the model.
            src_lang: language of a glossary's terms.
            tgt_lang: language of everything else.
            limit: longest translation, in ids, that the model can be asked for, without ``</s>``.
        """
        self._tokenizer, self._src_lang, self._limit = tokenizer, src_lang, limit
        self._has_spaces = writes_spaces(tgt_lang)

    def prefix_ids(self, prefix: str | None, phrases: Phrases = ANYTHING) -> list[int]:
        """Return the ids of a prefix; none of None.

        Args:
            prefix: a line end in it becomes a space.
            phrases: what must not be said.

        Raises:
            UserError: nothing of it is left to encode, it cannot be forced, or must not be said.
        """
        if prefix is None:
            return []
        text = " ".join(prefix.splitlines()).strip()
        if not text:
            raise UserError("the prefix of a translation is empty", expected="text", hint="leave it away")
        if said := phrases.said(text):
            raise UserError("the prefix holds a forbidden phrase", got=said[0])
        ids = self._tokenizer.encode_tgt([text])[0]
        self._refuse_long(ids, "the prefix is longer than a translation may be")
        self._refuse_unspelled(text, ids)
        return ids

    def glossary(self, terms: Mapping[str, str]) -> Glossary:
        """Prepare terms of the source language with the translations that they have to get.

        Raises:
            UserError: a translation is too long, or cannot be spelled.
        """
        return Glossary(terms, {text: self._phrase_ids(text) for text in terms.values()}, self._src_lang)

    def check_translation(self, phrase: str, phrases: Phrases = ANYTHING) -> None:
        """Refuse what no translation can hold.

        Args:
            phrase: the translation of a term.
            phrases: what must not be said.

        Raises:
            UserError: it is too long, cannot be spelled, or must not be said.
        """
        self._phrase_ids(phrase)
        if said := phrases.said(phrase):
            raise UserError("the glossary wants what is forbidden", got=f"{phrase!r} holds {said[0]!r}")

    def forbid(self, phrases: Sequence[str]) -> ForbiddenPhrases:
        """Prepare phrases that must not be said; done once, it serves every line."""
        return ForbiddenPhrases(phrases, self._surfaces)

    def _phrase_ids(self, phrase: str) -> list[int]:
        whole = self._tokenizer.encode_tgt([phrase])[0]
        self._refuse_long(whole, f"{phrase!r} is longer than a translation may be")
        self._refuse_unspelled(phrase, whole)
        behind = [] if self._has_spaces else [self._behind(before, phrase) for before in _BEFORE]
        return next(filter(None, behind), whole)

    def _behind(self, before: str, phrase: str) -> list[int]:
        """Return the ids of a phrase behind a character; none if a piece reaches over both."""
        ids, length = self._tokenizer.encode_tgt([before + phrase])[0], len(phrase.encode())
        sizes = [len(self._surfaces[one]) for one in ids]
        return next((ids[start:] for start in range(1, len(ids)) if sum(sizes[start:]) == length), [])

    def _refuse_long(self, ids: Sequence[int], what: str) -> None:
        if len(ids) > self._limit:
            raise UserError(what, got=counted(len(ids), "token"), expected=f"at most {self._limit}")

    def _refuse_unspelled(self, text: str, ids: Sequence[int]) -> None:
        """Refuse what the tokenizer normalises, or lacks a character of."""
        if (spelled := self._tokenizer.decode(ids)) != text:
            hint = "change these characters"
            raise UserError("the run's tokenizer cannot spell this", got=spelled, expected=text, hint=hint)

    @cached_property
    def _surfaces(self) -> list[bytes]:
        return self._tokenizer.tgt_surfaces()
