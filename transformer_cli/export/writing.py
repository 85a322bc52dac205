"""Writing an exported folder: beside its place, checked there, then renamed."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import RunError
from transformer_cli.export.ctranslate2_spec import specification
from transformer_cli.export.description import description, readme
from transformer_cli.export.extra import Quantization
from transformer_cli.export.folder import DESCRIPTION, MODEL, MODEL_SHA256, file_sha256, is_export
from transformer_cli.model.transformer import Transformer


@dataclass(frozen=True)
class Exported:
    """What is to be exported: a trained model with all that belongs to it."""

    model: Transformer  # on the CPU, in float32
    tokenizer: Tokenizer
    config: Config
    positions: int  # most tokens of a source or of a translation, with </s>
    origin: dict[str, str]  # name of the run and hash of its weights

    def write(self, folder: Path, quantization: Quantization) -> None:
        """Write everything into a folder that is made for it; what was there is removed.

        Raises:
            UserError: CTranslate2 cannot represent the model.
            OSError: the place cannot be written; ``durable.new_folder`` explains it.
        """
        spec = specification(self.model, self.config.model, self.tokenizer, self.positions)
        spec.optimize(quantization)
        about = self.config, self.tokenizer, quantization, self.positions
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        spec.save(str(folder))
        self.tokenizer.save(folder)
        (folder / "README.txt").write_text(readme(*about), encoding="utf-8")
        written = {MODEL_SHA256: file_sha256(folder / MODEL)}
        write_description(folder, description(*about, self.origin | written))


def write_description(folder: Path, content: dict[str, Any]) -> None:
    """Write ``export.json``."""
    text = json.dumps(content, ensure_ascii=False, indent=1)
    (folder / DESCRIPTION).write_text(f"{text}\n", encoding="utf-8")


def amend_description(folder: Path, changes: dict[str, Any]) -> None:
    """Add entries to ``export.json``."""
    write_description(folder, json.loads((folder / DESCRIPTION).read_bytes()) | changes)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Check that an export may be made at a place.

    Raises:
        RunError: an export is there and shall not be replaced, or something that is not an export, or it is the folder
            in which the user is.
    """
    if path.resolve() == Path.cwd():
        raise RunError("is the folder you are in", where=str(path), hint="choose another folder with --output")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not is_export(path):
        hint = "choose another folder with --output"
        raise RunError("is in the way and is not an export", where=str(path), hint=hint)
    if not overwrite:
        raise RunError("the export exists", where=str(path), hint="replace it with --overwrite")
