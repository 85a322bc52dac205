"""What the generator hands on: a sentence in three languages with its origin."""

from __future__ import annotations

import re
from dataclasses import dataclass

HANDWRITTEN = "handwritten"
PUNCTUATION = re.compile(r"[^\w ]")


@dataclass(frozen=True)
class Sentence:
    """A triple with its structure, its combination key and the lemmas it was made of."""

    en: str
    de: str
    zh: str
    structure: str
    combination: str
    lemmas: tuple[str, ...] = ()

    def row(self) -> str:
        return "\t".join((self.en, self.de, self.zh, self.structure)) + "\n"


def normalized(sentence: str) -> str:
    """Fold case and drop punctuation, so that near-identical sentences are one."""
    return PUNCTUATION.sub("", sentence.casefold())


def handwritten(table: str) -> list[Sentence]:
    """Read `English<TAB>German<TAB>Chinese` lines; each is its own combination."""
    sentences, seen = [], set()
    for line in table.splitlines():
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 3 or line.startswith("#") or normalized(columns[0]) in seen:
            continue
        seen.add(normalized(columns[0]))
        sentences.append(Sentence(*columns[:3], HANDWRITTEN, f"{HANDWRITTEN}|{columns[0]}"))
    return sentences
