"""Is a training sound? A list of what goes wrong in practice, each with its evidence and what to change.

Legend: L layers, D d_model, H heads, K head width, Kv head width of values.

It reads what a run has written (its configuration and the records of its log) and looks at its weights; whether masks
are right is asked in ``mask_doctor.py``. A finding is a reason to look closer, not a proof.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.config import Config
from transformer_cli.decoding.model_steps import evaluating
from transformer_cli.inspection.heads import Head, doubles
from transformer_cli.inspection.observation import places
from transformer_cli.model.transformer import Transformer
from transformer_cli.wording import counted

_ADAM_WARMUP = 100  # steps: 2 / (1 - beta_2), beta_2 = 0.98 (Ma & Yarats 2021, "untuned linear warmup")
_TOO_FAST = 4  # times the peak of Vaswani et al. 2017, eq. 3
_DEEP_FOR_POST_NORM = 6  # layers of a stack, from which on Post-Norm fails without care (Wang et al. 2019)
_GROWN = 100  # times the variance of the layer before, or the other way round
_SPIKE = 10  # times the median gradient norm
_OFTEN = 0.5  # share of steps that were clipped
_SKIPPED = 0.01  # share of steps that were left out
_DEAD = 0.05  # times what the heads of its layer write on average


@dataclass(frozen=True)
class Check:
    """One item of the list."""

    name: str
    sound: bool
    evidence: str
    advice: str | None = None  # what to change, if it is not sound


def settings_checks(config: Config, total_steps: int | None) -> Iterator[Check]:
    """Judge learning rate, warm-up, norm placement and depth before anything was trained."""
    train, model = config.train, config.model
    if train.optimizer == "adamw":
        warmup = max(train.warmup_steps, 1)
        usual: float = (model.d_model * warmup) ** -0.5
        yield Check(
            "learning rate",
            train.lr <= _TOO_FAST * usual,
            f"peak {train.lr:g}; d_model {model.d_model} and {counted(train.warmup_steps, 'step')} of warm-up suggest "
            f"{usual:.2g} (Vaswani et al. 2017, eq. 3)",
            f"train.lr={usual:.1g}, or a longer warm-up",
        )
    else:
        yield Check("learning rate", True, f"peak {train.lr:g}; Muon's steps are as large in every model")
    of_total = "" if total_steps is None else f" of {total_steps:,}"
    yield Check(
        "warm-up",
        _ADAM_WARMUP <= train.warmup_steps < (total_steps or math.inf),
        f"{counted(train.warmup_steps, 'step')}{of_total}; Adam's moments take {_ADAM_WARMUP} (Ma & Yarats 2021)",
        f"train.warmup_steps from {_ADAM_WARMUP} on, and fewer than the run has steps",
    )
    depth = max(model.encoder_layers, model.decoder_layers)
    yield Check(
        "norm placement",
        model.norm_placement == "pre" or depth < _DEEP_FOR_POST_NORM,
        f"{model.norm_placement}, {counted(depth, 'layer')}; Post-Norm is fragile from {_DEEP_FOR_POST_NORM} on "
        "(Wang et al. 2019)",
        "model.norm_placement=pre",
    )


def log_checks(records: Sequence[dict[str, Any]], config: Config) -> Iterator[Check]:
    """Judge gradient norms, clipping and skipped steps by the records of ``metrics.jsonl``."""
    train = [one for one in records if one.get("kind") == "train" and {"step", "grad_norm", "skipped"} <= one.keys()]
    if not train:
        return
    norms = [(record["step"], record["grad_norm"]) for record in train if record["grad_norm"] is not None]
    settled = [(step, norm) for step, norm in norms if step > config.train.warmup_steps] or norms
    if settled:
        usual = median(norm for _, norm in settled)
        at, largest = max(settled, key=lambda pair: pair[1])
        yield Check(
            "gradient norms",
            largest <= _SPIKE * usual,
            f"median {usual:.2g}, largest {largest:.2g} at step {at:,}, of {counted(len(settled), 'record')}",
            "a lower train.lr, a longer warm-up, or train.clip_norm near the median",
        )
        yield from _clipping(settled, usual, config.train.clip_norm)
    skipped, steps = train[-1]["skipped"], train[-1]["step"]
    yield Check(
        "skipped steps",
        skipped <= _SKIPPED * (steps + skipped),
        f"{skipped:,} of {steps + skipped:,} had a loss or a gradient that was not finite",
        "train.amp=off or bf16, or a lower train.lr",
    )


def _clipping(norms: Sequence[tuple[int, float]], usual: float, limit: float | None) -> Iterator[Check]:
    if limit is None:
        yield Check("clipping", True, "off (train.clip_norm null)")
        return
    share = sum(norm > limit for _, norm in norms) / len(norms)
    yield Check(
        "clipping",
        share <= _OFTEN,
        f"{share:.0%} of the records are above train.clip_norm {limit:g}",
        f"train.clip_norm={2 * usual:.1g}: clipped all the time, every batch weighs the same, noisy or not",
    )


def variance_check(model: Transformer, src: Tensor, tgt_in: Tensor) -> Check:
    """Judge how the variance moves from layer to layer, for a batch of ids ``[B, S]`` and ``[B, T]``."""
    moves = [
        (_severity(after / max(before, 1e-12)), f"{before:.2g} to {after:.2g} ({stack} layer {number} to {number + 1})")
        for stack, variances in layer_variances(model, src, tgt_in).items()
        for number, (before, after) in enumerate(pairwise(variances), 1)
    ]
    worst, where = max(moves, default=(1.0, "one to the same, with stacks of one layer"))
    return Check(
        "variance per layer",
        worst <= _GROWN,
        f"largest change between neighbouring layers: {where}",
        "model.norm_placement=pre, model.zero_init=true, or a lower train.lr",
    )


@torch.no_grad()
def layer_variances(model: Transformer, src: Tensor, tgt_in: Tensor) -> dict[str, list[float]]:
    """Return the variance of every layer's output at the real tokens of ids ``[B, S]`` and ``[B, T]``, by stack."""
    found: dict[str, list[float]] = {"encoder": [], "decoder": []}
    stacks: dict[str, tuple[Any, Tensor]] = {"encoder": (model.encoder.layers, src)}
    stacks["decoder"] = (model.decoder.layers, tgt_in)
    handles = [
        layer.register_forward_hook(partial(_keep_variance, found[stack], ids != model.pad_id))
        for stack, (layers, ids) in stacks.items()
        for layer in layers
    ]
    try:
        with evaluating(model):
            model.decode(tgt_in, model.encode(src), src)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _keep_variance(kept: list[float], real: Tensor, _: nn.Module, __: object, output: Tensor) -> None:
    kept.append(float(output[real].float().var()))


def _severity(ratio: float) -> float:
    """Return by what factor a variance moves, up or down; what is no number is worst."""
    return math.inf if math.isnan(ratio) or ratio == 0 else max(ratio, 1 / ratio)


@torch.no_grad()
def dead_heads(model: Transformer) -> list[str]:
    """Return the heads that write next to nothing: the size of W_v W_o, head by head, beside their layer's mean."""
    found = []
    for place, attention in places(model).items():
        value = attention.v_proj.weight.float().view(attention.n_heads, attention.d_v, -1)  # [H, Kv, D]
        out = (
            attention.out_proj.weight.float().view(-1, attention.n_heads, attention.d_v).permute(1, 0, 2)
        )  # [H, D, Kv]
        sizes = (out @ value).flatten(1).norm(dim=1)  # [H]
        dead = (sizes < _DEAD * sizes.mean()).nonzero().flatten().tolist()
        found += [f"{place.rstrip(',')} head {head + 1}" for head in dead]
    return found


def heads_check(model: Transformer, heads: Sequence[Head]) -> Check:
    """Judge whether heads are dead, or do what another one does."""
    dead = dead_heads(model)
    same = [f"{head.place} layer {head.layer} head {head.head} as {other}" for head, other in doubles(heads)]
    parts = [f"{counted(len(dead), 'dead head')}{_named(dead)}", f"{len(same)} that do the same{_named(same)}"]
    return Check("heads", not dead and not same, ", ".join(parts), "fewer model.n_heads train faster, and lose little")


def _named(names: Sequence[str]) -> str:
    return f" ({'; '.join(names)})" if names else ""
