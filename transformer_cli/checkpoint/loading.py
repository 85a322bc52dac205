"""From files to a model that can translate: which run, which weights, and whether they fit.

Not here: the layout of a run (``run_folder.py``) and of a checkpoint (``snapshot.py``).
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.run_info import read_info, run_folders
from transformer_cli.checkpoint.snapshot import EMA, WEIGHTS, read_state
from transformer_cli.checkpoint.tensor_files import load_strictly, read_tensors, refuse_other_tokenizer
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import PAD, Tokenizer
from transformer_cli.errors import ConfigError, RunError
from transformer_cli.model.attention import forced_flash_refusal
from transformer_cli.model.transformer import Transformer


def build_model(config: Config, tokenizer: Tokenizer) -> Transformer:
    """Return the freshly initialised model of a configuration."""
    sizes = tokenizer.src_vocab_size, tokenizer.tgt_vocab_size
    return Transformer(config.model, *sizes, pad_id=PAD, max_length=config.data.max_length)


def load_model(path: str | Path, device: torch.device | str = "cpu") -> tuple[Transformer, Tokenizer, Config]:
    """Load a trained model, ready to translate.

    Args:
        path: a run folder (its best model), or one of its ``checkpoints/step-N`` (the averaged weights if the run
            averages, else the plain ones).
        device: where the weights go.

    Raises:
        RunError: there is no usable model, it is of another run, or its configuration was edited.
        ConfigError: it cannot be computed on the device.
    """
    path, run = Path(path), open_model(path)
    run.refuse_edited_model()
    weights, tokenizer_sha256 = read_tensors(weights_file(path))
    refuse_unfit_device(run.config, torch.device(device).type)
    model = build_model(run.config, run.tokenizer)
    load_strictly(model, weights, path)  # what a size tells is more than that a tokenizer is another
    refuse_other_tokenizer(weights_file(path), tokenizer_sha256, run.tokenizer.sha256)
    _refuse_no_numbers(weights, path)
    return model.to(device).eval(), run.tokenizer, run.config


def _refuse_no_numbers(weights: Mapping[str, Tensor], path: Path) -> None:
    if broken := [name for name, values in weights.items() if not values.isfinite().all()]:
        shown = ", ".join(broken[:3]) + (f" and {len(broken) - 3} more" if len(broken) > 3 else "")
        hint = "an earlier checkpoint may be sound: --run RUN/checkpoints/step-N"
        raise RunError("has weights that are not finite", where=str(path), got=shown, hint=hint)


def refuse_unfit_device(config: Config, device_type: str, *, sixteen_bits: bool = True) -> None:
    """Check that a device can compute the model as its configuration demands.

    Args:
        config: with the ``model`` section.
        device_type: ``cpu``, ``cuda``, ...
        sixteen_bits: whether products are computed in 16 bits there; True where that is not known yet.

    Raises:
        ConfigError: it cannot.
    """
    if reason := forced_flash_refusal(config.model, device_type, sixteen_bits=sixteen_bits):
        raise ConfigError(
            f"model.attention: flash cannot be computed on the device {device_type}: {reason}",
            hint="model.attention: sdpa takes the fastest kernel that the device has, flash where it can",
        )


def weights_file(path: str | Path) -> Path:
    """Return the file of the weights that ``load_model`` takes."""
    path = Path(path)
    return path / EMA if (path / EMA).exists() else path / WEIGHTS  # only checkpoints have the one


def open_model(path: str | Path) -> RunFolder:
    """Open the run of a trained model, without reading the weights.

    Args:
        path: as of ``load_model``.

    Raises:
        RunError: there is no model.
    """
    path = Path(path)
    if _is_checkpoint(path):
        run = RunFolder.open(path.resolve().parent.parent)
        read_state(path)
        return run
    run = RunFolder.open(path)
    run.refuse_without_model()
    return run


def _is_checkpoint(path: Path) -> bool:
    path = path.resolve()
    return path.parent.name == "checkpoints" and path.name.startswith("step-")


def newest_run(root: Path = Path("runs")) -> Path:
    """Return the run that was created last, by its stored time, among those that have a model.

    Raises:
        RunError: there is none.
    """
    found = [(created, path) for path in run_folders(root) if (created := _created(path)) is not None]
    if not found:
        raise RunError(
            "no run with a model was found",
            where=str(root),
            expected=f"{root}/*/{WEIGHTS}",
            hint="make one with tfm train --config base.yaml, or name one with --run DIR",
        )
    return max(found)[1]


def _created(path: Path) -> str | None:
    try:
        return str(read_info(path)["created"]) if (path / WEIGHTS).is_file() else None
    except RunError:
        return None
