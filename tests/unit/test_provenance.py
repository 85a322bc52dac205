"""Where a run says that it comes from."""

import subprocess
from pathlib import Path

from transformer_cli import __version__
from transformer_cli.commands.shared.provenance import origin

ROOT = Path(__file__).parents[2]


def test_a_run_names_recipe_data_versions_and_the_commit_of_the_checkout() -> None:
    found = origin("configs/my.yaml", "abc")
    assert (found["recipe"], found["corpus_sha256"]) == ("my", "abc")
    assert found["versions"]["transformer-cli"] == __version__
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        assert str(found["git"]).removesuffix("-dirty") == head.stdout.strip()
    else:
        assert found["git"] is None
