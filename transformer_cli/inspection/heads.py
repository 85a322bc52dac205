"""What the heads of a model do, measured over many sentences.

Legend: B batch, S source length, T target length, H heads.

Each number is a mean over all real queries of all sentences: a head's entropy, how far it looks, how much of its
weight lies on the previous, the own and the next token, nearby, on separators, and how much it differs from its
neighbours. From these a head gets a type, as Voita et al. 2019 and Clark et al. 2019 found them in large models. The
maps come from ``Transformer.attention_maps``; to draw them is not done here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

_NEAR = 2  # tokens: what counts as nearby
_HALF = 0.5  # of the weight: what makes a type
_BROAD = 0.8  # of the largest entropy there is
#: How the columns and the types are to be read.
LEGEND = (
    "entropy   of a query's weights: 0 looks at one token, 1 at all alike",
    "distance  tokens between a query and what it looks at, weighted",
    "type      what a head does on average, the first that holds:",
    f"          separator         more than {_HALF:.0%} of its weight is on marks and </s>",
    f"          alignment-like    in cross-attention: its largest weight is above {_HALF:.0%}",
    f"          ... position      elsewhere: more than {_HALF:.0%} on the previous, the same or the next position",
    f"          broad             an entropy above {_BROAD:g}",
    f"          local             more than {_HALF:.0%} within {_NEAR} tokens",
    "          mixed             none of these",
)
SAME = 0.05  # mean distance of two heads that do the same


@dataclass(frozen=True)
class Head:
    """One head, over all sentences."""

    place: str  # encoder, decoder or cross
    layer: int  # from 1 on, as heads are
    head: int
    kind: str
    entropy: float  # of its weights, in units of that of equal weights: 0 one token, 1 all alike
    distance: float  # |i - j| tokens, in self-attention; in cross-attention from the diagonal of the two sentences
    previous: float  # share of the weight on the token before
    own: float
    next: float
    near: float  # at most 2 tokens away
    separators: float  # on punctuation, and the tokens that begin and end a sentence
    largest: float  # of its weights, mean over the queries
    nearest: int | None  # the head of its layer that it differs from least
    nearest_distance: float | None  # by how much: 0 the same weights, 1 no token in common


@dataclass
class _Sums:
    """The sums of one layer's heads, each ``[H]``, or ``[H, H]``."""

    queries: int = 0
    shares: dict[str, Tensor] = field(default_factory=dict)
    between: Tensor | None = None

    def add(self, name: str, values: Tensor) -> None:
        """Add the sum over the queries of ``[H, T]``."""
        self.shares[name] = self.shares.get(name, 0) + values.sum(-1)

    def mean(self, name: str, head: int) -> float:
        return float(self.shares[name][head] / self.queries)


class HeadStatistics:
    """Adds up what heads do, sentence by sentence."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], _Sums] = {}

    def add(self, place: str, layer: int, weights: Tensor, separators: Tensor) -> None:
        """Look at one layer's weights for one sentence.

        Args:
            place: encoder, decoder or cross.
            layer: its number.
            weights: ``[H, T, S]`` for the real tokens alone.
            separators: boolean ``[S]``, which keys separate.
        """
        t, s = weights.shape[1:]
        sums = self._sums.setdefault((place, layer), _Sums())
        away = _away(place, t, s).to(weights.device)  # [T, S] signed
        sums.queries += t
        sums.add("entropy", _entropy(weights, causal=place == "decoder"))
        sums.add("distance", (weights * away.abs()).sum(-1))
        for name, offset in (("previous", -1), ("own", 0), ("next", 1)):
            sums.add(name, (weights * (away.round() == offset)).sum(-1))
        sums.add("near", (weights * (away.abs() <= _NEAR)).sum(-1))
        sums.add("separators", (weights * separators).sum(-1))
        sums.add("largest", weights.amax(-1))
        # Total variation: half of |a - b|, 1 where no token is shared.
        between = (weights[:, None] - weights[None]).abs().sum((-1, -2)) / 2  # [H, H]
        sums.between = between if sums.between is None else sums.between + between

    def heads(self) -> list[Head]:
        """Return every head, with what it does."""
        return [
            _head(place, layer, head, sums)
            for (place, layer), sums in self._sums.items()
            for head in range(len(sums.shares["entropy"]))
        ]


def doubles(heads: Iterable[Head]) -> list[tuple[Head, int]]:
    """Return heads that do the same as an earlier one of their layer."""
    return [
        (head, head.nearest)
        for head in heads
        if head.nearest is not None
        and head.nearest < head.head
        and head.nearest_distance is not None
        and head.nearest_distance < SAME
    ]


def _away(place: str, t: int, s: int) -> Tensor:
    """Return by how many tokens each key stands behind each query, ``[T, S]``."""
    query, key = torch.arange(t, dtype=torch.float32)[:, None], torch.arange(s, dtype=torch.float32)
    return key - query * (s / t if place == "cross" else 1.0)


def _entropy(weights: Tensor, *, causal: bool) -> Tensor:
    """Return the entropy of each row ``[H, T]``, divided by that of a row whose visible keys all weigh the same."""
    t, s = weights.shape[-2:]
    visible = torch.arange(1, t + 1, device=weights.device) if causal else torch.full((t,), s, device=weights.device)
    nats = -(weights * weights.clamp(min=1e-30).log()).sum(-1)  # [H, T]
    return nats / visible.clamp(min=2).log()


def _head(place: str, layer: int, head: int, sums: _Sums) -> Head:
    names = ("entropy", "distance", "previous", "own", "next", "near", "separators", "largest")
    means = {name: sums.mean(name, head) for name in names}
    nearest, distance = None, None
    assert sums.between is not None
    if len(sums.between) > 1:
        others = sums.between[head].clone()
        others[head] = torch.inf
        nearest, distance = int(others.argmin()), float(others.min() / sums.queries)
    return Head(
        place,
        layer,
        head + 1,
        _kind(place, means),
        **means,
        nearest=None if nearest is None else nearest + 1,
        nearest_distance=distance,
    )


def _kind(place: str, means: dict[str, float]) -> str:
    """Return what a head does most of the time; the first that holds."""
    if means["separators"] > _HALF:
        return "separator"
    if place == "cross":
        return "alignment-like" if means["largest"] > _HALF else "broad" if means["entropy"] > _BROAD else "mixed"
    for name, kind in (("previous", "previous position"), ("own", "same position"), ("next", "next position")):
        if means[name] > _HALF:
            return kind
    if means["entropy"] > _BROAD:
        return "broad"
    return "local" if means["near"] > _HALF else "mixed"
