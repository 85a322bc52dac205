"""A training with and without warm-up: the same peak rate, reached at once or slowly.

Post-Norm has its largest gradients before the first step, in its last layers; full steps then drive it to where it
learns no more. Pre-Norm does without warm-up (Xiong et al. 2020).
"""

from functools import partial
from itertools import product
from typing import Any

from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.demos.small_training import Training, end_of, small_model, train
from transformer_cli.wording import counted

_PLACEMENTS = ("post", "pre")
_RATE, _WARMUP, _LAYERS = 0.005, 75, 6
Losses = dict[tuple[str, int], list[float]]


def demonstrate(wish: Wish, *, steps: int = 150, warmup: int = _WARMUP, layers: int = _LAYERS) -> DemoReport:
    """Train both norm placements with and without warm-up, otherwise alike."""
    losses: Losses = {}
    for placement, warmup_steps in product(_PLACEMENTS, (warmup, 0)):
        wish.note(f"training {steps} steps, {placement}, warm-up of {counted(warmup_steps, 'step')}")
        model = small_model(wish.seed, norm_placement=placement, encoder_layers=layers, decoder_layers=layers)
        training = Training(steps, lr=_RATE, warmup_steps=warmup_steps, seed=wish.seed)
        losses[placement, warmup_steps] = train(model, training)
    rows = [(placement, steps_up, curve[0], end_of(curve)) for (placement, steps_up), curve in losses.items()]
    columns = ("norm", "warm-up steps", "loss at the start", "loss at the end")
    return DemoReport(
        "warmup",
        "Without warm-up Post-Norm does not start to learn; Pre-Norm does.",
        "Xiong et al. 2020, section 3; Popel & Bojar 2018, section 4.6",
        [Table(f"Copying symbols, {layers} + {layers} layers, {steps} steps, peak rate {_RATE}", columns, rows)],
        [
            f"{placement.capitalize()}-Norm: loss at the end {end_of(losses[placement, warmup]):.2f} with warm-up, "
            f"{end_of(losses[placement, 0]):.2f} without"
            for placement in _PLACEMENTS
        ],
        partial(_draw, losses),
        size=(8, 4.5),
        settings={"seed": wish.seed, "steps": steps, "lr": _RATE, "warmup_steps": warmup, "layers": layers},
    )


def _draw(losses: Losses, figure: Any) -> None:
    axes = figure.subplots()
    for (placement, warmup_steps), curve in losses.items():
        with_it = f"warm-up of {counted(warmup_steps, 'step')}" if warmup_steps else "no warm-up"
        style = {"color": f"C{_PLACEMENTS.index(placement)}", "linestyle": "-" if warmup_steps else "--"}
        axes.plot(curve, label=f"{placement}, {with_it}", linewidth=1, **style)
    axes.set(xlabel="step", ylabel="loss per token", title="the same peak rate, reached slowly or at once")
    axes.legend()
