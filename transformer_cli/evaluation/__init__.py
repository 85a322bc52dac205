"""Scores with their signatures, what explains them, and the validation of a training.

``scores.py`` the metrics, ``details.py`` where a score comes from, ``baseline.py`` what is reached without a model,
``calibration.py`` how far to trust a confidence, ``validator.py`` the dev set during training. Which text is scored is
the command's business (``commands/eval/job.py``).
"""

from transformer_cli.evaluation.baseline import nearest_neighbour
from transformer_cli.evaluation.calibration import Calibration, calibration, fit_confidence, good_lines
from transformer_cli.evaluation.details import Bucket, Line, by_length, repeated_share, worst_lines
from transformer_cli.evaluation.scores import (
    Comparison,
    Score,
    bleu_tokenizer,
    check_counts,
    check_metrics,
    compare,
    score,
)
from transformer_cli.evaluation.validator import Validator

__all__ = [
    "Bucket",
    "Calibration",
    "Comparison",
    "Line",
    "Score",
    "Validator",
    "bleu_tokenizer",
    "by_length",
    "calibration",
    "check_counts",
    "check_metrics",
    "compare",
    "fit_confidence",
    "good_lines",
    "nearest_neighbour",
    "repeated_share",
    "score",
    "worst_lines",
]
