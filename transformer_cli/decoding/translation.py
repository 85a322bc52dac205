"""What became of a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line.

    What one piece scores is the sum of both lists of log-probabilities over ``length_norm(tokens + 1)``.
    """

    text: str
    score: float  # log-probability over length penalty; of a line in pieces, their mean
    tokens: list[str]
    capped: bool = False  # it, or a piece of it, was ended by the length limit
    token_logprobs: list[float] | None = None  # of each token; None: the engine does not tell
    end_logprobs: list[float] | None = None  # of the </s> of each piece of the line
    alignment: str | None = None  # source word - target word: 0-0 1-2; None: not asked for, or it cannot be told


@dataclass(frozen=True)
class Translation:
    """What became of a line."""

    source: str
    hypotheses: list[Hypothesis]  # best first, never empty; no text twice, unless samples were asked for
    pieces: int  # how many parts the line was translated in: 0 for a blank line, above 1 for an over-long one
    confidence: float | None = None  # P(the best one is good); None: nobody has asked, or it is not known

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    @property
    def capped(self) -> bool:
        """Whether the best translation was ended by the length limit."""
        return self.hypotheses[0].capped

    def aligned(self, alignments: Sequence[str | None]) -> "Translation":
        """Return it with the alignment of each hypothesis."""
        pairs = zip(self.hypotheses, alignments, strict=True)
        return replace(self, hypotheses=[replace(hypothesis, alignment=found) for hypothesis, found in pairs])
