"""An exported folder: what lies in it, and opening it.

    export.json          what it is: format, origin, languages, tokens, decode settings, recipe, and how it was checked
    README.txt           how to translate with it in a few lines of Python
    tokenizer*.model     SentencePiece
    model.bin, config.json, *_vocabulary.json    what CTranslate2 reads

No torch here: a folder is ready to translate before torch would be imported. Writing it is ``writing.py``.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import RunError
from transformer_cli.wording import counted

FORMAT = 1
DESCRIPTION = "export.json"
MODEL = "model.bin"
MODEL_SHA256 = "model_sha256"
#: Where the export of a run lies if nothing else is asked for: inside the run, so that it moves with it.
INSIDE = "ctranslate2"

_ENTRIES = {"quantization": str, "positions": int, "weights_sha256": str, "recipe": dict}
_WEIGHTS = ("ema.safetensors", "model.safetensors")  # what a checkpoint translates with, or else a run
_AS_RUN = "give the run that it was made from; to translate with the export add --engine ctranslate2"


@dataclass(frozen=True)
class ExportFolder:
    """A model that CTranslate2 can load, with all that is needed around it."""

    path: Path
    config: Config
    tokenizer: Tokenizer
    quantization: str
    positions: int  # most tokens of a source or of a translation, with </s>
    weights_sha256: str  # of the weights that it was made of
    is_identical: bool = False  # in float32 it translated all lines of its check as the run does
    model_sha256: object = None  # of model.bin; exports of earlier versions did not note it

    @classmethod
    def open(cls, path: Path) -> "ExportFolder":
        """Open an exported folder; it may have been moved, and may be read-only.

        Raises:
            RunError: it is no export, damaged, or of another format.
            DataError: its tokenizer is missing or damaged.
        """
        described = _read(path)
        try:
            config = Config.model_validate(described["recipe"])
        except ValidationError as error:
            where = str(path / DESCRIPTION)
            raise RunError("has no usable recipe", where=where, got=counted(error.error_count(), "error")) from None
        try:
            check: Any = described.get("check")
            identical = bool(check) and check["identical"].get("float32") == check["lines"]
        except (AttributeError, KeyError, TypeError):
            where, hint = str(path / DESCRIPTION), "export again with tfm export --overwrite"
            raise RunError("is damaged", where=where, got="an entry check of another shape", hint=hint) from None
        quantization, positions, weights = (described[name] for name in ("quantization", "positions", "weights_sha256"))
        return cls(
            path, config, Tokenizer.load(path), quantization, positions, weights, identical, described.get(MODEL_SHA256)
        )

    def refuse_damaged_model(self) -> None:
        """Check that the model is the one that was written: CTranslate2 would translate with a flipped bit, too.

        Raises:
            RunError: it is another one, or cannot be read.
        """
        if self.model_sha256 is None:
            return
        try:
            found = file_sha256(self.path / MODEL)
        except OSError as error:
            raise RunError(f"cannot be read: {error.strerror}", where=str(self.path / MODEL)) from None
        if found != self.model_sha256:
            hint = "copy it anew, or export again with tfm export --overwrite"
            raise RunError("is damaged: it is not what was exported", where=str(self.path / MODEL), hint=hint)

    @classmethod
    def of(cls, run: Path) -> "ExportFolder":
        """Open the export that a path means: it is one, or a run (or checkpoint) with an export inside or beside it.

        Raises:
            RunError: there is none, it was made of other weights than the run has now, or it cannot be opened.
            DataError: its tokenizer is missing or damaged.
        """
        place = run.resolve()  # "." has no name
        beside = place.parent / f"{place.name}-{INSIDE}"
        candidates = [run, run / INSIDE, beside if run.is_absolute() else Path(os.path.relpath(beside))]
        found = next((path for path in candidates if is_export(path)), None)
        if found is None:
            raise RunError(
                "has no CTranslate2 export",
                where=str(run),
                expected=f"{DESCRIPTION} in it, in {candidates[1]} or in {candidates[2]}",
                hint=f"make one: tfm export --run {run}",
            )
        if found != run and weights_sha256(run) != _read(found)["weights_sha256"]:
            hint = f"export again: tfm export --run {run} -o {found} --overwrite; or name the export itself with --run"
            raise RunError("was exported from other weights than the run has now", where=str(found), hint=hint)
        return cls.open(found)


def is_export(path: Path) -> bool:
    """Return whether a folder says that it is an export."""
    return (path / DESCRIPTION).is_file()


def refuse_export(path: Path) -> None:
    """Check that a folder is not an export, where a run is needed.

    Raises:
        RunError: it is one.
    """
    if is_export(path):
        raise RunError("is an export for CTranslate2, not a run", where=str(path), hint=_AS_RUN)


def file_sha256(path: Path) -> str:
    """Return the hash of a file, which need not fit into memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_sha256(run: Path) -> str:
    """Return the hash of the weights that a run, or one of its checkpoints, translates with.

    Raises:
        RunError: there are none.
    """
    for path in (run / name for name in _WEIGHTS):
        if path.is_file():
            return file_sha256(path)
    raise RunError("has no weights", where=str(run), expected=" or ".join(_WEIGHTS))


def _read(path: Path) -> dict[str, Any]:
    where = str(path / DESCRIPTION)
    try:
        described: dict[str, Any] = json.loads((path / DESCRIPTION).read_bytes())
        known = (described["engine"], described["format"]) == (INSIDE, FORMAT)
        complete = not known or all(isinstance(described[key], kind) for key, kind in _ENTRIES.items())
    except FileNotFoundError:
        raise RunError("is not an export", where=str(path), expected=f"a file {DESCRIPTION} in it") from None
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", where=where) from None
    except (ValueError, KeyError, TypeError):
        raise RunError("is damaged", where=where) from None
    if not complete:
        raise RunError("is damaged: an entry has another type", where=where)
    if not known:
        got = f"{described['engine']}, format {described['format']}"
        raise RunError("was exported for another engine or in another format", where=where, got=got)
    return described
