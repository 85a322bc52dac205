"""Pre-Norm and Post-Norm at several depths: how large the gradients are before the first step, and how training starts.

With Post-Norm the gradients shrink from the last layer to the first and the last one's do not get smaller with depth;
with Pre-Norm they are alike in all layers, and smaller the deeper the stack (Xiong et al. 2020).
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.demos.small_training import (
    Training,
    batch_of,
    end_of,
    mean_loss,
    small_model,
    stream,
    symbols,
    train,
)
from transformer_cli.wording import counted

DEPTHS = (2, 6, 12, 24)
_TRAINED = (2, 12)
_PLACEMENTS = ("pre", "post")
_RATE, _WARMUP = 0.003, 10
_SEQUENCES = 64
Gradients = dict[tuple[str, int], list[float]]


def demonstrate(
    wish: Wish, *, depths: Sequence[int] = DEPTHS, trained: Sequence[int] = _TRAINED, steps: int = 80
) -> DemoReport:
    """Measure each decoder layer's gradient at the start at every depth, then train both placements at some."""
    cases = list(product(_PLACEMENTS, depths))
    gradients = {case: _gradient_norms(*case, wish.seed) for case in cases}
    losses = {}
    for placement, depth in product(_PLACEMENTS, trained):
        wish.note(f"training {steps} steps, {placement}, {depth} + {depth} layers")
        model = small_model(wish.seed, norm_placement=placement, encoder_layers=depth, decoder_layers=depth)
        losses[placement, depth] = train(model, Training(steps, lr=_RATE, warmup_steps=_WARMUP, seed=wish.seed))
    ends = {case: end_of(curve) for case, curve in losses.items()}
    rows = [(p, d, g[0], g[-1], g[0] / g[-1], ends.get((p, d))) for (p, d), g in gradients.items()]
    columns = ("norm", "layers", "first layer's gradient", "last layer's", "first / last", "loss at the end")
    title = f"Gradient norm of w_2 in the decoder before the first step; copying symbols, {steps} steps"
    pre, post = (next(row for row in rows if row[:2] == (placement, max(depths))) for placement in _PLACEMENTS)
    return DemoReport(
        "norm",
        "Post-Norm's gradients fade towards the first layers and deep stacks do not start to learn; Pre-Norm's do.",
        "Xiong et al. 2020, On Layer Normalization in the Transformer Architecture",
        [Table(title, columns, rows)],
        [
            *(
                f"{name} at {max(depths)} layers: the first layer gets {share:.2g} of the last one's gradient"
                for name, share in (("Pre-Norm", pre[4]), ("Post-Norm", post[4]))
            ),
            *(
                f"{placement.capitalize()}-Norm, {depth} layers: loss at the end {end:.2f}"
                for (placement, depth), end in ends.items()
            ),
        ],
        partial(_draw, gradients, losses),
        size=(12, 4.5),
        settings={"seed": wish.seed, "steps": steps, "lr": _RATE, "warmup_steps": _WARMUP},
    )


def _gradient_norms(placement: str, depth: int, seed: int) -> list[float]:
    """Return the norm of each decoder layer's gradient in its last matrix, from the first layer on."""
    model = small_model(seed, norm_placement=placement, encoder_layers=depth, decoder_layers=depth)
    mean_loss(model, batch_of(symbols(_SEQUENCES, stream(seed, 0)))).backward()  # type: ignore[no-untyped-call]
    gradients = [layer.feed_forward.w_2.weight.grad for layer in model.decoder.layers]
    return [float(gradient.norm()) for gradient in gradients if gradient is not None]


def _draw(gradients: Gradients, losses: Gradients, figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    dashes = dict(zip(_PLACEMENTS, ("-", "--"), strict=True))
    colours = {depth: f"C{number}" for number, depth in enumerate(dict.fromkeys(depth for _, depth in gradients))}
    for (placement, depth), norms in gradients.items():
        style = {"linestyle": dashes[placement], "color": colours[depth]}
        left.plot([(number + 1) / depth for number in range(depth)], norms, marker=".", **style)
        if (placement, depth) in losses:
            name = f"{placement.capitalize()}-Norm, {counted(depth, 'layer')}"
            right.plot(losses[placement, depth], linewidth=1, label=name, **style)
    left.set(yscale="log", xlabel="layer / number of layers", ylabel="norm", title="gradient before the first step")
    right.set(xlabel="step", ylabel="loss per token", title="training")
    # Lines of their own: one entry for each norm and for each depth, not for each of their many pairs.
    for placement in _PLACEMENTS:
        left.plot([], [], color="black", linestyle=dashes[placement], label=f"{placement.capitalize()}-Norm")
    for depth, colour in colours.items():
        left.plot([], [], color=colour, linewidth=4, label=counted(depth, "layer"))
    for axes in (left, right):
        axes.legend(fontsize=7)
