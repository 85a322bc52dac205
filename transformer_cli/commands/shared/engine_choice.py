"""``--engine auto``: CTranslate2 where it is there and says the same, else our own engine."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from transformer_cli.commands.shared.notes import Note
from transformer_cli.commands.translate.request import TranslateRequest
from transformer_cli.decoding.ctranslate2_engine import differences, refuse_unmapped
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import UserError
from transformer_cli.export.folder import ExportFolder


def with_chosen_engine(request: TranslateRequest, runs: Sequence[Path], note: Note) -> TranslateRequest:
    """Return the request with an engine that is no longer ``auto``; the user is told which, and why."""
    if request.engine != "auto":
        return request
    reason = _why_not(request, runs)
    note("engine ctranslate2" if reason is None else f"engine torch: {reason}")
    return replace(request, engine="ctranslate2" if reason is None else "torch")


def _why_not(request: TranslateRequest, runs: Sequence[Path]) -> str | None:
    """Say why CTranslate2 shall not translate; None if it may: only where it was seen to say the same."""
    if find_spec("ctranslate2") is None:
        return "ctranslate2 is not installed"
    try:
        replace(request, engine="ctranslate2").check()
        folder = ExportFolder.of(runs[0])
        settings = DecodeSettings.from_config(folder.config.decode).but(request.overrides)
        refuse_unmapped(settings)
    except UserError as error:
        return f"{error.where} {error.what}" if error.where else error.what
    if differences(settings) is not None:
        return "with a beam ctranslate2 may find other translations"
    if request.reads_json:
        return "JSON lines may bring prefixes"
    if folder.quantization != "float32" or not folder.is_identical:
        return "the export did not translate all lines of its check as the run does"
    return None
