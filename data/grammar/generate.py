"""Make the corpus: draw sentences from every structure, split them, write the files.

The same seed always gives the same bytes: nothing depends on the hash seed, the clock or the machine.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

from . import (  # noqa: F401 - each registers its structures
    structures_comparison,
    structures_coordination,
    structures_description,
    structures_everyday,
    structures_indirect,
    structures_infinitive,
    structures_modals,
    structures_passive,
    structures_people,
    structures_places,
    structures_questions,
    structures_relative,
    structures_shopping,
    structures_subordinate,
    structures_tenses,
    structures_that,
    structures_weather,
)
from .draw import Draw
from .sentences import Sentence, handwritten, normalized
from .split import Corpus, split
from .structures import REGISTER

SEED = "phrasebook-1"
TARGET = 40_000
FOLDER = Path(__file__).resolve().parent.parent / "phrasebook"
PARTS = {
    "train": "train.tsv.gz", "dev": "dev.tsv.gz", "test": "test.tsv.gz", "handwritten_test": "handwritten.test.tsv.gz",
}  # fmt: skip
# Structures that carry rare words (foods, games, months, weather) get more than one share …
RICH = {
    "bought_food_and_food": 3, "ate_food_and_food": 3, "ordered_dish_and_drink": 2, "ate_and_then_drank": 2, "plays_with_whom": 2,
    "how_much_food_did": 2, "if_weather_then_future": 2, "when_weather_habit": 2, "habit_in_season": 3, "not_done_because_of_weather": 2,
    "takes_place_on": 1.5, "is_years_old": 1.5, "price_of_thing": 1.5, "paid_for_thing": 1.5, "saw_animals_at_zoo": 1.5, "would_rather_play": 1.5,
    "routine_at_clock": 1.6, "routine_yesterday": 1.6, "routine_tomorrow": 1.6, "two_things_are": 2, "as_as": 1.5, "not_as_as": 1.5,
}  # fmt: skip
# … and those with a firm frame and few words to choose get less.
LEAN = dict.fromkeys(
    [
        "most_in_place",
        "most_in_city",
        "thing_is_but_not",
        "train_leaves_at",
        "works_as",
        "works_since",
        "learns_since",
        "wants_to_become",
        "looking_for_person_who_can",
        "opens_at",
        "thing_is_somewhere",
        "there_are_in_room",
        "has_but_lacks",
        "skill_and_skill",
        "skill_but_no_skill",
        "how_does_one_go",
        "tired_because_of_work",
        "is_wearing",
        "shall_we",
        "ask_already",
        "future_with_time",
        "heard_that_past",
        "may_with_time",
        "progressive_now",
        "command_please",
        "command_not",
        "thing_is_too",
        "more_than",
        "ask_more_than",
    ],
    0.3,
)
WEIGHTS = {**RICH, **LEAN}


def draw_structure(name: str, count: int, used: Counter[str], seen: set[str]) -> list[Sentence]:
    """Draw up to `count` new sentences of one structure that do not say one thing twice; give up in the end."""
    draw, found = Draw(f"{SEED}:{name}", used), []
    for _ in range(count * 3):
        if len(found) == count:
            break
        draw.begin()
        triple = REGISTER[name](draw)
        if normalized(triple.en) in seen or len(set(draw.content)) < len(draw.content):
            continue
        seen.add(normalized(triple.en))
        combination = "|".join([name, *draw.content])
        found.append(Sentence(*triple, name, combination, tuple(draw.lemmas)))
    return found


def generated(taken: list[Sentence]) -> list[Sentence]:
    """Return the sentences of all structures, the same share for each; none repeats one that is taken."""
    used: Counter[str] = Counter()
    seen = {normalized(sentence.en) for sentence in taken}
    weights = {name: WEIGHTS.get(name, 1) for name in REGISTER}
    share = TARGET / sum(weights.values())
    return [
        sentence for name in REGISTER for sentence in draw_structure(name, round(share * weights[name]), used, seen)
    ]


def corpus(folder: Path = FOLDER) -> Corpus:
    """Return the whole corpus; the handwritten lines are read from the folder, if they are there."""
    source = folder / "handwritten.tsv"
    by_hand = handwritten(source.read_text(encoding="utf-8")) if source.exists() else []
    return split(generated(by_hand), by_hand)


def packed(sentences: list[Sentence]) -> bytes:
    """Compress the rows, without the time and name that gzip would add."""
    text = "".join(sentence.row() for sentence in sentences)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def write(folder: Path = FOLDER) -> Corpus:
    """Rewrite the files of the folder and return what is in them."""
    made = corpus(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part, name in PARTS.items():
        (folder / name).write_bytes(packed(getattr(made, part)))
    return made


def summary(made: Corpus) -> str:
    """Describe the corpus in a few lines for the person who made it."""
    everything = made.train + made.dev + made.test + made.handwritten_test
    words = [len(sentence.en.split()) for sentence in everything]
    lines = [f"{name:17}{len(getattr(made, name)):7,} sentences" for name in PARTS]
    lines.append(
        f"{len(everything):,} in all, {len(REGISTER)} structures, {len({s.structure for s in made.test})} of them in test"
    )
    lines.append(f"English words: {min(words)} to {max(words)}, {sum(words) / len(words):.1f} on average")
    lines.append(f"{len({lemma for s in everything for lemma in s.lemmas}):,} lemmas")
    return "\n".join(lines)
