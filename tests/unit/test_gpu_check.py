"""``make gpu-check`` runs where only torch and numpy are; here at a tiny length on the CPU."""

import json
import subprocess
import sys

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
