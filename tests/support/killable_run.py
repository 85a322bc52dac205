"""Trains a run in a process of its own, continuing it if it is there: for tests that kill it."""

import contextlib
import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from training_rig import small_config, small_trainer

from transformer_cli.errors import Interrupted
from transformer_cli.training.trainer import Trainer

#: The first optimizer imports torch._dynamo, for seconds.
PRELOADED = ["torch._dynamo", *(f"transformer_cli.commands.{name}" for name in ("train", "translate.job", "augment"))]


def small_run(path: Path, steps: int) -> Trainer:
    existed = path.exists()
    config = small_config(max_steps=steps, ema_decay=0.9, save_every=2, validate_every=3)
    trainer = small_trainer(path, config, note=print)
    if existed:
        trainer.resume()
    return trainer


def start(path: Path, *arguments: object, made_by: Callable[..., Trainer] = small_run) -> BaseProcess:
    """Start the process; it writes what it says to a file beside the run.

    A server that has imported everything forks it, which takes a tenth of a second instead of several.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_train, args=(made_by, path, *arguments), daemon=True)
    process.start()
    return process


def _train(made_by: Callable[..., Trainer], path: Path, *arguments: object) -> None:
    with path.with_suffix(".out").open("a") as out, contextlib.redirect_stdout(out):
        trainer = made_by(path, *arguments)
        try:
            print(trainer.train().ended)
        except Interrupted as stop:
            print(stop)
            sys.exit(stop.exit_code)
