"""Why scores are divided by √d_k.

Legend: N queries, S keys, K head width (the paper's d_k).

A score is a sum of K products. With components of mean 0 and variance σ² its variance is K σ⁴ (Vaswani et al. 2017,
section 3.2.1, footnote 4, for σ = 1): at K = 256 scores of a standard deviation of 16, whose softmax picks one key and
passes hardly any gradient.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer_cli.demos.report import DemoReport, Table, Value, Wish
from transformer_cli.demos.small_training import Training, end_of, small_model, train
from transformer_cli.model.kernels import naive_attention

WIDTHS = (4, 16, 64, 256, 1024)
_SIGMAS = (1.0, 0.5)
_SCORES = ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0])
_DRAWS = 4096
_QUERIES, _KEYS = 256, 32
_SATURATED = 0.99  # of the weight on one key
_MODEL = {"d_model": 128, "n_heads": 1, "d_k": 256, "d_v": 32}
_RATE = 0.001


def demonstrate(wish: Wish, *, widths: Sequence[int] = WIDTHS, steps: int = 200) -> DemoReport:
    """Measure scores, their softmax and its gradient; train a wide head with and without the scale."""
    generator = torch.Generator().manual_seed(wish.seed)
    variances = [_variance_row(width, sigma, generator) for sigma in _SIGMAS for width in widths]
    softmax = [_softmax_row(scores) for scores in _SCORES]
    attention = [_attention_row(width, scaled, generator) for width in widths for scaled in (True, False)]
    losses = {}
    for scaled in (True, False):
        wish.note(f"training {steps} steps {_with(scaled)} the scale")
        model = small_model(wish.seed, **_MODEL, attention_scale=scaled)
        losses[_with(scaled)] = train(model, Training(steps, lr=_RATE, backwards=True, seed=wish.seed))
    ends = [(f"{name} 1/√d_k", end_of(curve)) for name, curve in losses.items()]
    title = f"Training to reverse symbols, one head of d_k {_MODEL['d_k']}, {steps} steps"
    tables = [
        Table(
            "Products of random queries and keys",
            ("sigma", "d_k", "variance", "d_k·sigma^4", "standard deviation"),
            variances,
        ),
        Table("Softmax", ("scores", "weights", "entropy", "gradient norm"), softmax),
        Table(
            f"Attention of {_QUERIES} queries to {_KEYS} keys, sigma 1",
            ("d_k", "scores", "entropy", "largest weight", "saturated", "gradient norm"),
            attention,
        ),
        Table(title, ("scores", "loss at the end"), ends),
    ]
    return DemoReport(
        "scaling",
        "Without 1/√d_k wide heads saturate the softmax, and its gradient vanishes.",
        "Vaswani et al. 2017, section 3.2.1 and its footnote 4",
        tables,
        _sentences(variances, attention, ends),
        partial(_draw, variances, attention, losses),
        size=(12, 4),
        settings={"seed": wish.seed, "draws": _DRAWS, "steps": steps, "lr": _RATE, "model": _MODEL},
    )


def _variance_row(width: int, sigma: float, generator: torch.Generator) -> tuple[float, int, float, float, float]:
    query, key = (sigma * torch.randn(_DRAWS, width, generator=generator) for _ in range(2))
    variance = float((query * key).sum(-1).var())
    return sigma, width, variance, width * sigma**4, variance**0.5


def _softmax_row(scores: Sequence[float]) -> tuple[str, str, float, float]:
    """Return weights, entropy in nats, and the Frobenius norm of the Jacobian diag(p) - p pᵀ."""
    p = torch.tensor(scores, dtype=torch.float64).softmax(-1)
    shown = " ".join(f"{float(weight):.3g}" for weight in p)
    jacobian = p.diag() - p[:, None] * p
    return str([int(score) for score in scores]), shown, float(_entropy(p)), float(jacobian.norm())


def _attention_row(width: int, scaled: bool, generator: torch.Generator) -> tuple[int, str, float, float, float, float]:
    """Measure the weights of random attention; the gradient is that of the output towards the scores."""
    query, key, value = (torch.randn(1, 1, n, width, generator=generator) for n in (_QUERIES, _KEYS, _KEYS))
    scale = None if scaled else 1.0
    _, weights = naive_attention(query, key, value, scale=scale)  # [1, 1, N, S]
    largest = weights.amax(-1)
    p = weights[0, 0]  # [N, S]
    jacobian = p.diag_embed() - p[:, :, None] * p[:, None]  # [N, S, S]
    gradient = float(jacobian.flatten(1).norm(dim=1).mean())
    saturated = float((largest > _SATURATED).float().mean())
    return width, f"{_with(scaled)} 1/√d_k", float(_entropy(weights).mean()), float(largest.mean()), saturated, gradient


def _entropy(p: Tensor) -> Tensor:
    return -(p * p.clamp(min=1e-300 if p.dtype is torch.float64 else 1e-38).log()).sum(-1)


def _with(scaled: bool) -> str:
    return "with" if scaled else "without"


def _sentences(variances: Sequence[Sequence[Value]], attention: Sequence[Sequence[Value]], ends: Any) -> list[str]:
    widths = [int(row[1] or 0) for row in variances]
    widest = 256 if 256 in widths else max(widths)  # the width whose deviation is easily remembered
    deviation = next(row[4] for row in variances if row[:2] == (1.0, widest))
    with_scale, without = (row for row in attention if row[0] == widest)
    return [
        f"at d_k {widest} scores have a standard deviation of {deviation:.1f}; theory: {widest**0.5:.1f}",
        f"mean gradient norm of the softmax there: {with_scale[5]:.3g} with 1/√d_k, {without[5]:.3g} without",
        f"loss at the end: {ends[0][1]:.2f} with 1/√d_k, {ends[1][1]:.2f} without",
    ]


def _draw(variances: Any, attention: Any, losses: dict[str, list[float]], figure: Any) -> None:
    left, middle, right = figure.subplots(1, 3)
    for sigma in _SIGMAS:
        own = [row for row in variances if row[0] == sigma]
        (line,) = left.plot([row[1] for row in own], [row[3] for row in own], label=f"d_k·σ⁴, σ = {sigma:g}")
        left.plot([row[1] for row in own], [row[2] for row in own], "o", color=line.get_color(), label="measured")
    left.set(xscale="log", yscale="log", xlabel="d_k", ylabel="variance of q·k", title="scores grow with d_k")
    for name in ("with 1/√d_k", "without 1/√d_k"):
        own = [row for row in attention if row[1] == name]
        middle.plot([row[0] for row in own], [row[5] for row in own], "o-", label=name)
        right.plot(losses[name.split()[0]], linewidth=1, label=name)
    middle.set(xscale="log", xlabel="d_k", ylabel="norm", title="gradient of the softmax")
    middle.set_ylim(bottom=0)
    widths = list(dict.fromkeys(row[0] for row in attention))
    for axes in (left, middle):
        axes.set_xticks(widths, map(str, widths))
        axes.set_xticks([], minor=True)
    right.set(xlabel="step", ylabel="loss per token", title=f"training, one head of d_k {_MODEL['d_k']}")
    for axes in (left, middle, right):
        axes.legend(fontsize=7)
