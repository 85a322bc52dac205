"""Other pieces for a text, drawn by chance: BPE-dropout and subword regularisation.

SentencePiece samples as well, but since version 0.2.2 its generator is salted in every process anew: a seed repeats
its draws within one process only, so a resumed run would read another text, and so would every rank. Here the draws
are a function of the seed and the lines.

A piece never goes beyond a word in nearly every model, so words are drawn one by one, and what is the same for each
occurrence of a word is worked out once. Not here: which text is drawn when (``sampling.py``).
"""

import math
import re
from bisect import bisect
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np

from transformer_cli.data.piece_model import PieceModel

_UNKNOWN = 1  # id
_SPACE = "\u2581"
#: What is worked out for a word is remembered, of so many words; of a unigram model's lattice, about 0.6 KB a
#: character, of fewer. Longer words, above all sentences of a script without spaces, hardly come twice.
_WORDS_REMEMBERED, _LATTICES_REMEMBERED, _LONGEST_REMEMBERED = 2**17, 2**14, 16
_AT_ONCE = 4096  # random numbers
_NEVER = -math.inf
#: Of SentencePiece: how much less likely an unknown character is than the rarest piece, in nats.
_UNKNOWN_PENALTY = 10.0

Worked = TypeVar("Worked")
Random = Callable[[np.random.Generator, int], "np.ndarray[tuple[int], np.dtype[np.generic]]"]


class PieceDraws:
    """Draws the pieces of lines that the library has normalised."""

    def __init__(self, model: PieceModel) -> None:
        self._model = model
        crossing = re.compile(f"[^{_SPACE}]{_SPACE}")
        crosses = any(crossing.search(piece) for piece in model.ids)
        self._words = re.compile(r".+" if crosses else rf"{_SPACE}+[^{_SPACE}]*|[^{_SPACE}]+", re.DOTALL)
        whole = "|".join(re.escape(piece) for piece in sorted(model.user_defined, key=len, reverse=True))
        self._symbols = re.compile(f"{whole}|." if whole else ".", re.DOTALL)

    def draw(self, lines: Sequence[str], seed: int) -> list[list[int]]:
        """Return the ids of normalised lines; equal lines may get different ones."""
        numbers = self._numbers(np.random.default_rng(seed))
        drawn = [[i for word in self._words.findall(line) for i in self._word(word, numbers)] for line in lines]
        return drawn if self._model.byte_ids else [_one_unknown_a_run(ids) for ids in drawn]

    def _numbers(self, rng: np.random.Generator) -> "Numbers":
        raise NotImplementedError

    def _word(self, word: str, numbers: "Numbers") -> Sequence[int]:
        raise NotImplementedError

    def _ids(self, piece: str) -> list[int]:
        """Return the id of a piece, or how an unknown character is spelled."""
        known = self._model.ids.get(piece)
        if known is not None:
            return [known]
        return [self._model.byte_ids[byte] for byte in piece.encode()] if self._model.byte_ids else [_UNKNOWN]


class Numbers:
    """Random numbers of one kind, one after the other."""

    def __init__(self, rng: np.random.Generator, some: Random) -> None:
        self._stream = _stream(rng, some)
        self.advance()

    def advance(self) -> float:
        """Make the next number the newest, and return it."""
        self.newest = next(self._stream)
        return self.newest


def _stream(rng: np.random.Generator, some: Random) -> Iterator[float]:
    while True:
        yield from some(rng, _AT_ONCE).tolist()


class BpeDraws(PieceDraws):
    """BPE-dropout (Provilkov et al. 2020, algorithm 1): a merge that is possible is dropped with probability p.

    Of those left the best one is made, and then all are possible again; a word is done when none is left.
    (SentencePiece gives a dropped merge no second chance, which drops more.) Only the best one needs a draw, then the
    second best where it was dropped, and so on; how many are kept until one is dropped has a geometric distribution,
    so that most words need no draw at all.
    """

    def __init__(self, model: PieceModel, p: float) -> None:
        super().__init__(model)
        self._p = p
        self._merged = _remembering(self._merge, _WORDS_REMEMBERED)

    def _numbers(self, rng: np.random.Generator) -> Numbers:
        return Numbers(rng, lambda rng, count: rng.geometric(self._p, count) - 1)

    def _word(self, word: str, numbers: Numbers) -> Sequence[int]:
        drops: tuple[float, ...] = ()
        while True:
            ids, merges = self._merged(word, drops)
            if merges <= numbers.newest:
                numbers.newest -= merges
                return ids
            drops = (*drops, numbers.newest)
            numbers.advance()

    def _merge(self, word: str, drops: tuple[float, ...]) -> tuple[Sequence[int], int]:
        """Return the ids of a word, and how many merges follow the last drop.

        Args:
            word: normalised text.
            drops: how many merges are kept before the first that is dropped, from there to the second, and so on.
        """
        symbols = self._symbols.findall(word)
        pairs = [self._score(a, b) for a, b in pairwise(symbols)]
        kept, ends = 0, [*drops, math.inf]
        while pairs and (best := max(pairs)) > _NEVER:
            i = pairs.index(best)  # the leftmost
            if kept == ends[0]:
                pairs[i], kept, ends = _NEVER, 0, ends[1:]
                continue
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
            pairs = [self._score(a, b) for a, b in pairwise(symbols)]
            kept += 1
        return [i for symbol in symbols for i in self._ids(symbol)], kept

    def _score(self, left: str, right: str) -> float:
        if left in self._model.user_defined or right in self._model.user_defined:
            return _NEVER
        return self._model.scores.get(left + right, _NEVER)


class UnigramDraws(PieceDraws):
    """Subword regularisation (Kudo 2018, section 3.3): P(pieces) in proportion to the product of theirs, to a power.

    Forward, the weights of all ways to each place in the word are added up; backward, from its end, a piece is drawn
    in proportion to the weight of the ways through it.
    """

    def __init__(self, model: PieceModel, alpha: float) -> None:
        super().__init__(model)
        self._alpha = alpha
        lowest, highest = min(model.scores.values(), default=0.0), max(model.scores.values(), default=0.0)
        self._unknown = lowest - _UNKNOWN_PENALTY
        # As in the library: better than any other way to cut the same characters.
        own = {piece: len(piece) * highest - 0.1 for piece in model.user_defined}
        self._scores = model.scores | own
        self._longest = max(map(len, self._scores), default=1)
        self._lattice = _remembering(self._ways, _LATTICES_REMEMBERED)

    def _numbers(self, rng: np.random.Generator) -> Numbers:
        return Numbers(rng, lambda rng, count: rng.random(count))

    def _word(self, word: str, numbers: Numbers) -> Sequence[int]:
        lattice, end, drawn = self._lattice(word), len(word), []
        while end:
            shares, starts, ids = lattice[end]
            chosen = bisect(shares, numbers.advance()) if len(starts) > 1 else 0
            drawn.append(ids[chosen])
            end = starts[chosen]
        return [i for ids in reversed(drawn) for i in ids]

    def _ways(self, word: str) -> list[tuple[list[float], list[int], list[list[int]]]]:
        """Return for each place in a word what may end there: shares, added up but for the last, starts and ids."""
        weights, ways = [0.0], [([], [], [])]  # type: ignore[var-annotated]
        for end in range(1, len(word) + 1):
            starts = [s for s in range(max(0, end - self._longest), end) if word[s:end] in self._scores]
            if end - 1 not in starts:
                starts.append(end - 1)  # an unknown character
            logs = [weights[s] + self._alpha * self._scores.get(word[s:end], self._unknown) for s in starts]
            most = max(logs)
            parts = [math.exp(log - most) for log in logs]
            total = sum(parts)
            weights.append(most + math.log(total))
            shares = [share / total for share in accumulate(parts)][:-1]
            ways.append((shares, starts, [self._ids(word[s:end]) for s in starts]))
        return ways


def _remembering(work_out: Callable[..., Worked], words: int) -> Callable[..., Worked]:
    """Return the function of a word and more, which remembers what it found for the last short words."""
    remembered = lru_cache(words)(work_out)

    def found(word: str, *more: Hashable) -> Worked:
        return remembered(word, *more) if len(word) <= _LONGEST_REMEMBERED else work_out(word, *more)

    return found


def _one_unknown_a_run(ids: list[int]) -> list[int]:
    """Return ids as the library has them: unknown characters next to each other are one piece."""
    return [one for i, one in enumerate(ids) if not (one == _UNKNOWN and i and ids[i - 1] == _UNKNOWN)]


def piece_draws(model: PieceModel, strength: float) -> PieceDraws | None:
    """Return what draws from a model, or None if it has but one way to cut a word.

    Args:
        model: of any kind.
        strength: of a BPE model the probability that a merge is dropped; of a unigram model the power, alpha.
    """
    kinds = {"bpe": BpeDraws, "unigram": UnigramDraws}
    return kinds[model.kind](model, strength) if model.kind in kinds else None
