"""Which settings of ``model`` mean nothing together, and why: the one table of them.

What only the device decides (torch's flash kernel on a GPU takes no mask) is not here but in ``model/attention.py``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformer_cli.config.model import ModelConfig


class Combination(NamedTuple):
    """Settings that exclude each other."""

    names: str
    found: Callable[["ModelConfig"], bool]
    why: str


def _places(config: "ModelConfig", implementation: str) -> set[str]:
    return {place for place, chosen in config.attention.model_dump().items() if chosen == implementation}


def _widths_differ(config: "ModelConfig") -> bool:
    default = config.d_model // config.n_heads
    return (config.d_k or default) != (config.d_v or default)


def _odd_d_k(config: "ModelConfig") -> bool:
    return (config.d_k or config.d_model // config.n_heads) % 2 == 1


def _no_scores(config: "ModelConfig") -> bool:
    chosen = {config.attention.encoder, config.attention.decoder}
    return bool(chosen & {"flash", "linformer", "sparse"})


def _is_default(config: "ModelConfig", key: str) -> bool:
    return bool(getattr(config, key) == type(config).model_fields[key].default)


REFUSED = (
    Combination(
        "attention.decoder: linformer",
        lambda c: "decoder" in _places(c, "linformer"),
        "it mixes all positions before anything is hidden, so a target token would see those that follow it",
    ),
    Combination(
        "attention.cross: linformer",
        lambda c: "cross" in _places(c, "linformer"),
        "its keys of the memory would have to be projected again wherever they are kept: choose it for the encoder",
    ),
    Combination(
        "attention.cross: sparse",
        lambda c: "cross" in _places(c, "sparse"),
        "its patterns are distances within one text, and there is none between a target and a source token: "
        "choose attention: {encoder: sparse, decoder: sparse, cross: sdpa}",
    ),
    Combination(
        "attention: flash with attention_dropout",
        lambda c: bool(_places(c, "flash")) and c.attention_dropout > 0,
        "torch's flash kernel on a CPU knows no dropout; choose sdpa, or attention_dropout: 0",
    ),
    Combination(
        "attention: flash with d_k and d_v that differ",
        lambda c: bool(_places(c, "flash")) and _widths_differ(c),
        "torch's flash kernel needs one head width; choose sdpa, or equal widths",
    ),
    Combination(
        "sparse without attention: sparse",
        lambda c: not _places(c, "sparse") and not _is_default(c, "sparse"),
        "it would do nothing: choose attention.encoder: sparse or attention.decoder: sparse",
    ),
    Combination(
        "linformer_rank without attention: linformer",
        lambda c: not _places(c, "linformer") and not _is_default(c, "linformer_rank"),
        "it would do nothing: choose attention.encoder: linformer",
    ),
    Combination(
        "positions: rotary with an odd d_k",
        lambda c: c.positions == "rotary" and _odd_d_k(c),
        "it turns pairs of numbers: choose an even d_k",
    ),
    Combination(
        "positions: transformer_xl with an odd d_model",
        lambda c: c.positions == "transformer_xl" and c.d_model % 2 == 1,
        "its sinusoids of distances come in pairs: choose an even d_model",
    ),
    Combination(
        "positions: t5, alibi or transformer_xl with flash, linformer or sparse self-attention",
        lambda c: c.positions in ("t5", "alibi", "transformer_xl") and _no_scores(c),
        "they add numbers to scores that this kernel never holds: choose naive or sdpa, or rotary positions",
    ),
)


def refuse_meaningless(config: "ModelConfig") -> None:
    """Check that no row of the table fits.

    Raises:
        ValueError: one does; settings and reason are named.
    """
    for row in REFUSED:
        if row.found(config):
            raise ValueError(f"{row.names}: {row.why}")
