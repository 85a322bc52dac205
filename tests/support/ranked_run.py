"""Trains a run, in float64 if nothing else is asked for, on several ranks, each a process of its own, and tells what became of each."""

import multiprocessing
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path

import torch
from killable_run import PRELOADED
from torch import Tensor, nn
from training_rig import Silent, look, small_config, small_pairs, small_tokenizer

from transformer_cli.checkpoint import RunFolder, build_model
from transformer_cli.checkpoint.follower import FollowedRun
from transformer_cli.config import Config
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.runtime import RankPlace, Runtime, seed_stream
from transformer_cli.training import update
from transformer_cli.training.ranks import Ranks, joined
from transformer_cli.training.trainer import Trainer


class Scene:
    """What happens during a run; as it is, nothing."""

    world_size = 2
    threads = 1  # batches that a rank computes side by side
    dtype = torch.float64  # of the weights

    def data(self, config: Config) -> tuple[Tokenizer, EpochPairs]:
        return small_tokenizer(), EpochPairs(small_pairs())

    def model(self, model: nn.Module, ranks: Ranks) -> nn.Module:
        return model

    def validate(self, model, step):
        return look(model, step)


class OtherTeacher(Scene):
    """The file of a teacher is another one where rank 1 runs."""

    def model(self, model, ranks):
        update.load_teachers = lambda *_: [model] if ranks.rank == 1 else []
        return model


class OnRankOne(Scene):
    """Something happens to one rank in some of its forward passes, counted from 1."""

    passes = range(5, 6)

    def happens(self, hidden: Tensor) -> Tensor:
        raise NotImplementedError

    def model(self, model, ranks):
        calls = []

        def act(module, arguments, hidden):
            calls.append(module.training)
            return self.happens(hidden) if ranks.rank == 1 and sum(calls) in self.passes else hidden

        model.decoder.register_forward_hook(act)
        return model


class Poison(OnRankOne):
    def happens(self, hidden):
        return hidden * float("nan")


class PoisonForGood(Poison):
    passes = range(5, 1000)


class Signal(OnRankOne):
    def happens(self, hidden):
        os.kill(os.getpid(), signal.SIGTERM)
        return hidden


class Death(OnRankOne):
    def happens(self, hidden):
        os._exit(9)


def run_ranks(path: Path, scene: Scene, config: Config | None = None) -> list[dict]:
    """Train to whatever end; return for each rank its weights, state, error and exit code."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = [RankPlace(rank, scene.world_size, rank) for rank in range(scene.world_size)]
    arguments = (path, scene, config or small_config())
    processes = [context.Process(target=_train, args=(place, port, *arguments), daemon=True) for place in places]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(60)
            assert process.exitcode is not None, "a rank hangs"
    finally:
        for process in processes:
            process.kill()  # one that waits for another hears no gentler signal
    return [_outcome(path, rank) | {"code": process.exitcode} for rank, process in enumerate(processes)]


def _outcome(path: Path, rank: int) -> dict:
    file = path.with_suffix(f".rank{rank}")
    found = torch.load(file) if file.exists() else {}
    file.unlink(missing_ok=True)
    return found


def _train(place: RankPlace, port: int, path: Path, scene: Scene, config: Config) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.fsync = lambda descriptor: None  # as in conftest.py
    torch.set_num_threads(1)
    found: dict = {"notes": []}
    try:
        with joined(place) as ranks:
            trainer = _trainer(place, ranks, path, scene, config, found["notes"])
            try:
                found["ended"] = trainer.train().ended
            finally:
                state = trainer.state.copy()
                found |= {"step": state.step, "skipped": state.skipped, "best": state.best, "loss": state.interval_loss}
                found |= {
                    "total": trainer._limits.total_steps,
                    "average": trainer.run.info.get("average"),
                    "validated": len(trainer._journal._listeners[0].validations),
                }
                found["weights"] = trainer._updater.weights()
                found["ema"] = trainer._updater.ema.shadow if trainer._updater.ema else {}
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {error}"
        raise SystemExit(getattr(error, "exit_code", getattr(error, "code", 1))) from None
    finally:
        torch.save(found, path.with_suffix(f".rank{place.rank}"))


def _trainer(place, ranks, path, scene, config, notes) -> Trainer:
    existed = ranks.from_main(path.exists)
    tokenizer, pairs = scene.data(config)
    run = ranks.from_main(lambda: RunFolder.open(path) if existed else RunFolder.create(path, config, tokenizer, {}))
    seed_stream(config.train.seed + 7 * place.rank, "init")  # of another kind of processor: rank 0's must count
    model = scene.model(build_model(config, run.tokenizer).to(scene.dtype), ranks)

    def validate(model, step):
        assert ranks.is_main, "only the main rank validates"
        return scene.validate(model, step)

    runtime = replace(Runtime.resolve("cpu", config.train.amp, place), threads=scene.threads)
    trainer = Trainer(
        model, pairs, config, run if ranks.is_main else FollowedRun.of(run), runtime,
        validate=validate, progress=Silent(), note=notes.append,
    )  # fmt: skip
    if existed:
        trainer.resume()
    return trainer
