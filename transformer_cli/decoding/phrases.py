"""What the translations of a job must and must not say, as text: a glossary and a list of forbidden phrases."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transformer_cli.data.languages import writes_spaces
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.errors import UserError


class Glossary:
    """Terms of the source language, each with its translation.

    Attributes:
        terms: from a term to its translation; upper and lower case count.
    """

    def __init__(self, terms: Mapping[str, str], ids: Mapping[str, Sequence[int]], src_lang: str) -> None:
        """Take terms; ``wishes.py`` makes the ids.

        Args:
            terms: neither they nor their translations are blank.
            ids: of each translation.
            src_lang: where it sets spaces, terms are whole words of a line, else any part of it.
        """
        self.terms, self._ids = dict(terms), ids
        self._edges = (r"(?<!\w)", r"(?!\w)") if writes_spaces(src_lang) else ("", "")

    def required(self, line: str) -> list[str]:
        """Return the translations of the terms in a line, in their order, each once.

        Of terms that overlap the first counts, of those that begin at one place the longest.
        """
        here = sorted((term for term in self.terms if term in line), key=lambda term: (-len(term), term))
        if not here:
            return []
        before, after = self._edges
        found = re.finditer(f"{before}(?:{'|'.join(map(re.escape, here))}){after}", line)
        return list(dict.fromkeys(self.terms[match[0]] for match in found))

    def ids(self, line: str) -> list[Sequence[int]]:
        """Return the ids of what is required."""
        return [self._ids[phrase] for phrase in self.required(line)]


@dataclass(frozen=True)
class Phrases:
    """What must be said, and what must not."""

    glossary: Glossary | None = None
    forbidden: ForbiddenPhrases | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            UserError: the glossary wants something that is forbidden.
        """
        for translation in self.glossary.terms.values() if self.glossary else ():
            if said := self.said(translation):
                raise UserError("the glossary wants what is forbidden", got=f"{translation!r} holds {said[0]!r}")

    def required_ids(self, line: str) -> list[Sequence[int]]:
        """Return, as ids, what the translation of a line has to hold."""
        return [] if self.glossary is None else self.glossary.ids(line)

    def missing(self, line: str, translation: str) -> list[str]:
        """Return what it has to hold and does not."""
        required = [] if self.glossary is None else self.glossary.required(line)
        return [phrase for phrase in required if phrase not in translation]

    def said(self, text: str) -> list[str]:
        """Return the forbidden phrases in a text."""
        return [] if self.forbidden is None else [phrase for phrase in self.forbidden.phrases if phrase in text]


ANYTHING = Phrases()
