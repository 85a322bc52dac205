"""A text of any length streams in the same memory. The model is a stub: what is tested is all that is around it."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "stub_translation.py"


def translated(n_lines: int, folder: Path) -> tuple[int, int, str]:
    """Return by how many bytes the process has grown while translating, its peak, and what it said."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(n_lines), str(folder)], capture_output=True, text=True, check=True
    )
    growth, peak = map(int, done.stdout.split())
    with (folder / "out").open(encoding="utf-8") as out:
        assert all(line == f"LINE {number} OF MANY\n" for number, line in enumerate(out))
        assert out.tell() == (folder / "in").stat().st_size
    return growth, peak, done.stderr


@pytest.mark.slow
def test_a_million_lines_need_no_more_memory_than_ten_thousand(tmp_path: Path) -> None:
    growth, peak, _ = translated(10_000, tmp_path / "few")
    growth_of_many, peak_of_many, told = translated(1_000_000, tmp_path / "many")
    assert peak_of_many < 1.3 * peak  # most of which are the libraries
    assert growth_of_many < growth + 16e6  # sixteen bytes a line would be too many
    assert "1000000 lines cut at the length limit" in told
    assert len(told) < 1000
