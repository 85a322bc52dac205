"""Phrases that no translation may hold: which tokens would complete one.

A phrase has many spellings: other pieces, pieces that reach beyond it, single bytes. So what is looked for is not
pieces but bytes, by the automaton of Aho & Corasick (1975) over the bytes of all phrases: a node says which phrases
have begun, and a token is blocked where its bytes lead through the end of one. That is exact for every spelling, also
inside of words. One list serves a whole job, so what was found out about it is kept, also by a worker process that
gets the list with every window of lines. Not here: whose hypotheses stand at which node (``hypotheses.py``).
"""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache

START = 0


class ForbiddenPhrases:
    """An automaton; nodes are numbers."""

    def __init__(self, phrases: Sequence[str], surfaces: Sequence[bytes]) -> None:
        """Build it.

        Args:
            phrases: none of them empty.
            surfaces: what each token adds to the text, by its id (``Tokenizer.tgt_surfaces``).
        """
        self.phrases, self._surfaces = tuple(phrases), tuple(surfaces)
        self._children: list[dict[int, int]] = [{}]
        self._ends = [False]
        for phrase in phrases:
            self._insert(phrase.encode())
        self._fallback = self._fallbacks()
        self._blocked: dict[int, list[int]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """Travel to another process as phrases and surfaces; the same ones are built there only once."""
        return _built, (self.phrases, self._surfaces)

    def among(self, ids: Sequence[int]) -> "ForbiddenPhrases":
        """Return the same for tokens that are numbered by a list of ids."""
        other = object.__new__(ForbiddenPhrases)  # copy.copy would ask ``__reduce__``, and get the one that is shared
        other.__dict__.update(self.__dict__)
        other._surfaces, other._blocked = tuple(self._surfaces[number] for number in ids), {}
        return other

    def step(self, node: int, token: int) -> int:
        """Return the node after a token."""
        for byte in self._surfaces[token]:
            node = self._next(node, byte)
        return node

    def blocked(self, node: int) -> list[int]:
        """Return the tokens that would complete a phrase; found once for each node that a search comes to."""
        if node not in self._blocked:
            self._blocked[node] = [token for token in range(len(self._surfaces)) if self._completes(node, token)]
        return self._blocked[node]

    def _completes(self, node: int, token: int) -> bool:
        for byte in self._surfaces[token]:
            node = self._next(node, byte)
            if self._ends[node]:
                return True
        return False

    def _next(self, node: int, byte: int) -> int:
        while node and byte not in self._children[node]:
            node = self._fallback[node]
        return self._children[node].get(byte, START)

    def _insert(self, phrase: bytes) -> None:
        node = START
        for byte in phrase:
            if byte not in self._children[node]:
                self._children[node][byte] = len(self._children)
                self._children.append({})
                self._ends.append(False)
            node = self._children[node][byte]
        self._ends[node] = True

    def _fallbacks(self) -> list[int]:
        """Return for each node the longest other beginning of a phrase that its bytes end with."""
        fallback, waiting = [START] * len(self._children), deque(self._children[START].values())
        while waiting:
            node = waiting.popleft()
            for byte, child in self._children[node].items():
                at = fallback[node]
                while at and byte not in self._children[at]:
                    at = fallback[at]
                fallback[child] = self._children[at].get(byte, START)
                self._ends[child] |= self._ends[fallback[child]]
                waiting.append(child)
        return fallback


@lru_cache(4)
def _built(phrases: tuple[str, ...], surfaces: tuple[bytes, ...]) -> ForbiddenPhrases:
    return ForbiddenPhrases(phrases, surfaces)
