"""The trained models that a student learns from besides the data: loading them, whether they fit, what they are.

What is learned from them is in ``objective.py``.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import nn

from transformer_cli.checkpoint import load_model, open_model
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import RunError
from transformer_cli.model.transformer import Transformer
from transformer_cli.wording import counted


def load_teachers(paths: Sequence[str], device: torch.device) -> list[Transformer]:
    """Load the models of some runs, in evaluation mode and with weights that nothing will train.

    Raises:
        RunError: one of them is no run, or has no model.
        ConfigError: one cannot be computed on the device.
    """
    return [load_model(path, device)[0].requires_grad_(False) for path in paths]


def check_teachers(config: Config, tokenizer: Tokenizer) -> None:
    """Check that every teacher speaks of the same tokens as the student, and can read every sentence.

    Their weights are not read: ``load_teachers`` does that, once.

    Raises:
        RunError: one is no run or has no model, another tokenizer or direction, or learned positions that end too
            early.
    """
    for path in config.train.teachers:
        teacher = open_model(path)
        if teacher.tokenizer.sha256 != tokenizer.sha256:
            raise RunError(
                "a teacher has another tokenizer",
                where=f"train.teachers: {path}",
                got=f"sha256 {teacher.tokenizer.sha256[:12]}",
                expected=f"sha256 {tokenizer.sha256[:12]}, that of the student",
                hint="a student predicts the teacher's tokens: give both one model file with tokenizer.model",
            )
        asked, learned = _directions(config), _directions(teacher.config)
        if not asked <= learned:
            raise RunError(
                "a teacher has not learned what it is to teach",
                where=f"train.teachers: {path}",
                got=", ".join(sorted(learned)),
                expected=", ".join(sorted(asked)),
                hint="choose a run of the same direction; train.bidirectional_epochs needs one that had them too",
            )
        longest = teacher.config.data.max_length
        if teacher.config.model.ends_at_max_length and longest < config.data.max_length:
            raise RunError(
                "a teacher's positions end too early",
                where=f"train.teachers: {path}",
                got=counted(longest, "token"),
                expected=f"at least data.max_length {config.data.max_length}",
                hint="lower data.max_length, or choose a teacher with sinusoidal positions and without linformer",
            )


def _directions(config: Config) -> set[str]:
    """Return what a run of this configuration learns to translate, such as ``en-de``."""
    src = config.data.src_lang
    forward = {f"{src}-{tgt}" for tgt in config.data.targets}
    return forward | ({f"{config.data.tgt_lang}-{src}"} if config.train.bidirectional_epochs else set())


def weights_sha256(model: nn.Module) -> str:
    """Return a hash of the names and the values of a model's parameters, in whatever file they are."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
