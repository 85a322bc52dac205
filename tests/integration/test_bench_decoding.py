"""``tfm bench --decode`` on a small run: what it prints, and that both engines say the same."""

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Tfm

from transformer_cli.benchmark.decoding import Measured, identical, ratio
from transformer_cli.commands.bench import decoding as bench_decoding
from transformer_cli.commands.bench import decoding_sides as bench_decoding_sides
from transformer_cli.commands.bench.decoding_sides import Tuning, best_tuning, first_tuning
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError, TfmError


def test_figures_of_one_round_after_another() -> None:
    ours = Measured("tfm", "", 1.0, 2.0, ["a", "b"], 30, seconds=[1.0, 2.0, 4.0], latencies=[0.1, 0.2, 0.3])
    other = Measured("ctranslate2", "", 1.0, 2.0, ["a", "c"], 30, seconds=[2.0, 3.0, 4.0], latencies=[0.1])
    document = ours.document()
    assert (document["sentences_per_second"], document["target_tokens_per_second"]) == (1.0, 15.0)
    assert document["sentences_per_second_spread"] == pytest.approx(2 / 1.5 - 2 / 3.0)
    assert (document["round_seconds"], document["round_seconds_spread"]) == (2.0, pytest.approx(1.5))
    assert document["latency_ms_p50"] == pytest.approx(200)
    assert ratio(ours, other) == 1.5
    assert identical(ours, other) == 0.5


def test_the_best_tuning_is_the_fastest_that_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tried = [0.0], []

    class Clocked:
        def __init__(self, tuning: Tuning, _: DecodeSettings) -> None:
            self.tuning = tuning
            self.loading = 10.0 if tuning.n_workers > 1 else 0.0  # seconds that the first lines wait for

        def translate(self, lines: list[str]) -> None:
            if len(lines) == 100:
                now[0], self.loading = now[0] + self.loading, 0.0
                tried.append(self.tuning)
                slow = {1: 3.0, 2: 1.0}[self.tuning.n_workers] + abs(self.tuning.sentences - 128) / 100
                now[0] += slow + (0.5 if self.tuning.mkl else 0)

        def __enter__(self) -> "Clocked":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(bench_decoding_sides, "Side", Clocked)
    monkeypatch.setattr(bench_decoding_sides, "available_cores", lambda: 2)
    monkeypatch.setattr(bench_decoding_sides.time, "perf_counter", lambda: now[0])
    for compute_type, n_tried in ((None, 5), ("int8", 7)):
        tried.clear()
        notes: list[str] = []
        start = first_tuning(Path("run"), compute_type)
        best = best_tuning(start, DecodeSettings(), ["line"] * 100, notes.append)
        assert (best.n_workers, best.threads, best.sentences, best.mkl) == (2, 1, 128, False)
        assert len(set(tried)) == len(notes) == n_tried


@pytest.mark.timeout(300)
def test_beside_ctranslate2(run: Path, tmp_path: Path, tfm: Tfm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoding, "best_tuning", lambda start, *_: replace(start, sentences=4))
    (tmp_path / "in").write_text("the red house .\na dog sees a cat .\nwhere is the boat ?\n" * 3, encoding="utf-8")
    files = ["--src", tmp_path / "in", "--ref", tmp_path / "in"]
    done = tfm("bench", "--decode", "--run", run, *files, "--engine", "ctranslate2", "--repeats", 2, "--json")
    assert done.code == 0, done.err
    assert done.err.count("round 2 of 2") == 2  # of each search
    document: Any = done.json
    assert set(document["searches"]) == {"greedy", "beam 5"}
    for found in document["searches"].values():
        assert found["identical"] >= 0.5  # a hardly trained model has ties
        assert found["ratio_to_ctranslate2_best"] <= found["ratio_to_ctranslate2_fp32"]
        assert [side["engine"] for side in found["sides"]] == ["tfm", "ctranslate2", "ctranslate2"]
        assert "int8" in found["sides"][2]["setting"]
        for side in found["sides"]:
            assert side["sentences_per_second"] > 0
            assert side["latency_ms_p95"] >= side["latency_ms_p50"] > 0
            assert side["peak_bytes"] > 10**7
        assert found["bleu_signature"].startswith("nrefs:1")


def test_a_shortlist_stands_beside_the_whole_vocabulary(
    run: Path, tmp_path: Path, tfm: Tfm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_decoding, "best_tuning", lambda start, *_: replace(start, sentences=4))
    copy = shutil.copytree(run, tmp_path / "run")
    (tmp_path / "in").write_text("one cats sleep.\ntwo dogs fall.\nsix houses wait.\n" * 2, encoding="utf-8")
    files = ["--src", tmp_path / "in", "--ref", tmp_path / "in"]
    asked = ("bench", "--decode", "--run", copy, *files, "--shortlist", "--repeats", 1, "--json")
    missing = tfm(*asked)
    assert (missing.code, "tfm shortlist --run" in missing.err) == (2, True)
    assert tfm("shortlist", "--run", copy, "--per-piece", 1, "--frequent", 0).code == 0
    document: Any = tfm(*asked, "--engine", "ctranslate2").json
    listed = {"fingerprint": Shortlist.of_run(copy).fingerprint, "per_piece": 1}
    assert document["settings"]["shortlist"] == listed
    for found in document["searches"].values():
        short, bleu = found["shortlist"], [side["bleu"] for side in found["sides"]]
        assert [side["engine"] for side in found["sides"]] == ["tfm", "ctranslate2", "ctranslate2", "tfm"]
        assert [side["setting"].endswith("shortlist") for side in found["sides"]] == [False] * 3 + [True]
        assert short["bleu_lost"] == bleu[0] - bleu[3]
        assert short["identical_to_whole_vocabulary"] < 1
        assert short["ratio_to_ctranslate2_fp32"] > 0 < short["ratio_to_whole_vocabulary"]


def test_two_workers_say_what_one_process_says(run: Path) -> None:
    lines = ["the red house .", "", "a dog sees a cat .", "where is the boat ?", "one two three four five six seven ."]
    settings = DecodeSettings(beam_size=3, n_best=2, alignment=True)
    alone, shared = Translator.from_run(run, "cpu"), Translator.from_run(run, "cpu", workers=2)
    try:
        assert shared.translate_window(lines, settings) == alone.translate_window(lines, settings)
        drawn = settings.but({"sampling": True, "seed": 4})
        assert shared.translate_window(lines, drawn, 7) == alone.translate_window(lines, drawn, 7)
    finally:
        shared.close()


@pytest.mark.parametrize("wrong", [["--seq-len", "64"], ["--train"], ["--steps", "3"]])
def test_options_of_other_measurements_are_refused(run: Path, tfm: Tfm, wrong: list[str]) -> None:
    done = tfm("bench", "--decode", "--run", run, *wrong)
    assert done.code == 2
    assert f"{wrong[0]} means nothing with --decode" in done.err


def test_what_belongs_together_is_asked_for(run: Path, tfm: Tfm) -> None:
    done = tfm("bench", "--engine", "ctranslate2")
    assert done.code == 2
    assert "--engine means nothing without --decode" in done.err
    done = tfm("bench", "--decode", "--run", run, "--src", run / "config.yaml")
    assert done.code == 2
    assert "--src and --ref belong together" in done.err


def test_workers_leave_when_the_process_that_called_them_is_killed(run: Path) -> None:
    program = (
        "import multiprocessing, sys, time\n"
        "from pathlib import Path\n"
        "from transformer_cli.decoding.translator import Translator\n"
        "if __name__ == '__main__':\n"
        f"    translator = Translator.from_run({str(run)!r}, 'cpu', workers=2)\n"
        "    translator.translate(['a dog .'])\n"
        "    print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) >= 2
        parent.kill()
    deadline = time.monotonic() + 20
    while any(_is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_workers_start_at_once_with_a_thread_each_deaf_to_ctrl_c_and_their_death_is_told(run: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    translator = Translator.from_run(run, "cpu", workers=2)
    pool = translator._decoder._pool  # type: ignore[attr-defined]
    try:
        assert len(pool._processes) == 2
        assert signal.getsignal(signal.SIGINT) is before
        assert pool.submit(torch.get_num_threads).result() == 1
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        for process in list(pool._processes.values()):
            process.kill()
        with pytest.raises(TfmError, match="a worker process was killed"):
            translator.translate(["a dog ."])
    finally:
        translator.close()


def test_workers_that_cannot_load_say_why(run: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"torn")
    translator = Translator.from_run(broken, "cpu", workers=2)
    try:
        with pytest.raises(RunError, match=r"model\.safetensors"):
            translator.translate(["a dog ."])
    finally:
        translator.close()
