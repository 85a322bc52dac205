"""Where a run comes from: written into it at its start."""

import subprocess
from importlib.metadata import version
from pathlib import Path

import transformer_cli
from transformer_cli import __version__

_LIBRARIES = ("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu")


def origin(recipe: str, corpus_sha256: str) -> dict[str, object]:
    """Return recipe, content hash of the data, versions and, in a git checkout, its commit."""
    return {
        "recipe": Path(recipe).stem,
        "corpus_sha256": corpus_sha256,
        "versions": {"transformer-cli": __version__, **{name: version(name) for name in _LIBRARIES}},
        "git": _git_state(),
    }


def _git_state() -> str | None:
    """Return the commit of the checkout that this package lies in, marked if files differ from it."""
    package = Path(transformer_cli.__file__).parent
    if not (package.parent / ".git").exists():
        return None
    command = ["git", "-C", str(package), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
