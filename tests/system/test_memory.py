"""Many lines in the memory of a few: a model gives back caches, windows and lists, and a corpus on disk stays there."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from toy_language import DEEDS, NUMBERS, THINGS, TINY, toy_pairs

WORDS = [*NUMBERS, *THINGS, *DEEDS]


@contextmanager
def started(*arguments: object) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in a process of its own, which must succeed."""
    command = [sys.executable, "-m", "transformer_cli", *map(str, arguments)]
    with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
        yield process
    assert process.returncode == 0


def tfm(*arguments: object) -> int:
    """Return the most memory that a command had, in bytes."""
    with started(*arguments) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def own_memory_of(*arguments: object) -> int:
    """Return the most memory that a command was seen with, in bytes; pages of mapped files are not its own."""
    peak = 0
    with started(*arguments) as process:
        while process.poll() is None:
            found = re.search(r"RssAnon:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, 1024 * int(found[1]) if found else 0)  # one that has just ended has none
            time.sleep(0.01)
    return peak


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


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_corpus_on_disk_takes_some_bytes_a_pair_of_memory(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFM_CACHE", str(tmp_path / "cache"))
    few, many = 50_000, 1_000_000
    peaks = {}
    for count in (few, many):
        for language in ("en", "de"):
            lines = (f"{distinct(number)}\n" for number in range(count))
            (tmp_path / f"{count}.{language}").write_text("".join(lines), encoding="utf-8")
        recipe = tmp_path / f"{count}.yaml"
        recipe.write_text(
            f"data: {{train: {{src: {tmp_path}/{count}.en, tgt: {tmp_path}/{count}.de}}, memory: disk,\n"
            f"       dev: {{src: {run.parent}/pairs.en, tgt: {run.parent}/pairs.de}}}}\n"
            f"tokenizer: {{model: {run}/tokenizer.model}}\n"  # learning one takes memory for each of its sentences
            "train: {max_steps: 5}\n"
            "decode: {max_length_ratio: 0.01}\n",
            encoding="utf-8",
        )
        settings = (*TINY, "-s", "train.batch_tokens=4096")
        peaks[count] = own_memory_of("train", "-c", recipe, "--run", tmp_path / f"run-{count}", "--quiet", *settings)
    bytes_a_pair = (peaks[many] - peaks[few]) / (many - few)
    print(f"{bytes_a_pair:.0f} bytes a pair")
    assert bytes_a_pair < 64
