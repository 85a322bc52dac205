"""How far a hypothesis has come with the phrases that it has to hold, as a function of its tokens."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class State(NamedTuple):
    """What must be known of a hypothesis."""

    met: frozenset[int] = frozenset()  # the phrases that stand in it, by number
    tail: tuple[int, ...] = ()  # its last tokens: as many as a phrase's beginning may have


class Required:
    """The phrases of a sentence, as token ids. What was found out of states is kept: a beam comes to few of them."""

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        """Take phrases, none of them empty; each has to be met once, however often it stands here."""
        self.phrases = tuple(dict.fromkeys(map(tuple, phrases)))
        self.start = State()
        self._tail = max(map(len, self.phrases), default=1) - 1
        self.tokens = {token for phrase in self.phrases for token in phrase}
        self._after: dict[tuple[State, int], State] = {}
        self._n_met: dict[State, int] = {}

    def step(self, state: State, token: int) -> State:
        """Return the state after another token."""
        if token not in self.tokens:
            return State(state.met) if state.tail else state
        if (state, token) not in self._after:
            self._after[state, token] = self._by_phrase_token(state, token)
        return self._after[state, token]

    def wanted(self, state: State) -> list[int]:
        """Return the tokens that begin a phrase which is not met, or go on with one."""
        return sorted(
            {self.phrases[number][length] for number, lengths in self._begun(state).items() for length in lengths}
        )

    def n_met(self, state: State) -> int:
        """Return the number of tokens met: of all phrases that are, and of the longest beginning at the end."""
        if state not in self._n_met:
            begun = max((lengths[-1] for lengths in self._begun(state).values()), default=0)
            self._n_met[state] = self.n_held(state) + begun
        return self._n_met[state]

    def n_held(self, state: State) -> int:
        """Return the number of tokens of the phrases that are met: so many remain, whatever follows."""
        return sum(len(self.phrases[number]) for number in state.met)

    def is_met(self, state: State) -> bool:
        """Return whether all phrases are met."""
        return len(state.met) == len(self.phrases)

    def _by_phrase_token(self, state: State, token: int) -> State:
        tokens = (*state.tail, token)
        ended = {number for number, phrase in enumerate(self.phrases) if tokens[-len(phrase) :] == phrase}
        return State(state.met | ended, tokens[-self._tail :] if self._tail else ())

    def _begun(self, state: State) -> dict[int, list[int]]:
        """Return for each phrase that is not met the lengths, 0 among them, of its beginnings at the end."""
        return {
            number: [n for n in range(len(phrase)) if n == 0 or state.tail[-n:] == phrase[:n]]
            for number, phrase in enumerate(self.phrases)
            if number not in state.met
        }


@lru_cache(1024)
def required_of(phrases: tuple[tuple[int, ...], ...]) -> Required:
    """Return the phrases of a sentence; another one with the same shares what was found out."""
    return Required(phrases)
