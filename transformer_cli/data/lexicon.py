"""Which target pieces go with a source piece: the probabilities t(target | source) of IBM model 1.

Every target piece of a pair comes from one of the source pieces beside it, whichever that is; expectation maximisation
finds how probable each is (Brown et al. 1993, section 4.1). ``</s>`` stands in every source and takes the part of their
empty word; so does the tag of a language, for its language alone. The order of pieces plays no part.

Only what stood together in a pair is kept: a number for each of the distinct couples, about a million for Multi30k.
Not here: what is done with them (``decoding/shortlist.py``), and alignments of a model (``decoding/alignment.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.batching import TokenizedPairs

_ROUNDS = 5
_CHUNK = 1_000_000  # links that are sorted at a time
MOST_LINKS = 40_000_000  # eight bytes each; of more text an evenly spread part is read

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Lexicon:
    """Couples of pieces that stood in one pair, ordered by source, then by target."""

    source: Numbers  # [n] id
    target: Numbers  # [n] id
    probability: NDArray[np.float64]  # [n] t(target | source)

    def best(self, k: int, n_sources: int) -> NDArray[np.int32]:
        """Return the k most probable targets ``[n_sources, k]`` of each source, best first; -1 where there are fewer.

        Of equally probable ones the lower id comes first.
        """
        order = np.lexsort((self.target, -self.probability, self.source))
        source = self.source[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        found = np.full((n_sources, k), -1, dtype=np.int32)
        kept = rank < k
        found[source[kept], rank[kept]] = self.target[order][kept]
        return found


def fit_lexicon(pairs: TokenizedPairs, n_targets: int, rounds: int = _ROUNDS, most_links: int = MOST_LINKS) -> Lexicon:
    """Fit IBM model 1 to pairs; equal pairs give equal numbers.

    Args:
        pairs: at least one.
        n_targets: size of the target vocabulary.
        rounds: of expectation maximisation.
        most_links: most (source piece, target piece) places that are looked at.
    """
    couples, link_couple, link_target = _links(_spread(pairs, most_links), n_targets)
    source, target = np.divmod(couples, n_targets)
    probability = np.ones(len(couples))
    for _ in range(rounds):
        weight = probability[link_couple]
        weight /= np.bincount(link_target, weight)[link_target]  # P(this source piece | the target piece, the pair)
        count = np.bincount(link_couple, weight)
        probability = count / np.bincount(source, count)[source]
    return Lexicon(source, target, probability)


def _spread(pairs: TokenizedPairs, most_links: int) -> TokenizedPairs:
    """Return all pairs, or every n-th of them."""
    links = int((pairs.src_lengths.astype(np.int64) * pairs.tgt_lengths).sum())
    return pairs.select(range(0, len(pairs), max(1, -(-links // most_links))))


def _links(pairs: TokenizedPairs, n_targets: int) -> tuple[Numbers, NDArray[np.int32], NDArray[np.int32]]:
    """Number the couples and the target pieces of all pairs.

    Returns:
        The couples, ascending, as source * n_targets + target; of each link its couple; and its target piece, numbered
        through all pairs.
    """
    distinct, inverses, places, first = [], [], [], 0
    for chunk in _chunks(pairs):
        keys = [(src[:, None].astype(np.int64) * n_targets + tgt).ravel() for src, tgt in chunk]
        found, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        distinct.append(found)
        inverses.append(inverse)
        for src, tgt in chunk:
            places.append(np.tile(np.arange(first, first + len(tgt), dtype=np.int32), len(src)))
            first += len(tgt)
    couples = np.unique(np.concatenate(distinct))
    numbers = [np.searchsorted(couples, found).astype(np.int32) for found in distinct]
    of_links = [number[inverse] for number, inverse in zip(numbers, inverses, strict=True)]
    return couples, np.concatenate(of_links), np.concatenate(places)


def _chunks(pairs: TokenizedPairs) -> Sequence[Sequence[tuple[NDArray[np.int32], NDArray[np.int32]]]]:
    """Cut pairs into parts of about so many links."""
    chunks: list[list[tuple[NDArray[np.int32], NDArray[np.int32]]]] = [[]]
    links = 0
    for src, tgt in zip(pairs.src, pairs.tgt, strict=True):
        if links > _CHUNK:
            chunks.append([])
            links = 0
        chunks[-1].append((src, tgt))
        links += len(src) * len(tgt)
    return chunks
