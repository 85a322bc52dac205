"""What becomes of a line, and what makes it: translations, and the engines that search them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol

from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Engine = Literal["torch", "ctranslate2"]
Text = tuple[str, list[Finished]]  # a translation, and what it was put together from


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line.

    What one piece scores is the sum of both lists of log-probabilities over ``length_norm(tokens + 1)``.
    """

    text: str
    score: float  # as of ``Finished``; of a line in pieces, their mean
    tokens: list[str]
    capped: bool = False  # it, or a piece of it, was ended by the length limit
    token_logprobs: list[float] | None = None  # of each token, in nats; None: the engine does not tell
    end_logprobs: list[float] | None = None  # of the </s> of each piece of the line
    alignment: str | None = None  # source word - target word: 0-0 1-2; None: not asked for, or it cannot be told


@dataclass(frozen=True)
class Translation:
    """What became of a line."""

    source: str
    hypotheses: list[Hypothesis]  # best first, never empty; no text twice, unless samples were asked for
    pieces: int  # how many parts the line was translated in: 0 for a blank line, above 1 for an over-long one
    spelled: bool = False  # it has characters without a piece, which the model reads byte by byte
    confidence: float | None = None  # P(the best one is good); None: nobody has asked, or it is not known

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    @property
    def failed(self) -> bool:
        """Whether nothing was found: no word had a probability, or none was allowed."""
        return self.pieces > 0 and self.hypotheses[0].score == -math.inf

    @property
    def capped(self) -> bool:
        """Whether the best translation was ended by the length limit."""
        return self.hypotheses[0].capped


class Decoder(Protocol):
    """What searches, and tells what a translation came from."""

    def search(self, asked: Sequence[Source], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each source, best first."""

    def attention(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], settings: DecodeSettings
    ) -> Sequence["NDArray[np.float32]"]:
        """Return how the tokens of each translation attend to its source, ``[T, S]``."""

    def told(self, asked: Sequence[tuple[Sequence[int], Finished]], settings: DecodeSettings) -> list[Finished]:
        """Return translations of sources with the log-probabilities of their tokens."""

    def close(self) -> None:
        """Give back what a garbage collector does not: processes."""


def told(
    decoder: Decoder,
    sources: Sequence[Sequence[Sequence[int]]],
    chosen: Sequence[Sequence[Text]],
    settings: DecodeSettings,
) -> list[list[Text]]:
    """Return the chosen texts of each line, whose parts have the log-probabilities of their tokens now.

    Args:
        decoder: that found them.
        sources: ids of the parts of each line.
        chosen: texts of each line.
        settings: length normalisation, and how large a batch may be.
    """
    pairs = [
        (ids, part)
        for line, texts in zip(sources, chosen, strict=True)
        for _, parts in texts
        for ids, part in zip(line, parts, strict=True)
    ]
    found = iter(decoder.told(pairs, settings))
    return [[(text, list(islice(found, len(parts)))) for text, parts in texts] for texts in chosen]
