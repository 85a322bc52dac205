"""Every command that writes a file beside its results says so on stderr, in the same words, and not if it is quiet.

Where it cannot, what was there stays, and a place that is known to be unusable is refused before the work.
"""

import resource
from collections.abc import Iterator
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


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file grow beyond some thousand bytes: a write fails half-way, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["inspect", "demo", "bench"])
def test_a_full_disk_leaves_pictures_and_numbers_as_they_were(
    tfm: Tfm, run: Path, tmp_path: Path, full_disk: None, name: str
) -> None:
    words = [word.format(run=run, files="", out=tmp_path) for word in COMMANDS[name][0]]
    for option in ("-o", "--npz", "--plot"):
        if option in words:
            place = words.index(option)
            output = Path(words[place + 1])
            output.write_text("old", encoding="utf-8")
            others = {"-o", "--npz", "--plot"} - {option}
            alone = [word for before, word in zip(["", *words], words, strict=False) if not others & {before, word}]
            done = tfm(*alone)
            assert (done.code, f"{output}: the disk is full" in done.err) == (2, True), done.err
            assert "nothing was replaced" in done.err
            assert done.out or name not in ("demo", "bench")  # what was found is told all the same
            assert output.read_text(encoding="utf-8") == "old"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "words",
    [
        ["bench", "--plot", "{}.svg"],
        ["demo", "order", "-o", "{}.svg"],
        ["inspect", "--run", "no", "a", "--npz", "{}.npz"],
        ["inspect", "--run", "no", "a", "-o", "{}.png"],
        ["report", "no", "-o", "{}.html"],
    ],
    ids=" ".join,
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    tfm: Tfm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def unwritable(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("transformer_cli.commands.files.output_file.tempfile.TemporaryFile", unwritable)
    done = tfm(*[word.format(tmp_path / "a") for word in words])
    assert (done.code, "cannot be written: Permission denied" in done.err) == (2, True), done.err
    assert not any(tmp_path.iterdir())
