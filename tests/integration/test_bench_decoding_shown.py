"""``tfm bench --decode``: its table, what is left of it when it ends early, and which lines it translates."""

import io
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Tfm
from rich.console import Console

from transformer_cli.benchmark.decoding import Measured, measure
from transformer_cli.commands.bench import decoding as bench_decoding
from transformer_cli.commands.bench.decoding import DecodingReport, SearchReport
from transformer_cli.commands.bench.decoding_sides import Side, Tuning, first_tuning
from transformer_cli.commands.bench.decoding_table import render
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import WorkerKilled


class StubSide:
    """Says what it is told, at once; at the call that is named something ends it, usually Ctrl-C."""

    engine, name, setting, load_seconds = "tfm", "tfm", "1 worker of 1 thread", 0.0
    calls, ends_at = 0, 0
    ends_by: type[BaseException] | BaseException = KeyboardInterrupt

    def __init__(self, *_: object) -> None:
        pass

    def translate(self, lines: Sequence[str]) -> tuple[list[str], int]:
        StubSide.calls += 1
        if StubSide.calls == StubSide.ends_at:
            raise StubSide.ends_by
        return list(lines), len(lines)

    def peak_bytes(self) -> int:
        return 2**20

    def __enter__(self) -> "StubSide":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[StubSide]:
    monkeypatch.setattr(bench_decoding, "Side", StubSide)
    monkeypatch.setattr(bench_decoding, "best_tuning", lambda start, *_: start)
    monkeypatch.setattr(StubSide, "calls", 0)
    monkeypatch.setattr(StubSide, "ends_at", 0)
    monkeypatch.setattr(StubSide, "ends_by", KeyboardInterrupt)
    return StubSide


def measured(name: str, seconds: float, setting: str, text: str = "a") -> Measured:
    times = {"seconds": [0.9 * seconds, seconds, 1.3 * seconds], "latencies": [1.2345] * 3}
    return Measured(name.split()[0], setting, 1.0, 2.0, [text] * 1000, 15000, **times, peak_bytes=2**34, name=name)


def test_the_table_fits_a_terminal_and_its_legend_names_every_heading() -> None:
    sides = [
        measured("tfm", 2.0, "2 workers of 1 thread, 64 sentences side by side"),
        measured("ctranslate2 float32", 1.0, "float32, 2 workers of 1 thread, CT2_USE_MKL=1"),
        measured("ctranslate2 int8", 0.5, "int8, 2 workers of 1 thread, CT2_USE_MKL=0", "b"),
        measured("tfm shortlist", 1.6, "2 workers of 1 thread, shortlist"),
    ]
    found = SearchReport(sides, [33.5] * 4, "nrefs:1|tok:13a", has_shortlist=True)
    settings = {"run": "runs/a", "parameters": 1234567, "text": "the run's test set", "lines": 1000}
    report = DecodingReport("CPU", settings | {"repeats": 3, "cores": 2}, {"greedy": found, "beam 5": found})
    out = io.StringIO()
    render(report, Console(file=out, width=80))
    text = out.getvalue()
    assert "…" not in text
    assert "decoding: runs/a (1,234,567 parameters), 1,000 lines of the run's test set, 3 rounds in turn" in text
    head, ours, *_ = (line for line in text.splitlines() if line.startswith(("engine ", "tfm ")))
    assert ours.split() == ["tfm", "500", "20%", "7,500", "0.50", "-", "33.50", "1,234", "1,234", "16,384"]
    legend = text[text.index("\n\n", text.index("MiB")) :]
    for heading in head.split():
        assert re.search(rf"^{re.escape(heading)} ", legend, re.MULTILINE), heading
    assert "ratio    times as fast as ctranslate2 float32" in legend
    for side in sides:  # in whole, of both searches
        assert f"  greedy, {side.engine}: {side.setting}\n" in legend
        assert f"  beam 5, {side.engine}: {side.setting}\n" in legend


def test_rounds_count_if_every_side_had_its_turn(stub: type[StubSide]) -> None:
    stub.ends_at = 2 + 2 * 2 + 2  # the second side's third round
    (ours, theirs), end = measure([stub(), stub()], ["a", "b"], 5, lambda _: None)
    assert (len(ours.seconds), len(theirs.seconds), type(end.cause)) == (2, 2, KeyboardInterrupt)
    assert [ours.document()[key] for key in ("latency_ms_p50", "peak_bytes")] == [None, None]
    stub.calls, stub.ends_at = 0, 4
    with pytest.raises(KeyboardInterrupt):
        measure([stub(), stub()], ["a", "b"], 5, lambda _: None)


@pytest.mark.parametrize(("at", "searches", "rounds"), [(1, 0, ""), (36, 1, ""), (37, 2, "; beam 5: 1 of 2 rounds")])
def test_ctrl_c_leaves_what_was_finished(
    run: Path, tfm: Tfm, stub: type[StubSide], at: int, searches: int, rounds: str
) -> None:
    """Of 30 lines: a warm-up, two rounds and 31 lines alone, greedily; then again with a beam."""
    asked = ("bench", "--decode", "--run", run, "--repeats", 2)
    stub.ends_at = at
    done = tfm(*asked)
    text = done.out.decode()
    assert done.code == 130
    if not searches:
        assert (text, done.err.splitlines()[-1]) == ("", "stopped by SIGINT")
        return
    assert "30 lines of the run's test set" in text
    lines = text.splitlines()
    rows = [line.strip() for line in lines if line.startswith(("greedy ", "beam 5 ", "tfm "))]
    assert [row.split()[0] for row in rows] == ["greedy", "tfm", "beam", "tfm"][: 2 * searches]
    last = f"interrupted: the rows above are those that were finished{rounds}"
    assert lines[-1] == last
    stub.calls = 0
    document: Any = tfm(*asked, "--json").json
    assert document["interrupted"] is True
    assert len(document["searches"]) == searches


@pytest.mark.parametrize(("at", "is_shown"), [(1, False), (36, True)])
def test_a_killed_worker_is_one_message_below_what_was_finished(
    run: Path, tfm: Tfm, stub: type[StubSide], at: int, is_shown: bool
) -> None:
    asked = ("bench", "--decode", "--run", run, "--repeats", 2)
    stub.ends_at, stub.ends_by = at, WorkerKilled("a worker process was killed", where="tfm: 1 worker", hint="mend it")
    done = tfm(*asked)
    assert done.code == 2
    assert done.err.splitlines()[-2:] == ["error: tfm: 1 worker: a worker process was killed", "  hint: mend it"]
    assert "Traceback" not in done.err
    assert ("interrupted: the rows above are those that were finished" in done.out.decode()) == is_shown
    stub.calls = 0
    shown = tfm(*asked, "--json")
    assert shown.code == 2
    if is_shown:
        document: Any = shown.json
        assert (document["interrupted"], list(document["searches"])) == (True, ["greedy"])


def child_pids() -> list[int | None]:
    return [child.pid for child in multiprocessing.active_children()]


@pytest.mark.parametrize("whose", ["the side's process", "a worker of it"])
def test_a_side_whose_process_is_killed_says_which_and_what_to_do(run: Path, whose: str) -> None:
    tuning = replace(first_tuning(run), n_workers=2)
    with Side(tuning, DecodeSettings(beam_size=1)) as side:
        owner, workers = side._asked(os.getpid), side._asked(child_pids)
        assert len(workers) == 2
        os.kill(owner if whose == "the side's process" else workers[0], signal.SIGKILL)
        with pytest.raises(WorkerKilled) as told:
            side.translate(["a dog sees a cat ."] * 10)
    message = str(told.value)
    assert message.startswith(f"tfm: {tuning}: a worker process was killed, perhaps because memory ran out\n  hint: ")
    assert "taskset" in message
    assert "--workers" not in message  # tfm bench has no such option


def test_a_run_without_a_test_set_translates_its_dev_set(
    run: Path, tmp_path: Path, tfm: Tfm, stub: type[StubSide]
) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    config = yaml.safe_load((copy / "config.yaml").read_text(encoding="utf-8"))
    config["data"]["test"] = None
    (copy / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    done = tfm("bench", "--decode", "--run", copy, "--repeats", 1)
    assert done.code == 0, done.err
    assert "the run has no test set: its dev set is translated; --src and --ref name other lines" in done.err
    assert "first 8 settings are tried on 30 lines" in done.err or "first 10 settings are tried on 30 lines" in done.err
    assert "30 lines of the run's dev set" in done.out.decode()
    assert "interrupted" not in done.out.decode()


@pytest.mark.parametrize("when", ["starting", "loaded"])
def test_ctrl_c_ends_a_side_and_its_workers_without_a_word(run: Path, when: str) -> None:
    program = (
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from transformer_cli.commands.bench.decoding_sides import Side, first_tuning\n"
        "from transformer_cli.decoding.settings import DecodeSettings\n"
        "if __name__ == '__main__':\n"
        f"    tuning = replace(first_tuning(Path({str(run)!r})), n_workers=2)\n"
        "    try:\n"
        "        print('starting', flush=True)\n"
        "        with Side(tuning, DecodeSettings(beam_size=5)) as side:\n"
        "            print('loaded', flush=True)\n"
        "            side.translate(['a dog sees a cat .'] * 100_000)\n"
        "    except KeyboardInterrupt:\n"
        "        print('stopped')\n"
    )
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != when:
            pass
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=60)  # all have left: they hold stderr
    assert (out.split()[-1], err, process.returncode) == ("stopped", "", 0)


def test_a_tuning_has_a_short_name() -> None:
    ours = Tuning(Path("run"), 1, 1, 64)
    names = [ours, replace(ours, shortlist=True), replace(ours, compute_type="int8")]
    assert [tuning.name for tuning in names] == ["tfm", "tfm shortlist", "ctranslate2 int8"]
