"""One checkpoint: everything a run needs to continue bit by bit, as safetensors and JSON in a folder of its own.

There is no generator state: random streams and the order of the data are functions of seed and position. There are no
times either, so that equal training gives equal bytes.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_cli.checkpoint import durable
from transformer_cli.checkpoint.tensor_files import read_tensors, to_bytes
from transformer_cli.errors import RunError

WEIGHTS, EMA, OPTIMIZER, STATE = "model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True)
class CheckpointState:
    """A training run between two steps."""

    step: int  # optimizer steps done
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    ema: dict[str, Tensor] | None  # shadow weights, if the run averages
    counters: dict[str, Any]  # position, best, patience, scaler ...: plain JSON


def write_snapshot(folder: Path, state: CheckpointState, tokenizer_sha256: str) -> None:
    """Write a checkpoint durably, with the hash of every file."""
    files = {WEIGHTS: to_bytes(state.weights, tokenizer_sha256), OPTIMIZER: to_bytes(state.optimizer)}
    if state.ema is not None:
        files[EMA] = to_bytes(state.ema, tokenizer_sha256)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    document = {"format": 1, "step": state.step, "sha256": hashes, "counters": state.counters}
    files[STATE] = _plain(document | {"checksum": _checksum(document)})
    durable.write_folder(folder, files)


def read_snapshot(folder: Path) -> CheckpointState:
    """Read a checkpoint and check every file against its hash.

    Raises:
        RunError: something is missing, damaged or of another format.
    """
    document = read_state(folder)
    for name, expected in document["sha256"].items():
        if _hash(folder / name) != expected:
            raise RunError("is damaged: its content does not have the stored hash", where=str(folder / name))
    ema = read_tensors(folder / EMA)[0] if EMA in document["sha256"] else None
    return CheckpointState(
        step=document["step"],
        weights=read_tensors(folder / WEIGHTS)[0],
        optimizer=read_tensors(folder / OPTIMIZER)[0],
        ema=ema,
        counters=document["counters"],
    )


def read_state(folder: Path) -> dict[str, Any]:
    """Read the JSON part of a checkpoint.

    Raises:
        RunError: it is missing, damaged or of another format.
    """
    path = folder / STATE
    try:
        document = json.loads(path.read_bytes())
        stored = document.pop("checksum")
        known = document["format"] == 1
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RunError("is damaged", where=str(path)) from None
    if stored != _checksum(document):
        raise RunError("is damaged: its content does not have the stored checksum", where=str(path))
    if not known:
        raise RunError("is of an unknown format", where=str(path), got=document["format"], expected=1)
    return dict(document)


def _plain(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(_plain(document)).hexdigest()


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
