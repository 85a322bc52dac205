"""One tiny trained run that the tests of the commands share, on files as a user has them."""

from pathlib import Path

import pytest
from command_line import Tfm
from toy_language import TINY, toy_pairs

from transformer_cli.cli import main


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.en, train.de, dev.en, dev.de, test.en, test.de and a recipe my.yaml."""
    folder = tmp_path_factory.mktemp("files")
    pairs = toy_pairs(460)
    for name, part in {"train": pairs[:400], "dev": pairs[400:430], "test": pairs[430:]}.items():
        (folder / f"{name}.en").write_text("".join(f"{src}\n" for src, _ in part), encoding="utf-8")
        (folder / f"{name}.de").write_text("".join(f"{tgt}\n" for _, tgt in part), encoding="utf-8")
    sides = {name: f"{{src: {folder}/{name}.en, tgt: {folder}/{name}.de}}" for name in ("train", "dev", "test")}
    (folder / "my.yaml").write_text(
        "data:\n" + "".join(f"  {name}: {value}\n" for name, value in sides.items()) + "train: {max_steps: 100}\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="session")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests may read it and add scores, nothing else."""
    folder = tmp_path_factory.mktemp("work") / "runs" / "tiny"
    with pytest.raises(SystemExit) as left:
        main(["train", "-c", str(files / "my.yaml"), "--run", str(folder), "--quiet", *TINY])
    assert not left.value.code
    return folder


@pytest.fixture
def tfm(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Tfm:
    return Tfm(capfdbinary, monkeypatch)
