"""The confidence of a run, ``confidence.json`` in its folder: written by ``tfm eval``, used by ``tfm translate``.

What it holds is in ``decoding/confidence.py``; how it is fitted in ``evaluation/calibration.py``.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from transformer_cli.commands.shared.notes import Note
from transformer_cli.commands.shared.run_choice import folder_of
from transformer_cli.decoding.confidence import Circumstances, Confidence
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Engine, Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import DataError
from transformer_cli.export.folder import ExportFolder, is_export

_NAME = "confidence.json"
_DIGITS = 16
_Line = TypeVar("_Line")


def short_sha256(path: Path) -> str:
    """Return the start of the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


def circumstances(
    run: Path, translator: Translator, settings: DecodeSettings, export: ExportFolder | None = None
) -> Circumstances:
    """Return what a confidence fitted now would hold for; an export stands for the weights that it was made of."""
    if export is not None:
        return Circumstances.of(export.weights_sha256[:_DIGITS], translator.tgt_lang, settings)
    from transformer_cli.checkpoint import weights_file  # an export is translated without torch

    shortlist = translator.shortlist.fingerprint if settings.shortlist else None
    return Circumstances.of(short_sha256(weights_file(run)), translator.tgt_lang, settings, shortlist)


def write_confidence(run: Path, confidence: Confidence) -> Path:
    """Put it into the run, in place of an older one; return where.

    Raises:
        RunError: the folder cannot be written.
    """
    from transformer_cli.checkpoint import durable

    path = folder_of(run) / _NAME
    durable.write_file(path, confidence.to_json().encode())
    return path


def fitting_confidence(
    run: Path, translator: Translator, settings: DecodeSettings, note: Note, engine: Engine = "torch"
) -> Confidence | None:
    """Return the confidence of a run if it holds for this translation; if there is one that does not, say why."""
    export = ExportFolder.of(run) if engine == "ctranslate2" else None
    path = (run.resolve().parent if is_export(run) else folder_of(run)) / _NAME
    if not path.is_file():
        return None
    hint = "confidence is left out; tfm eval --split dev --calibrate fits it anew"
    if export is not None and export.quantization != "float32":
        note(f"confidence was not fitted to weights in {export.quantization}, so it is left out")
        return None
    try:
        found = Confidence.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, DataError) as error:
        what = f"{error.what} (got {error.got})" if isinstance(error, DataError) and error.got else str(error)
        note(f"warning: {path} cannot be used: {what}; {hint}")
        return None
    if differing := found.fitted_for.differences(circumstances(run, translator, settings, export)):
        note(f"{path} was fitted for another translation ({', '.join(differing)} differ): {hint}")
        return None
    return found


def with_confidence(
    answers: Iterable[tuple[_Line, Translation]], confidence: Confidence | None, holds: Callable[[_Line], bool]
) -> Iterator[tuple[_Line, Translation]]:
    """Yield the answers with the confidence of each line for which it holds, as they come."""
    for line, translation in answers:
        known = confidence.probability(translation) if confidence is not None and holds(line) else None
        yield line, replace(translation, confidence=known)
