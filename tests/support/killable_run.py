"""Trains the small run in a process of its own, continuing it if it is there: for tests that kill it."""

import contextlib
import multiprocessing
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

from training_rig import small_config, small_trainer

from transformer_cli.errors import Interrupted

#: The first optimizer imports torch._dynamo, for seconds.
PRELOADED = ["torch._dynamo", *(f"transformer_cli.commands.{name}" for name in ("train", "translate", "augment"))]


def start(path: Path, steps: int) -> BaseProcess:
    """Start the process; it writes what it says to a file beside the run.

    A server that has imported everything forks it, which takes a tenth of a second instead of several.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=train, args=(path, steps), daemon=True)
    process.start()
    return process


def train(path: Path, steps: int) -> None:
    with path.with_suffix(".out").open("a") as out, contextlib.redirect_stdout(out):
        sys.exit(_train(path, steps))


def _train(path: Path, steps: int) -> int:
    existed = path.exists()
    config = small_config(max_steps=steps, ema_decay=0.9, save_every=2, validate_every=3)
    trainer = small_trainer(path, config, note=print)
    if existed:
        trainer.resume()
    try:
        print(trainer.train().ended)
    except Interrupted as stop:
        print(stop)
        return stop.exit_code
    return 0
