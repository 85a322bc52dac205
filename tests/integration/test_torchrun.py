"""``torchrun`` and ``tfm train`` together, as a shell starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy_language import TINY
from training_rig import best_weights

from transformer_cli.checkpoint import RunFolder

TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"]


def torchrun(files: Path, run: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*TWO, "transformer_cli", "train", "-c", str(files / "my.yaml"), "--run", str(run), *TINY]
    env = os.environ | {"OMP_NUM_THREADS": "1"}  # now, for the cache is the test's own
    return subprocess.run([*command, *more], capture_output=True, text=True, env=env, check=False)


@pytest.mark.parametrize("memory", ["ram", pytest.param("disk", marks=pytest.mark.slow)])
def test_two_processes_train_one_run_and_say_everything_once(files, tmp_path, monkeypatch, memory):
    monkeypatch.setenv("TFM_CACHE", str(tmp_path / "cache"))
    settings = ["train.max_steps=12", "train.log_every=4", f"data.memory={memory}"]
    done = torchrun(files, tmp_path / "run", *(part for setting in settings for part in ("-s", setting)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished: 12 steps") == 1
    for line in (
        "training pairs",
        "run folder:",
        "training from step 0 to step 12",
        "step 12/12",
        "validation at step 12",
    ):
        assert done.stderr.count(line) == 1, done.stderr
    run = RunFolder.open(tmp_path / "run")
    assert run.info["status"] == "finished"
    assert (run.info["runtime"]["world_size"], run.info["batches_per_step"]) == (2, 2)
    assert best_weights(run)
    made = sorted(path.name.partition("-")[0] for path in (tmp_path / "cache").glob("*"))
    assert made == ([] if memory == "ram" else ["ids", "text"])


@pytest.mark.slow
def test_an_error_is_told_once(files, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("in the way")
    again = torchrun(files, tmp_path / "run")
    assert again.returncode != 0
    assert again.stderr.count("is in the way and is not a run") == 1
    assert "finished" not in again.stdout
    assert "exitcode  : 2" in again.stderr
