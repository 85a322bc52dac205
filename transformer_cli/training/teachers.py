"""The trained models that a student learns from besides the data: loading them, and whether they fit.

What is learned from them is in ``objective.py``.
"""

from collections.abc import Sequence

import torch

from transformer_cli.checkpoint import load_model
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import RunError
from transformer_cli.model.transformer import Transformer


def load_teachers(paths: Sequence[str], device: torch.device) -> list[Transformer]:
    """Load the models of some runs, in evaluation mode and with weights that nothing will train.

    Raises:
        RunError: one of them is no run, or has no model.
    """
    return [load_model(path, device)[0].requires_grad_(False) for path in paths]


def check_teachers(config: Config, tokenizer: Tokenizer) -> None:
    """Check that every teacher speaks of the same tokens as the student, and can read every sentence.

    Raises:
        RunError: one has another tokenizer, or learned positions that end too early.
    """
    for path in config.train.teachers:
        teacher, its_tokenizer, _ = load_model(path)
        if its_tokenizer.sha256 != tokenizer.sha256:
            raise RunError(
                "a teacher has another tokenizer",
                where=f"train.teachers: {path}",
                got=f"sha256 {its_tokenizer.sha256[:12]}",
                expected=f"sha256 {tokenizer.sha256[:12]}, that of the student",
                hint="a student predicts the teacher's tokens: give both one model file with tokenizer.model",
            )
        if teacher.max_length is not None and teacher.max_length < config.data.max_length:
            raise RunError(
                "a teacher's learned positions end too early",
                where=f"train.teachers: {path}",
                got=f"{teacher.max_length} tokens",
                expected=f"at least data.max_length {config.data.max_length}",
                hint="lower data.max_length, or choose a teacher with sinusoidal positions",
            )
