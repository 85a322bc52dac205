"""What the output of ``tfm translate`` depends on besides the input: only the same job is continued."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from transformer_cli import __version__
from transformer_cli.commands.files.confidence_file import short_sha256
from transformer_cli.commands.files.part_file import Job
from transformer_cli.commands.translate.phrase_lists import digest
from transformer_cli.commands.translate.request import TranslateRequest
from transformer_cli.decoding.confidence import Confidence
from transformer_cli.decoding.phrases import Phrases
from transformer_cli.decoding.sentences import sentence_rule
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.export.folder import MODEL, ExportFolder

#: Settings that change no translation, and what follows from the format, by whose name its user knows it.
_LEFT_OUT = ("batch_size", "batch_tokens", "refill", "look_every", "log_probs")


def job_of(
    request: TranslateRequest,
    runs: Sequence[Path],
    translator: Translator,
    settings: DecodeSettings,
    phrases: Phrases,
    confidence: Confidence | None,
) -> Job:
    """Name it; how lines are batched is none of it."""
    found = [_weights_and_device(request, run) for run in runs]
    search = {name: value for name, value in asdict(settings).items() if name not in _LEFT_OUT}
    search["sample"] = search.pop("sampling")  # as the option is called
    data = translator.config.data
    return (
        search
        | {
            "from": data.src_lang,
            "to": translator.tgt_lang,
            "max_length": data.max_length,  # where long lines are cut
            "tokenizer": translator.tokenizer.sha256[:16],
            "format": request.output_format,
            "input_format": "jsonl" if request.reads_json else "text",
            "field": request.field,
            "prefix": request.prefix,
            "glossary": digest([*chain(*phrases.glossary.terms.items())]) if phrases.glossary else None,
            "forbid": digest(phrases.forbidden.phrases) if phrases.forbidden else None,
            "engine": request.engine,
            "shortlist": translator.shortlist.fingerprint if settings.shortlist else None,
            "weights": " ".join(short_sha256(weights) for weights, _ in found),
            "confidence": None if confidence is None else confidence.fingerprint,
            "device": found[0][1],
            "sentences": sentence_rule(),
            "version": __version__,
        }
    )


def _weights_and_device(request: TranslateRequest, run: Path) -> tuple[Path, str]:
    if request.engine == "ctranslate2":
        return ExportFolder.of(run).path / MODEL, request.device
    from transformer_cli.checkpoint import weights_file  # an export is translated without torch
    from transformer_cli.runtime import Runtime

    return weights_file(run), Runtime.resolve(request.device).device.type
