"""Models to export: small, with enlarged random weights, and no bias or norm left at its start."""

from pathlib import Path

import torch
from decoding_rig import sentences, transformer
from decoding_rig import tokenizer as joint_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.decoding.ctranslate2_engine import CTranslate2Engine
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.export.extra import Quantization
from transformer_cli.export.folder import ExportFolder
from transformer_cli.export.writing import Exported
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime, seed_stream

POSITIONS = 160


def pronounced(how: Config, tokenizer: Tokenizer | None = None, *, ends: float = 1.0) -> Transformer:
    """Make a model whose choices are clear; with ``ends`` above 1 an untied output layer likes ``</s>``, and what must
    not be chosen."""
    seed_stream(0, "init")
    model = transformer(how, weights=2.0) if tokenizer is None else build_model(how, tokenizer)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
            elif tokenizer is not None:
                parameter *= 2
        model.output.weight[: EOS + 1] *= ends
    return model.eval()


def export(
    model: Transformer,
    how: Config,
    folder: Path,
    quantization: Quantization = "float32",
    tokenizer: Tokenizer | None = None,
) -> ExportFolder:
    """Write a model as the command does, without comparing it."""
    positions = how.data.max_length if how.model.positions == "learned" else POSITIONS
    origin = {"run": "rig", "weights_sha256": "0" * 64}
    Exported(model, tokenizer or joint_tokenizer(), how, positions, origin).write(folder, quantization)
    return ExportFolder.open(folder)


def both(
    folder: Path, how: Config, *, ends: float = 1.0, tokenizer: Tokenizer | None = None
) -> tuple[Translator, Translator]:
    """Return one model behind our own engine and behind CTranslate2."""
    model = pronounced(how, tokenizer, ends=ends)
    exported = export(model, how, folder, tokenizer=tokenizer)
    ours = Translator.of_model(model, tokenizer or joint_tokenizer(), how, Runtime.resolve("cpu"))
    engine = CTranslate2Engine(exported, "cpu")
    return ours, Translator(engine, exported.tokenizer, exported.config, max_length=engine.max_length)


def translated(translator: Translator, n: int = 30, **changes: object) -> list[str]:
    """Return greedy translations of some lines."""
    settings = DecodeSettings.from_config(translator.config.decode).but({"beam_size": 1} | changes)
    return [found.text for found in translator.translate_window(sentences(n, seed=5, longest=8), settings)]
