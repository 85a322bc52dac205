"""Processes that want the same part of the cache at once: one makes it, the others wait, and all read the same."""

import fcntl
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from killable_run import PRELOADED
from ranked_run import Scene, run_ranks
from toy_language import toy_pairs
from training_rig import MODEL, TRAIN

from transformer_cli.config import Config
from transformer_cli.data import cache, mapped_pairs, mapped_text
from transformer_cli.data.cache import cached
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.experiment import prepare


def ask(folder: Path) -> None:
    """Ask for the thing in the cache; a file tells of each moment, and what is made waits to be let go."""

    def tell(moment: str, text: str = "") -> None:
        (folder / f"{moment}-{os.getpid()}").write_text(text)

    def make(made: Path) -> None:
        tell("makes")
        wait_for((folder / "go").exists)
        (made / "whole").write_text("whole")

    flock = fcntl.flock
    fcntl.flock = lambda file, how: tell("asks") or flock(file, how)  # type: ignore[assignment]
    os.environ["TFM_CACHE"] = str(folder / "cache")
    tell("has", (cached("thing", make) / "whole").read_text())


def wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("was_damaged", [False, True])
def test_one_process_makes_what_two_ask_for_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_damaged: bool
) -> None:
    monkeypatch.setenv("TFM_CACHE", str(tmp_path / "cache"))
    if was_damaged:
        cached("thing", lambda made: (made / "whole").write_text("old")).joinpath("whole").write_text("hurt")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    processes = [context.Process(target=ask, args=(tmp_path,), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    pids = {process.pid for process in processes}

    def told(moment: str) -> set[int]:
        return {int(file.name.rpartition("-")[2]) for file in tmp_path.glob(f"{moment}-*")}

    wait_for(lambda: told("asks") == pids and bool(told("makes")) and all(map(sleeps, pids - told("makes"))))
    assert (len(told("makes")), told("has")) == (1, set())
    (tmp_path / "go").touch()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert (len(told("makes")), told("has")) == (1, pids)
    assert {file.read_text() for file in tmp_path.glob("has-*")} == {"whole"}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["thing"]


class FromFiles(Scene):
    """Ranks that read text from files; where it lies on disk, each would have two processes tokenise it."""

    dtype = torch.float32

    def data(self, config: Config) -> tuple[Tokenizer, EpochPairs]:
        folder, make = Path(str(config.data.train.tsv)).parent, cache._make

        def noted(root: Path, place: Path, do: Callable[[Path], None]) -> None:
            with (folder / "made").open("a") as file:
                file.write(f"{place.name.partition('-')[0]}\n")
            make(root, place, do)

        os.environ["TFM_CACHE"], cache._make = str(folder / "cache"), noted
        mapped_text.CHUNK = mapped_pairs.CHUNK = 20
        mapped_pairs.available_cores = lambda: 2
        made = prepare(config, lambda note: None)
        return made.tokenizer, made.train_pairs


def test_ranks_make_the_cache_once_and_train_as_they_do_in_memory(tmp_path: Path) -> None:
    for name, count in (("train", 60), ("dev", 3)):
        rows = [f"{src} {number}\t{tgt}\n" for number, (src, tgt) in enumerate(toy_pairs(count))]
        (tmp_path / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    found = {}
    for memory in ("ram", "disk"):
        data = {name: {"tsv": str(tmp_path / f"{name}.tsv")} for name in ("train", "dev")} | {"memory": memory}
        sections = {"data": data, "tokenizer": {"vocab_size": 300}, "model": MODEL}
        train = TRAIN | {"batch_tokens": 200, "accumulate": 1, "bidirectional_epochs": 1}
        config = Config.model_validate(sections | {"train": train})
        outcomes = run_ranks(tmp_path / memory, FromFiles(), config)
        assert [outcome["code"] for outcome in outcomes] == [0, 0], outcomes
        found[memory] = outcomes[0]["weights"]
        assert all(found[memory][name].equal(weight) for name, weight in outcomes[1]["weights"].items())
    assert all(found["ram"][name].equal(weight) for name, weight in found["disk"].items())
    assert (tmp_path / "made").read_text().split() == ["text", "ids"]
    assert len(list((tmp_path / "cache").glob("ids-*/*.arrow"))) == 2  # of two processes
