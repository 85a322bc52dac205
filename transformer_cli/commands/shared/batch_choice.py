"""``--batch-tokens auto``: how much is put side by side, chosen for the device and the model.

It is a matter of speed and memory: no text depends on it (``decoding/batch_decoder.py``). On a CPU what counts is the
number of rows in the products of a step; on a GPU, where more is always faster, the memory that is free. Not here: how
sentences are grouped, which is ``length_groups``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.commands.shared.notes import Note
from transformer_cli.config import DecodeConfig, ModelConfig
from transformer_cli.decoding.settings import DecodeSettings

AUTO = "auto"

_ROWS = 256  # hypotheses side by side on a CPU; measured, see docs/decoding.md
_CPU_TOKENS = 16 * _ROWS  # source tokens of them
_SHARE = 0.5  # of the free memory of a GPU; the rest is for encoding, and for what torch holds back
_FLOAT = 4  # bytes
_LOGITS = 6  # times the vocabulary that a step holds for each hypothesis: logits, their softmax, scores, copies
_GROWTH = 3  # times the columns in use that a cache has while it grows to twice its size
_FIRST = 32  # positions that a cache has room for from the start


@dataclass(frozen=True)
class Batch:
    """How much is side by side at most."""

    sentences: int
    tokens: int  # of their sources, padding counted


def search_settings(
    recipe: DecodeConfig,
    wanted: Mapping[str, Any],
    runs: Sequence[Path],
    device: str,
    note: Note,
    *,
    processes: int = 1,
) -> DecodeSettings:
    """Return a recipe's settings with what the user wants instead; ``auto`` becomes numbers, and the user is told.

    Args:
        recipe: ``decode`` of the run.
        wanted: by name of a setting; None leaves one as it is.
        runs: that translate together.
        device: as of the command line.
        note: told what was chosen.
        processes: how many share the device.

    Raises:
        UserError: a value is out of range, or there is no such device.
    """
    if wanted.get("batch_tokens") != AUTO:
        return DecodeSettings.from_config(recipe).but(wanted)
    from torch import cuda  # an export is translated without torch

    from transformer_cli.checkpoint import open_model
    from transformer_cli.runtime import Runtime

    settings = DecodeSettings.from_config(recipe).but(dict(wanted) | {"batch_tokens": None})
    place = Runtime.resolve(device).device
    if place.type == "cpu":
        chosen, why = on_cpu(settings), f"{_ROWS} hypotheses on a CPU"
    else:
        free = int(cuda.mem_get_info(place)[0] * _SHARE / processes)
        folders = [open_model(run) for run in runs]
        shapes = [(folder.config.model, folder.tokenizer.tgt_vocab_size) for folder in folders]
        chosen, why = within(free, shapes, settings), f"in {free / 2**30:.1f} GiB"
    sentences = min(wanted.get("batch_size") or chosen.sentences, chosen.sentences)
    note(f"side by side: at most {sentences:,} sentences, {chosen.tokens:,} source tokens ({why})")
    return settings.but({"batch_size": sentences, "batch_tokens": chosen.tokens})


def on_cpu(settings: DecodeSettings) -> Batch:
    """Return so many sentences that their hypotheses make products of a good number of rows."""
    return Batch(max(1, _ROWS // settings.beam_size), _CPU_TOKENS)


def within(free: int, shapes: Sequence[tuple[ModelConfig, int]], settings: DecodeSettings) -> Batch:
    """Return what fits into so many bytes: half of them are for what a sentence takes however short it is.

    Args:
        free: bytes.
        shapes: model and target vocabulary of each of those that translate together.
        settings: width of the beam, and how much longer than its source a translation may be.
    """
    sizes = [_bytes(model, vocab_size, settings) for model, vocab_size in shapes]
    of_sentence, of_token = (sum(size) for size in zip(*sizes, strict=True))
    return Batch(max(1, free // 2 // of_sentence), max(1, free // 2 // of_token))


def _bytes(model: ModelConfig, vocab_size: int, settings: DecodeSettings) -> tuple[int, int]:
    """Return the bytes that a sentence takes, and those that each of its source tokens adds.

    The masks of a beam grow with the square of its width: each hypothesis looks at the columns of all.
    """
    width, heads = settings.beam_size, model.n_heads
    d_head = (model.d_k or model.d_model // heads) + (model.d_v or model.d_model // heads)
    column = _FLOAT * model.decoder_layers * heads * d_head  # keys and values of a position in all layers
    position = _GROWTH * (width * column + width * width * (heads + 1) * _FLOAT)
    of_sentence = _LOGITS * _FLOAT * width * vocab_size + _FIRST * position
    return of_sentence, 2 * column + math.ceil(settings.max_length_ratio * position)
