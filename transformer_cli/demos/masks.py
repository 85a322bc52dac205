"""Masks drawn, and broken: the loss looks good, the translation does not, and the mask doctor says why.

Legend: B batch, S source length, T target length.

How the faults are planted is in ``inspection/broken_masks.py``.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.data.tokenizer import PAD
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.demos.small_training import (
    Training,
    batch_of,
    exact_matches,
    mean_loss,
    small_model,
    stream,
    symbols,
    train,
)
from transformer_cli.inspection.broken_masks import Fault, inverted, maximum, off_by_one, planted, wrong_axis
from transformer_cli.inspection.mask_doctor import examine
from transformer_cli.model.masks import causal_mask, combined_mask, padding_mask

FAULTS: dict[str, Fault | None] = {
    "none": None,
    "maximum of 0/1 and -inf": maximum,
    "off by one": off_by_one,
    "inverted booleans": inverted,
    "wrong axis": wrong_axis,
}
_MORE_PADDING = 8  # columns, as a longer neighbour brings them
_UNSEEN = 200  # sequences, drawn by a number that no step has
_COLUMNS = ("fault", "loss", "right", "right beside a long sentence", "what the mask doctor says")


class Outcome(NamedTuple):
    """What became of a model with a fault."""

    fault: str
    losses: list[float]
    loss: float  # per token of unseen sequences, each predicted from the true tokens before it
    right: float  # share of sequences that greedy search gets right
    right_when_padded: float
    said: str


def demonstrate(wish: Wish, *, steps: int = 300, faults: Sequence[str] = tuple(FAULTS)) -> DemoReport:
    """Draw the masks; train a small model with each fault to copy symbols, and look at what it learned."""
    outcomes = []
    for fault in faults:
        wish.note(f"training {steps} steps, fault: {fault}")
        outcomes.append(_outcome(fault, steps, wish.seed))
    table = Table(f"Copying symbols, {steps} steps; unseen sequences", _COLUMNS, [_row(o) for o in outcomes])
    return DemoReport(
        "masks",
        "A wrong mask gives a good loss and useless translations.",
        "what masks have to hide: Vaswani et al. 2017, section 3.2.3",
        [table],
        [*map(_sentence, outcomes)],
        partial(_draw, _masks(), outcomes),
        drawings=[_drawn(name, mask) for name, mask in _masks().items()],
        size=(11, 7),
        settings={"seed": wish.seed, "steps": steps, "more_padding": _MORE_PADDING, "unseen": _UNSEEN},
    )


def _outcome(fault: str, steps: int, seed: int) -> Outcome:
    model, planted_fault, unseen = small_model(seed), FAULTS[fault], symbols(_UNSEEN, stream(seed, 0))
    batch = batch_of(unseen)
    with nullcontext() if planted_fault is None else planted(model, planted_fault):
        losses = train(model, Training(steps, seed=seed))
        with torch.no_grad():
            loss = mean_loss(model, batch).item()
        right = exact_matches(model, unseen)
        padded = exact_matches(model, unseen, _MORE_PADDING)
        found = examine(model, batch.src, batch.tgt_in)
    return Outcome(fault, losses, loss, right, padded, f"{found[0].place} {found[0].what}" if found else "sound")


def _row(outcome: Outcome) -> tuple[str, float, str, str, str]:
    shares = f"{outcome.right:.1%}", f"{outcome.right_when_padded:.1%}"
    return outcome.fault, outcome.loss, *shares, outcome.said


def _sentence(o: Outcome) -> str:
    return f"fault: {o.fault}: loss {o.loss:.3f}, {o.right:.1%} right, beside a long sentence {o.right_when_padded:.1%}"


def _masks() -> dict[str, Tensor]:
    """Return each mask as one sentence of three tokens and two of padding sees it, ``[T, S]``."""
    ids = torch.tensor([[7, 8, 9, PAD, PAD]])
    length = ids.size(1)
    padding, causal = padding_mask(ids, PAD), causal_mask(length)
    shown = {"padding": padding, "causal": causal, "both": combined_mask(padding, causal)}
    for name, fault in FAULTS.items():
        if fault is not None:
            told = fault(padding, fault in (maximum, off_by_one), length, length)[0]
            assert told is not None
            shown[name] = told
    return {name: mask.expand(1, 1, length, length)[0, 0] for name, mask in shown.items()}


def _drawn(name: str, mask: Tensor) -> str:
    return "\n".join([name, *("  " + " ".join("■" if seen else "·" for seen in row) for row in mask.tolist())])


def _draw(masks: dict[str, Tensor], outcomes: Sequence[Outcome], figure: Any) -> None:
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.6))
    above.suptitle("rows may look at the dark columns: a sentence of 3 tokens and 2 of padding", fontsize=9)
    for axes, (name, mask) in zip(above.subplots(1, len(masks)), masks.items(), strict=True):
        axes.pcolormesh(mask.float().numpy(), vmin=0, vmax=1.2, cmap="Blues", edgecolors="grey", linewidth=0.5)
        axes.set_title(name, fontsize=7)
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.invert_yaxis()
    curves, bars = below.subplots(1, 2)
    for outcome in outcomes:
        curves.plot(outcome.losses, label=outcome.fault, linewidth=1)
    curves.set(xlabel="step", ylabel="loss per token", title="the loss looks good")
    curves.legend(fontsize=7)
    places = torch.arange(len(outcomes)).tolist()
    shares = {
        "right": [o.right for o in outcomes],
        "right beside a long sentence": [o.right_when_padded for o in outcomes],
    }
    for (name, own), offset in zip(shares.items(), (-0.2, 0.2), strict=True):
        drawn = bars.barh([place + offset for place in places], own, 0.4, label=name)
        bars.bar_label(drawn, [f"{share:.1%}" for share in own], padding=3, fontsize=7)
    bars.set_yticks(places, [o.fault for o in outcomes], fontsize=7)
    bars.set(xlim=(0, 1.12), title="the translation does not")
    bars.invert_yaxis()
    bars.legend(fontsize=7, loc="center right")
