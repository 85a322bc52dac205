"""Tensors as safetensors bytes: equal tensors give equal bytes, and reading them never runs code."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from transformer_cli.errors import RunError

#: The only metadata key. With several, safetensors writes them in random order and equal training would not give
#: equal bytes.
_TOKENIZER = "tokenizer_sha256"
_PICKLE_STARTS = (b"\x80", b"PK\x03\x04")


def to_bytes(tensors: Mapping[str, Tensor], tokenizer_sha256: str | None = None) -> bytes:
    """Encode named tensors, with the hash of the tokenizer that they belong to."""
    metadata = None if tokenizer_sha256 is None else {_TOKENIZER: tokenizer_sha256}
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(on_cpu, metadata)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """Read named tensors and the hash of their tokenizer, onto the CPU.

    Raises:
        RunError: the file is missing, damaged or no safetensors file. A pickle is refused, not executed.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            return tensors, (file.metadata() or {}).get(_TOKENIZER)
    except FileNotFoundError:
        raise RunError("is missing", where=str(path)) from None
    except (SafetensorError, OSError) as error:
        raise RunError(
            f"cannot be read: {error}", where=str(path), got=_kind(path), expected="a safetensors file"
        ) from None


def read_tensors_of(path: Path, tokenizer_sha256: str) -> dict[str, Tensor]:
    """Read weights that must belong to a tokenizer.

    Raises:
        RunError: they do not, or the file cannot be read.
    """
    tensors, found = read_tensors(path)
    refuse_other_tokenizer(path, found, tokenizer_sha256)
    return tensors


def refuse_other_tokenizer(path: Path, found: str | None, wanted: str) -> None:
    """Check that a file of tensors was saved with a tokenizer.

    Raises:
        RunError: it was not.
    """
    if found != wanted:
        got = f"sha256 {found[:16]}" if found else "a file that names none"
        hint = "it is of another run, or the run's tokenizer was replaced: put back what belongs together"
        expected = f"that of the run, sha256 {wanted[:16]}"
        raise RunError("was saved with another tokenizer", where=str(path), got=got, expected=expected, hint=hint)


def load_strictly(model: nn.Module, weights: Mapping[str, Tensor], where: object) -> None:
    """Copy weights into a model whose parameters must have exactly these names and shapes.

    Raises:
        RunError: a parameter is missing, left over or of another shape.
    """
    wanted = dict(model.named_parameters())
    wrong = sorted(
        name for name in wanted.keys() | weights.keys()
        if name not in wanted or name not in weights or wanted[name].shape != weights[name].shape
    )  # fmt: skip
    if wrong:
        got, expected = (_sizes(wrong, tensors) for tensors in (weights, wanted))
        hint = "they are of another model: put back those of the run"
        what = "the weights do not fit the model of config.yaml"
        raise RunError(what, where=str(where), got=got, expected=expected, hint=hint)
    for name, parameter in wanted.items():
        parameter.data.copy_(weights[name])


def _sizes(names: Sequence[str], tensors: Mapping[str, Tensor]) -> str:
    shown = [f"{name} {_size(tensors.get(name))}" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _size(tensor: Tensor | None) -> str:
    return "(none)" if tensor is None else "x".join(map(str, tensor.shape)) or "1"


def _kind(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError:
        return None
    return "a pickle; those can carry code and are never loaded" if start.startswith(_PICKLE_STARTS) else None
