"""A run with all features of training that go together switched on at once, on a corpus of files with noise in it."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from toy_language import toy_pairs
from training_rig import hashes

from transformer_cli.checkpoint import RunFolder, durable
from transformer_cli.commands.train import make_trainer
from transformer_cli.config import Config
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.runtime import Runtime
from transformer_cli.training.trainer import Trainer

FILTERS = {"length_ratio": 2.0, "identical": True, "duplicates": True, "wrong_script": True}
#: One pair for each filter; what it repeats is the first pair.
NOISE = [
    ("one cats sleep. 0", "eins Katzen schlafen. 0"),
    ("one cats sleep. 0", "eins Katzen schlafen. 0"),
    ("two dogs wait. 2", "two dogs wait. 2"),
    ("six trees fall. 3", "шесть деревьев падают. 3"),
    ("six trees fall. 4", "sechs Bäume fallen, sechs Bäume warten, sechs Bäume schlafen, sechs Bäume fallen. 4"),
]
DROPOUTS = {"dropout": 0.1, "embedding_dropout": 0.15, "residual_dropout": 0.2, "feed_forward_dropout": 0.05} | {
    "word_dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip
MODEL = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "qk_norm": True}
TRAIN = {
    "batch_tokens": 150, "max_steps": 13, "lr": 0.01, "optimizer": "muon", "muon_lr": 0.02, "weight_decay": 0.01,
    "schedule": "trapezoidal", "warmup_steps": 3, "decay_share": 0.3, "clip_norm": 0.5, "subword_sampling": 0.2,
    "bidirectional_epochs": 1, "amp": "bf16", "ema_decay": 0.9, "average_last": 3,
    "validate_every": 4, "save_every": 3, "log_every": 5,
}  # fmt: skip
#: What does not go together, one after the other.
VARIANTS = {
    "r-drop": {"accumulate": 3, "r_drop": 2.0},
    "simcut": {"accumulate": 2, "batch_tokens": 220, "simcut": 2.0, "simcut_cutoff": 0.2, "checkpointing": "layer"},
    "targets": {"accumulate": 2, "batch_tokens": 250, "bidirectional_epochs": 0, "targets": ["fr"]},
}
THREADS = 2


def write_corpus(folder: Path) -> Path:
    pairs = toy_pairs(52)
    numbered = [(f"{src} {i}", f"{tgt} {i}") for i, (src, tgt) in enumerate(pairs)]
    backwards = [(src, tgt[::-1]) for src, tgt in numbered]  # a third language
    for name, part in {"train": NOISE + numbered[:48], "dev": numbered[48:], "fr": backwards[:48]}.items():
        for language, lines in zip(("en", "de"), zip(*part, strict=True), strict=True):
            (folder / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def everything(corpus: Path, *, targets: Sequence[str] = (), **train: object) -> Config:
    """Return the configuration of one variant or of none, with more target languages and changes to its training."""
    sides = {name: {"src": f"{corpus}/{name}.en", "tgt": f"{corpus}/{name}.de"} for name in ("train", "dev", *targets)}
    more = [{"lang": target, "train": sides.pop(target)} for target in targets]
    sections = {
        "data": {**sides, "filter": FILTERS, "more_targets": more},
        "tokenizer": {"vocab_size": 320},
        "model": MODEL | DROPOUTS,
        "train": TRAIN | train,
        "decode": {"max_length_ratio": 0.1},  # an untrained model ends no sentence
    }
    return Config.model_validate(sections)


def prepared(config: Config, run: RunFolder | None = None, dtype: torch.dtype = torch.float32) -> Experiment:
    experiment = prepare(config, lambda note: None, run and run.tokenizer)
    experiment.model.to(dtype)
    return experiment


def trainer_at(
    path: Path,
    config: Config,
    *,
    threads: int = THREADS,
    dtype: torch.dtype = torch.float32,
    resume: bool = True,
    device: str = "cpu",
) -> Trainer:
    """Return the trainer of a run that is made or, if it is there, continued, as the command does it."""
    run = RunFolder.open(path) if path.exists() else None
    experiment = prepared(config, run, dtype)
    # Not torch's own number: it would let several threads work on matrices that are too small for that.
    runtime = replace(Runtime.resolve(device, config.train.amp), threads=threads)
    trainer = make_trainer(experiment, run or RunFolder.create(path, config, experiment.tokenizer, {}), runtime, True)
    if run is not None and resume:
        trainer.resume()
    return trainer


def state_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Return copies of the weights, the moving average and everything that the optimizers remember."""
    found = trainer._updater.snapshot(trainer.state.step, {})
    parts = {"weights": found.weights, "optimizer": found.optimizer, "ema": found.ema or {}}
    return {f"{part}.{name}": tensor.clone() for part, named in parts.items() for name, tensor in named.items()}


def end_of(path: Path) -> dict[str, object]:
    """Return all that a run leaves but for the times: bytes of models and checkpoints, records, and its summary."""
    run = RunFolder.open(path)
    timing = ("tokens_per_second", "seconds_left")
    return {
        "hashes": hashes(path),
        "checkpoints": run.steps(),
        "metrics": [{k: v for k, v in record.items() if k not in timing} for record in run.metrics()],
        "samples": [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()],
        "summary": {key: run.info[key] for key in ("status", "step", "total_steps", "best", "average")},
    }


class Listener:
    """Does something after a step or a validation; hears everything else in silence."""

    def __init__(self, *, stepped: Callable[[int], None] | None = None, validated: Callable[[int], None] | None = None):
        self._after_step, self._after_validation = stepped, validated

    def start(self, step, total_steps, *, is_timed): ...
    def logged(self, record): ...
    def stop(self): ...

    def stepped(self, step, total_steps):
        if self._after_step:
            self._after_step(step)

    def validated(self, record):
        if self._after_validation:
            self._after_validation(record.step)


def listen(trainer: Trainer, listener: Listener) -> Trainer:
    trainer._journal._listeners.append(listener)
    return trainer


def signal_at(step: int, number: int) -> Callable[[int], None]:
    """Return what sends this process a signal when it is told of a step."""
    return lambda reached: os.kill(os.getpid(), number) if reached == step else None


def dying(path: Path, config: Config, moment: str, step: int) -> Trainer:
    """Return a trainer whose process is killed for good; only for a process of its own.

    Args:
        path: of the run.
        config: of the run.
        moment: ``computing`` (in the thread of a replica), ``saving`` (the checkpoint is written, not in its place) or
            ``validated``.
        step: at which.
    """
    trainer, die = trainer_at(path, config), signal_at(step, signal.SIGKILL)
    if moment == "computing":
        copy_of_model = trainer._updater._replicas._models[1]
        copy_of_model.decoder.register_forward_hook(lambda *_: die(trainer.state.step + 1))
    elif moment == "saving":
        move = durable.move_into_place
        durable.move_into_place = lambda made, place: die(int(place.name[5:])) or move(made, place)
    else:
        listen(trainer, Listener(validated=die))
    return trainer
