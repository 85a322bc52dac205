"""``make gpu-check`` runs where only torch and numpy are; here at a tiny length on the CPU."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import transformer_cli
from transformer_cli.benchmark import gpu_check, memory
from transformer_cli.benchmark.attention import Case, Shape
from transformer_cli.benchmark.report import Row
from transformer_cli.benchmark.step_memory import BASE
from transformer_cli.config import ModelConfig

_BARE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pydantic", "datasets", "typer", "rich", "yaml", "sentencepiece", "pyarrow"}:
            raise ModuleNotFoundError(f"no module named {name}")
sys.meta_path.insert(0, Blocked())
from transformer_cli.benchmark import timing, gpu_check
timing.SHORTEST_WATCH = 0.001
arguments = ["--device", "cpu", "--seq-len", "32", "--repeats", "1", "--layers", "1", "--no-tests"]
sys.exit(gpu_check.main(arguments))
"""


def test_a_bare_machine_gets_one_document_with_verdicts() -> None:
    done = subprocess.run([sys.executable, "-c", _BARE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document["aims"]) == {"unmasked", "causal", "step_memory"}
    assert all(verdict["measured"] > 0 for verdict in document["aims"].values())
    assert [row["kernel"] for row in document["attention"]["causal"]] == ["naive", "flash", "cudnn"] * 2
    assert "device" in document["attention"]["causal"][2]["unsupported"]
    assert [peak["kernel"] for peak in document["step"]] == ["naive", "flash"]
    assert all(peak["peak_bytes"] > peak["held_bytes"] > 0 for peak in document["step"])


def test_the_plain_model_has_every_value_that_a_model_reads() -> None:
    chosen_elsewhere = {"attention", "sparse", "linformer_rank"}
    assert set(ModelConfig.model_fields) - chosen_elsewhere <= set(BASE)
    known = {name: value for name, value in BASE.items() if name in ModelConfig.model_fields}
    assert ModelConfig.model_validate(known).model_dump(include=set(known)) == known


@pytest.fixture
def tests_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "support").mkdir()
    (tmp_path / "support" / "rig.py").write_text("import no_such_package\n", encoding="utf-8")
    monkeypatch.setattr(gpu_check, "_TESTS", tmp_path)
    return tmp_path


def write(folder: Path, name: str, body: str, imports: str = "pytest") -> None:
    text = f"import {imports}\nimport pytest\n\n\n@pytest.mark.gpu\ndef test_it():\n    {body}\n"
    (folder / f"test_{name}.py").write_text(text, encoding="utf-8")


def test_tests_run_without_our_settings_and_those_that_need_more_are_named(
    tests_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_check, "_importable", lambda name: name not in ("pydantic", "no_such_package"))
    write(tests_here, "good", "assert True")
    write(tests_here, "rig", "assert False", imports="rig")
    write(tests_here, "configured", "assert False", imports="transformer_cli.config")
    (tests_here / "test_other.py").write_text("def test_it():\n    assert False\n", encoding="utf-8")
    found = gpu_check.gpu_tests(("-W", "ignore"))
    assert found["failed"] is False
    assert found["summary"].startswith("1 passed")
    assert found["left_out"] == {"test_configured.py": "pydantic", "test_rig.py": "no_such_package"}


def test_a_failing_test_is_said_and_shown(tests_here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tests_here, "bad", "assert 1 == 2")
    found = gpu_check.gpu_tests(("-W", "ignore"))
    assert found["failed"] is True
    assert "1 failed" in found["summary"]
    assert "assert 1 == 2" in capfd.readouterr().err


def test_tests_that_take_too_long_have_failed(tests_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tests_here, "slow", "while True: pass")
    monkeypatch.setattr(gpu_check, "_TESTS_MAY_TAKE", 1)
    assert gpu_check.gpu_tests(("-W", "ignore")) == {"failed": True, "summary": "longer than 1 s", "left_out": {}}


def test_without_pytest_or_any_test_nothing_is_claimed(tests_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tests_here, "rig", "assert False", imports="rig")
    assert gpu_check.gpu_tests() == {
        "skipped": "no file of tests can be imported here",
        "left_out": {"test_rig.py": "no_such_package"},
    }
    monkeypatch.setattr(gpu_check, "find_spec", lambda _: None)
    assert gpu_check.gpu_tests() == {"skipped": "pytest is missing"}


@pytest.mark.parametrize(("failed", "code"), [(True, 1), (False, 0)])
def test_a_missed_aim_is_a_finding_and_a_failed_test_a_failure(
    failed: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aims = {"aims": {"causal": gpu_check._verdict(None, 8.0)}}
    monkeypatch.setattr(gpu_check, "check", lambda *_: dict(aims))
    monkeypatch.setattr(gpu_check, "gpu_tests", lambda: {"failed": failed, "summary": ""})
    assert gpu_check.main([]) == code
    assert json.loads(capsys.readouterr().out) == aims | {"tests": {"failed": failed, "summary": ""}}


def test_the_speed_up_is_that_of_the_fastest_kernel_forward_and_backward() -> None:
    rows = [
        Row("naive", 8, "forward+backward", ratio_to_naive=1.0),
        Row("flash", 8, "forward", ratio_to_naive=0.01),
        Row("flash", 8, "forward+backward", ratio_to_naive=0.25),
        Row("cudnn", 8, "forward+backward", ratio_to_naive=0.2),
    ]
    assert gpu_check._speed_up(rows) == 5
    assert gpu_check._speed_up(rows[:2]) is None
    assert [gpu_check._verdict(figure, 4.0)["met"] for figure in (None, 3.9, 4.0)] == [False, False, True]


def test_on_a_gpu_the_allocator_counts_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a GPU with a stand-in for its allocator: 100 bytes before, 350 at the peak."""
    called: list[str] = []
    for name, answer in {
        **{"synchronize": None, "reset_peak_memory_stats": None},
        **{"memory_allocated": 100, "max_memory_allocated": 350},
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda name=name, answer=answer: called.append(name) or answer)
    assert memory._on_gpu(Case("flash", "forward+backward", 8, Shape(heads=1, head_dim=4))) == 250
    assert called == [
        "synchronize", "reset_peak_memory_stats", "memory_allocated", "synchronize", "max_memory_allocated",
    ]  # fmt: skip


def test_what_it_imports_is_written_in_the_oldest_python_that_we_promise() -> None:
    """Nothing newer than 3.11 stands in a file that a bare machine loads; 3.12 reads all of that."""
    package = Path(transformer_cli.__file__).parent
    files = [*package.glob("*.py"), *(package / "benchmark").glob("*.py"), *(package / "model").rglob("*.py")]
    assert len(files) > 30
    for file in files:
        ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 11))
