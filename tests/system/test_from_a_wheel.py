"""A newcomer's machine: a built wheel, a bare environment, an empty folder, and the README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from toy_language import toy_pairs

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def shell(command: str, cwd: Path, path: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=cwd,
        env=os.environ | {"PATH": path, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH whose ``tfm`` comes from a wheel in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [str(venv / "bin/python"), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True)
    return f"{venv / 'bin'}:{os.environ['PATH']}"


def test_the_readmes_own_data_block_runs_as_written(path: str, tmp_path: Path) -> None:
    pairs = toy_pairs(300)
    (tmp_path / "my.en").write_text("".join(f"{src}\n" for src, _ in pairs), encoding="utf-8")
    (tmp_path / "my.de").write_text("".join(f"{tgt}\n" for _, tgt in pairs), encoding="utf-8")
    blocks = re.findall(r"<!-- run -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        shell(block, tmp_path, path)
    assert (tmp_path / "out.de").read_bytes().count(b"\n") == 300
    assert (tmp_path / "runs/tuned/model.safetensors").exists()


def test_recipes_and_corpus_travel_in_the_wheel(path: str, tmp_path: Path) -> None:
    settings = "-s train.max_steps=2 -s train.max_minutes=null -s model.d_model=32"
    shell(f"tfm train --config base.yaml --run here {settings}", tmp_path, path)
    shell("tfm eval --run here --split handwritten --beam-size 1", tmp_path, path)
    assert (tmp_path / "here/scores.jsonl").exists()
    shell("tfm report here --lines 2", tmp_path, path)
    assert "<h1>here</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
