"""What a validation found: the numbers that choose the best model and stop a run early.

Who validates is not known here: the trainer is handed a callable, so that training needs no decoder.
"""

import math
from dataclasses import dataclass
from typing import Literal

Metric = Literal["bleu", "loss"]


@dataclass(frozen=True)
class Validation:
    """One look at the dev set."""

    loss: float  # nats per target token, without label smoothing
    perplexity: float
    bleu: float
    signature: str  # sacreBLEU's, without which a BLEU says little
    samples: list[tuple[str, str, str]]  # source, reference, hypothesis
    repeated_share: float  # share of outputs that repeat the most frequent one; near 1 the model ignores its source

    def metrics(self) -> dict[str, float]:
        """Return the two numbers a run can be judged by."""
        return {"loss": self.loss, "bleu": self.bleu}


def is_better(new: dict[str, float], old: dict[str, float] | None, metric: Metric) -> bool:
    """Return whether ``new`` beats ``old``; anything beats nothing and NaN, a tie beats nobody."""
    if old is None or math.isnan(old[metric]):
        return True
    return new[metric] < old[metric] if metric == "loss" else new[metric] > old[metric]
