"""A real model translates many lines in the memory of a few: caches, windows and lists are given back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy_language import DEEDS, NUMBERS, THINGS, TINY, toy_pairs

WORDS = [*NUMBERS, *THINGS, *DEEDS]


def tfm(*arguments: object) -> int:
    """Run a command in a process of its own; return the most memory that it had, in bytes."""
    command = [sys.executable, "-m", "transformer_cli", *map(str, arguments)]
    with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def distinct(number: int) -> str:
    """Return a line of five words, another one for each number."""
    words = []
    for _ in range(5):
        number, word = divmod(number, len(WORDS))
        words.append(WORDS[word])
    return " ".join(words)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    for side, lines in zip(("en", "de"), zip(*toy_pairs(200), strict=True), strict=True):
        (folder / f"pairs.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    pairs = f"{{src: {folder}/pairs.en, tgt: {folder}/pairs.de}}"
    recipe = f"data: {{train: {pairs}, dev: {pairs}, test: {pairs}}}\ntrain: {{max_steps: 60}}\n"
    (folder / "my.yaml").write_text(recipe, encoding="utf-8")
    tfm("train", "-c", folder / "my.yaml", "--run", folder / "run", "--quiet", *TINY)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_times_the_lines_take_the_same_memory(run: Path, tmp_path: Path) -> None:
    peaks = {}
    for count in (2_000, 100_000):
        source, target = tmp_path / f"{count}.en", tmp_path / f"{count}.de"
        source.write_text("".join(f"{distinct(number)}\n" for number in range(count)), encoding="utf-8")
        how = ["-b", 1, "--batch-size", 512, "--batch-tokens", 16_384, "--max-length-ratio", 0.01, "--workers", 1]
        peaks[count] = tfm("translate", "--run", run, "-i", source, "-o", target, "--quiet", *how)
        assert target.read_bytes().count(b"\n") == count
    assert peaks[100_000] < 1.3 * peaks[2_000]
