"""Several models that translate together: at every step the mean of their probabilities (Hansen & Salamon 1990).

Models may differ in everything but their tokenizer and languages: a probability must be that of the same piece, after
the same pieces. Each keeps a cache of its own.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from transformer_cli.checkpoint import load_model
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.search import SteppedModel
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError
from transformer_cli.export.folder import refuse_export
from transformer_cli.model.transformer import Transformer


class EnsembleSteps:
    """Models as one, for a search."""

    def __init__(self, members: Sequence[SteppedModel]) -> None:
        self._members = members

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Let sentences take places."""
        for member in self._members:
            member.admit(places, sentences)

    def release(self, places: list[int]) -> None:
        """Let places rest."""
        for member in self._members:
            member.release(places)

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        for member in self._members:
            member.keep(places)

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return the log of the mean probabilities ``[N * K, V]``."""
        return mean_log_probs([member.step(tokens, parents) for member in self._members])


def mean_log_probs(of_members: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean of probabilities that are given by their logs, all of one shape."""
    if len(of_members) == 1:
        return of_members[0]
    return torch.stack(list(of_members)).logsumexp(0) - math.log(len(of_members))


def shortest_positions(models: Sequence[Transformer]) -> int | None:
    """Return the longest sequence that all models have positions for; None: any."""
    return min((model.max_length for model in models if model.max_length is not None), default=None)


def load_models(runs: Sequence[str | Path], device: torch.device | str) -> tuple[list[Transformer], Tokenizer, Config]:
    """Load runs that translate together.

    Returns:
        The models, their tokenizer, and the configuration of the first run, which says how to search.

    Raises:
        RunError: there is no usable model at a place, or it is an export.
        ConfigError: a model cannot be computed on the device.
        UserError: their tokenizers or languages differ.
    """
    for run in runs:
        refuse_export(Path(run))
    loaded = [load_model(run, device) for run in runs]
    _, tokenizer, config = loaded[0]
    for run, (_, other, its_config) in zip(runs, loaded, strict=True):
        if other.sha256 != tokenizer.sha256:
            raise UserError(
                "runs with different tokenizers cannot translate together",
                where=str(run),
                got=f"tokenizer {other.sha256[:16]}",
                expected=f"that of {runs[0]}, {tokenizer.sha256[:16]}",
                hint="train with the other run's tokenizer: tokenizer.model",
            )
        if (got := _languages(its_config)) != _languages(config):
            raise UserError(
                "runs of different languages cannot translate together",
                where=str(run),
                got=got,
                expected=f"those of {runs[0]}, {_languages(config)}",
            )
    return [model for model, _, _ in loaded], tokenizer, config


def _languages(config: Config) -> str:
    return f"{config.data.src_lang}-{','.join(config.data.targets)}"
