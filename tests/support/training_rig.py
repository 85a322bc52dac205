"""A run so small that it trains in a second, for every test of training."""

import functools
import hashlib
from pathlib import Path

import numpy as np
import torch

from transformer_cli.checkpoint import RunFolder, build_model
from transformer_cli.checkpoint.snapshot import WEIGHTS
from transformer_cli.checkpoint.tensor_files import read_tensors_of
from transformer_cli.config import Config
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.runtime import Runtime, seed_stream
from transformer_cli.training.loss import dev_loss
from transformer_cli.training.trainer import Trainer
from transformer_cli.training.validation import Validation

torch.set_num_threads(1)  # matrices this small make several threads wait for each other, on a busy machine for minutes

MODEL = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1}
TRAIN = {
    "batch_tokens": 60,
    "accumulate": 3,
    "max_steps": 12,
    "lr": 0.01,
    "warmup_steps": 4,
    "validate_every": 4,
    "save_every": 3,
    "log_every": 2,
    "amp": "off",
}


def small_config(model: dict | None = None, **train: object) -> Config:
    sections = {"model": MODEL | (model or {}), "train": TRAIN | train}
    return Config.model_validate({"data": {"corpus": "phrasebook"}, **sections})


@functools.cache
def small_tokenizer() -> Tokenizer:
    settings = small_config().tokenizer.model_copy(update={"model_type": "char", "vocab_size": 300})
    lines = ["a b c d e f", "the quick brown fox"] * 20
    return train_tokenizer(settings, lines, lines, lambda text: None)


def small_pairs(count: int = 60, seed: int = 0) -> TokenizedPairs:
    rng = np.random.default_rng(seed)
    sides = [
        [np.append(rng.integers(4, 40, rng.integers(2, 9)), EOS).astype(np.int32) for _ in range(count)] for _ in "st"
    ]
    return TokenizedPairs(*sides)


def runtime(amp: str = "off") -> Runtime:
    return Runtime.resolve("cpu", amp)


def look(model: torch.nn.Module, step: int) -> Validation:
    """A validation that is quick, and a function of the weights."""
    loss = dev_loss(model, small_pairs(8, seed=9), runtime(), 60)
    return Validation(loss, float(np.exp(loss)), 100 / (1 + loss), "sig|v:test", [("a", "b", "c")], 0.1)


class Silent:
    """Listens, and keeps what it hears."""

    def __init__(self) -> None:
        self.records, self.validations, self.stops = [], [], 0

    def start(self, step, total_steps, *, is_timed): ...
    def stepped(self, step, total_steps): ...

    def logged(self, record):
        self.records.append(record)

    def validated(self, record):
        self.validations.append(record)

    def stop(self):
        self.stops += 1


def small_trainer(
    path: Path, config: Config | None = None, *, validate=look, progress=None, note=None, model=None, pairs=None
):
    """Return a trainer in the run folder at ``path``, which is made if it is not there."""
    config = config or small_config()
    run = (
        RunFolder.open(path)
        if path.exists()
        else RunFolder.create(path, config, small_tokenizer(), {}, overwrite=False)
    )
    pairs = small_pairs() if pairs is None else pairs
    if model is None:
        seed_stream(config.train.seed, "init")
        model = build_model(config, run.tokenizer)
    return Trainer(
        model, pairs if isinstance(pairs, EpochPairs) else EpochPairs(pairs), config, run, runtime(config.train.amp),
        validate=validate, progress=progress or Silent(), note=note or (lambda text: None),
    )  # fmt: skip


def best_weights(run: RunFolder) -> dict[str, torch.Tensor]:
    return read_tensors_of(run.path / WEIGHTS, run.tokenizer.sha256)


def hashes(path: Path) -> dict[str, str]:
    """Return the hash of the best model and of every file of the last checkpoint."""
    run = RunFolder.open(path)
    files = [path / "model.safetensors", *run.checkpoint(run.steps()[-1]).iterdir()]
    return {str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(files)}
