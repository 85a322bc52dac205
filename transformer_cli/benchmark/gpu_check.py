"""``make gpu-check``: what a GPU is for, in one short run: kernels, a whole step's memory, then the tests marked gpu.

It imports torch, numpy and what needs no more than these, so that it runs on a machine with nothing else installed
(``python -m transformer_cli.benchmark.gpu_check``). It prints one JSON document with figures, aims and whether they
are met; progress goes to stderr. An aim missed is a finding, not a failure; a failed test is.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer_cli.benchmark.attention import DTYPES, Kernel, Shape
from transformer_cli.benchmark.products import product_rates
from transformer_cli.benchmark.report import Row, measure
from transformer_cli.benchmark.step_memory import BASE, StepCase, compared, measure_step
from transformer_cli.runtime import Runtime

#: How many times as fast as naive attention, how many times less memory than a step with it.
AIMS = {"unmasked": 4.0, "causal": 8.0, "step_memory": 2.5}
KERNELS: tuple[Kernel, ...] = ("naive", "flash", "cudnn")
_TESTS = Path(__file__).parents[2] / "tests"
_TESTS_MAY_TAKE = 240  # seconds


def check(device: str, seq_len: int, repeats: int, model: dict[str, Any]) -> dict[str, Any]:
    """Measure and compare with the aims.

    Args:
        device: ``cuda`` in earnest; ``cpu`` to try the code.
        seq_len: length of texts in all measurements.
        repeats: measurements of a time.
        model: of the whole step, see ``step_memory.py``.

    Returns:
        The document, without the tests.
    """
    runtime = Runtime.resolve(device)
    on_gpu = runtime.device.type == "cuda"
    shape = Shape(dtype="bfloat16" if on_gpu else "float32", device=str(runtime.device), threads=runtime.threads)
    rates = product_rates(runtime.device, runtime.threads, (4096,) if on_gpu else (64,), DTYPES[shape.dtype], repeats)
    figures: dict[str, float | None] = {}
    rows = {}
    for name in ("unmasked", "causal"):
        masked = replace(shape, causal=name == "causal", batch=4 if on_gpu else 1)
        found = measure(masked, [seq_len], kernels=KERNELS, repeats=repeats, peak=max(rates.values()), note=_note)
        rows[name] = list(found)
        figures[name] = _speed_up(rows[name])
    peaks = []
    for kernel in ("naive", "flash"):
        _note(f"a training step with {kernel}")
        case = StepCase(kernel, seq_len, device=shape.device, bfloat16=on_gpu, threads=shape.threads)
        peaks.append(measure_step(case, model))
    peaks = compared(peaks)
    figures["step_memory"] = peaks[-1].ratio_to_naive
    return {
        **runtime.describe(),
        "seq_len": seq_len,
        "settings": asdict(shape),
        "attention": {name: [row.document() for row in found] for name, found in rows.items()},
        "step": [asdict(peak) for peak in peaks],
        "aims": {name: _verdict(figures[name], aim) for name, aim in AIMS.items()},
    }


def gpu_tests(pytest_arguments: Sequence[str] = ("-m", "gpu")) -> dict[str, Any]:
    """Run the tests of the files that mention the mark and can be imported here; the others are named."""
    if find_spec("pytest") is None:
        return {"skipped": "pytest is missing"}
    files = [path for path in sorted(_TESTS.rglob("test_*.py")) if "mark.gpu" in path.read_text(encoding="utf-8")]
    left_out = {str(path.relative_to(_TESTS)): missing for path in files if (missing := _missing(path))}
    chosen = [str(path) for path in files if str(path.relative_to(_TESTS)) not in left_out]
    if not chosen:
        return {"skipped": "no file of tests can be imported here", "left_out": left_out}
    _note(f"tests: {', '.join(chosen)}")
    # No settings of the project: they ask for plugins. No conftest: it asks for hypothesis.
    bare = ["-c", "/dev/null", "--rootdir", str(_TESTS), "--noconftest", "-o", "pythonpath=" + str(_TESTS / "support")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *bare, *pytest_arguments, *chosen]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TESTS_MAY_TAKE)
    except subprocess.TimeoutExpired:
        return {"failed": True, "summary": f"longer than {_TESTS_MAY_TAKE} s", "left_out": left_out}
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
    return {"failed": done.returncode != 0, "summary": lines[-1] if lines else "", "left_out": left_out}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the document; return 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="gpu-check", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--layers", type=int, default=6, help="of encoder and decoder")
    parser.add_argument("--no-tests", action="store_true", help="measure only")
    told = parser.parse_args(arguments)
    model = BASE | {"encoder_layers": told.layers, "decoder_layers": told.layers}
    document = check(told.device, told.seq_len, told.repeats, model)
    document["tests"] = {"skipped": "--no-tests"} if told.no_tests else gpu_tests()
    print(json.dumps(document, indent=1))
    return int(bool(document["tests"].get("failed")))


def _speed_up(rows: Sequence[Row]) -> float | None:
    """Return how many times as fast as naive the fastest other kernel is, forward and backward."""
    ratios = [
        row.ratio_to_naive
        for row in rows
        if row.direction == "forward+backward" and row.kernel != "naive" and row.ratio_to_naive
    ]
    return 1 / min(ratios) if ratios else None


def _verdict(figure: float | None, aim: float) -> dict[str, Any]:
    return {"aim": aim, "measured": figure, "met": figure is not None and figure >= aim}


def _missing(path: Path) -> str | None:
    """Return the first package that a file of tests, or a file of its support, imports and that is not here."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            support = _TESTS / "support" / f"{name}.py"
            if name.startswith("transformer_cli.config"):
                name = "pydantic"
            if support.exists() and (missing := _missing(support)):
                return missing
            if not support.exists() and not _importable(name.partition(".")[0]):
                return name.partition(".")[0]
    return None


def _importable(name: str) -> bool:
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
