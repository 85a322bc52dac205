"""Which training pairs are noise: copies, repetitions, the wrong script, sides of very different length.

Every filter is off unless the recipe asks for it, and says how many pairs it took. Dev and test are never filtered, so
that scores before and after can be compared. Not here: what is always dropped (``corpus.py``, ``batching.py``).
"""

import functools
import re
import unicodedata
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import DataConfig
from transformer_cli.data.languages import language
from transformer_cli.data.pairs import ParallelText

#: As in ``batching.py``, whose import would load torch.
Indices = NDArray[np.int64]
Lengths = NDArray[np.int32]

#: Script, by the first word of its letters' Unicode names -> the languages that are written in it.
WRITTEN_IN = {
    "LATIN": "cs da de en es et fi fr hr hu id it lt lv ms nb nl nn no pl pt ro sk sl sq sr sv sw tr vi",
    "CYRILLIC": "be bg kk ky mk ru sr uk",
    "ARABIC": "ar fa ps ur",
    "ARMENIAN": "hy",
    "BENGALI": "bn",
    "BOPOMOFO": "zh",
    "CJK": "ja ko zh",
    "DEVANAGARI": "hi mr ne",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
}

#: Written without spaces: a letter counts as much as a word of another script.
_WITHOUT_SPACES = {"CJK", "HIRAGANA", "KATAKANA", "THAI"}


def filter_pairs(pairs: ParallelText, config: DataConfig, tgt_lang: str) -> tuple[ParallelText, dict[str, int]]:
    """Drop the pairs that ``data.filter`` names, but for those that it judges by subword tokens.

    Args:
        pairs: training pairs.
        config: the filters that are on, and the language of the source side.
        tgt_lang: language of the target side.

    Returns:
        What is left, and how many each filter that is on has dropped, in the order in which they looked.
    """
    filters = PairFilters(config, tgt_lang)
    kept = [i for i, pair in enumerate(zip(pairs.src, pairs.tgt, strict=True)) if filters.keep(*pair)]
    return pairs.select(kept), filters.dropped


class PairFilters:
    """The filters that look at one pair after another."""

    def __init__(self, config: DataConfig, tgt_lang: str) -> None:
        """Take those that ``data.filter`` names; see ``filter_pairs``."""
        wanted = config.filter
        known: list[tuple[str, bool, Callable[[str, str], bool]]] = [
            ("source and target are the same", wanted.identical, lambda src, tgt: src == tgt),
            (
                "in another script than the language",
                wanted.wrong_script,
                lambda src, tgt: is_in_other_script(src, config.src_lang) or is_in_other_script(tgt, tgt_lang),
            ),
            ("repeats an earlier pair", wanted.duplicates, _Seen().holds),
        ]
        self._filters = [(reason, is_noise) for reason, is_on, is_noise in known if is_on]
        self.dropped = {reason: 0 for reason, _ in self._filters}  # pairs so far

    def keep(self, src: str, tgt: str) -> bool:
        """Return whether a pair stays; the first filter that says no counts it."""
        reason = next((reason for reason, is_noise in self._filters if is_noise(src, tgt)), None)
        if reason is not None:
            self.dropped[reason] += 1
        return reason is None


def of_like_length(src_lengths: Lengths, tgt_lengths: Lengths, ratio: float) -> Indices:
    """Return the places of the pairs whose longer side has at most ``ratio`` times the tokens of the shorter one.

    Subword tokens with EOS: unlike characters they weigh a Chinese and an English sentence about the same.
    """
    longer, shorter = np.maximum(src_lengths, tgt_lengths), np.minimum(src_lengths, tgt_lengths)
    return np.flatnonzero(longer <= ratio * shorter)


def is_in_other_script(text: str, code: str) -> bool:
    """Return whether most words of a text are written in another script than those of the language.

    Words and not letters are counted, and letters of scripts without spaces as words: one name in Latin letters does
    not outweigh the rest of a Chinese sentence. Languages that are not in ``WRITTEN_IN`` are never judged.

    Args:
        text: a sentence; without letters it is in no wrong script.
        code: of its language, with or without a region (``pt-BR``).
    """
    own = _scripts_of_language(language(code))
    words = _scripts_of_words(text) if own else []
    return 2 * sum(script in own for script in words) < len(words)


@functools.cache
def _scripts_of_language(own: str) -> set[str]:
    return {script for script, languages in WRITTEN_IN.items() if own in languages.split()}


def _scripts_of_words(text: str) -> list[str]:
    words, previous = [], ""
    for character in text:
        script = _script(character)
        if script is None:
            continue
        if script and (script != previous or script in _WITHOUT_SPACES):
            words.append(script)
        previous = script
    return words


@functools.cache
def _script(character: str) -> str | None:
    """Return the script of a letter, an empty text for what separates words, None for marks, which do not."""
    kind = unicodedata.category(character)[0]
    if kind != "L":
        return None if kind == "M" else ""
    name = unicodedata.name(character, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    return re.split("[ -]", name, maxsplit=1)[0]


class _Seen:
    """Remembers pairs."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str]] = set()

    def holds(self, src: str, tgt: str) -> bool:
        """Return whether the pair was asked for before."""
        before = len(self._pairs)
        self._pairs.add((src, tgt))
        return len(self._pairs) == before
