"""Every command that writes a file beside its results says so on stderr, in the same words, and not if it is quiet."""

from pathlib import Path

import pytest
from command_line import Tfm

TEXT = "one cats sleep."
COMMANDS = {
    "translate": (["translate", "--run", "{run}", "-o", "{out}/a.txt", TEXT, TEXT], {"a.txt": "2 lines"}),
    "translate as JSON": (["translate", "--run", "{run}", "-o", "{out}/a.json", "--json", TEXT], {"a.json": "1 line"}),
    "score": (["score", "--run", "{run}", "{files}/dev.en", "{files}/dev.de", "-o", "{out}/a"], {"a": "30 scores"}),
    "eval": (["eval", "--run", "{run}", "--split", "dev", "-o", "{out}/a.txt"], {"a.txt": "30 translations"}),
    "augment": (
        ["augment", "--run", "{run}", "--pairs", "{files}/dev.en", "{files}/dev.de", "-o", "{out}/a.tsv"],
        {"a.tsv": ""},
    ),
    "inspect": (
        ["inspect", "--run", "{run}", TEXT, "-o", "{out}/a.png", "--npz", "{out}/a.npz"],
        {"a.png": None, "a.npz": "encoder.1, decoder.1, cross.1, src_pieces, tgt_inputs, tgt_pieces"},
    ),
    "demo": (["demo", "order", "-o", "{out}/a.svg"], {"a.svg": None}),
    "bench": (
        ["bench", "--kernels", "naive", "--seq-len", "8", "--repeats", "1", "--plot", "{out}/a.svg"],
        {"a.svg": None},
    ),
}


@pytest.mark.parametrize(("command", "written"), COMMANDS.values(), ids=COMMANDS)
def test_what_was_written_is_said(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path, command: list[str], written: dict[str, str | None]
) -> None:
    words = [word.format(run=run, files=files, out=tmp_path) for word in command]
    done = tfm(*words)
    assert done.code == 0
    for name, content in written.items():
        (told,) = [line for line in done.err.splitlines() if line.startswith(f"wrote {tmp_path / name}")]
        assert told == f"wrote {tmp_path / name}" if content is None else content in told.partition(": ")[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(written)
    again = tfm(*words, "--quiet")
    assert (again.code, "wrote" in again.err) == (0, False)
