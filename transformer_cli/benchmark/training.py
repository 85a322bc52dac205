"""How fast a training step is: beside the same step made of torch's parts, and beside what the processor can multiply.

A step is a function of a window (the batches of one update of the weights) and a learning rate; it returns the loss per
target token. Who makes the two steps, and from which data, is the command's business. That both train the same model
is checked first, by their losses: a comparison of different computations would mean nothing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.benchmark.timing import quartiles
from transformer_cli.errors import TfmError

if TYPE_CHECKING:
    from transformer_cli.data.batching import Batch

    Window = Sequence[Batch]
    Step = Callable[[Window, float], float]

#: Largest difference allowed between the losses of the two sides.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Block:
    """Some steps of both sides on the same windows, one side after the other."""

    n_tokens: int  # target tokens, without padding
    flops: float  # of forward and backward
    ours: float  # seconds
    theirs: float


@dataclass(frozen=True)
class Speeds:
    """What the blocks say: medians over them, spreads as interquartile ranges."""

    tokens_per_second: float  # target tokens, ours
    tokens_per_second_spread: float
    tokens_per_second_torch_nn: float
    ratio_to_torch_nn: float  # ours / theirs in the same block: 2 is twice as fast
    ratio_spread: float
    ratios: list[float]
    flops_per_second: float  # ours

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "Speeds":
        """Summarise the blocks of a benchmark."""
        speed, spread = _median_and_spread([block.n_tokens / block.ours for block in blocks])
        ratios = [block.theirs / block.ours for block in blocks]
        ratio, ratio_spread = _median_and_spread(ratios)
        theirs, _ = _median_and_spread([block.n_tokens / block.theirs for block in blocks])
        flops, _ = _median_and_spread([block.flops / block.ours for block in blocks])
        return cls(speed, spread, theirs, ratio, ratio_spread, ratios, flops)


@dataclass(frozen=True)
class StepReport:
    """What was measured, where and how."""

    device: str
    torch: str
    settings: dict[str, object]
    speeds: Speeds
    largest_loss_difference: float
    product_rates: dict[int, float]  # floating-point operations per second, by size; empty after Ctrl-C
    time_by_part: dict[str, float] | None  # None: not known on this device, or after Ctrl-C
    interrupted: bool = False  # the blocks are those that were finished

    @property
    def gemm_share(self) -> float | None:
        """Which share of the best rate of products alone the whole step reaches; None: there is no such rate."""
        return self.speeds.flops_per_second / max(self.product_rates.values()) if self.product_rates else None

    def document(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        return {
            "device": self.device,
            "torch": self.torch,
            "settings": self.settings,
            **asdict(self.speeds),
            "gemm_share": self.gemm_share,
            "product_flops_per_second": self.product_rates,
            "largest_loss_difference": self.largest_loss_difference,
            "time_by_part": self.time_by_part,
            "interrupted": self.interrupted,
        }


def largest_difference(
    ours: "Step", theirs: "Step", windows: Sequence["Window"], rate: Callable[[int], float]
) -> float:
    """Let both sides take the same steps; return the largest difference of their losses.

    Args:
        ours: without dropout, from the same weights as ``theirs``.
        theirs: the other side.
        windows: one for each step.
        rate: learning rate of a step, from 1.

    Raises:
        TfmError: the difference is above ``TOLERANCE``, or no number.
    """
    losses = [
        (ours(window, rate(number)), theirs(window, rate(number))) for number, window in enumerate(windows, start=1)
    ]
    worst = max(range(len(losses)), key=lambda i: _apart(*losses[i]))
    difference = _apart(*losses[worst])
    if difference > TOLERANCE:
        raise TfmError(
            "our step and the step of torch's parts do not train the same model: their losses differ",
            where=f"step {worst + 1} of {len(losses)}, without dropout",
            got=f"{losses[worst][0]:.6f} and {losses[worst][1]:.6f}, a difference of {difference:.1e}",
            expected=f"at most {TOLERANCE:g}; nothing was timed",
        )
    return difference


def alternate(
    ours: "Step",
    theirs: "Step",
    blocks: Sequence[Sequence["Window"]],
    rate: float,
    *,
    flops: Callable[["Window"], float],
    wait: Callable[[], object],
) -> Iterator[Block]:
    """Time blocks of steps, one side after the other, and who begins in turn: what slows the machine hits both.

    Each block comes when it is done.

    Args:
        ours: one side; both are warmed up here by one block each that does not count.
        theirs: the other side.
        blocks: the windows of each block, the same for both sides.
        rate: learning rate.
        flops: of forward and backward of a window.
        wait: until the device has done everything.
    """

    def timed(step: "Step", block: Sequence["Window"]) -> float:
        wait()
        began = time.perf_counter()
        for window in block:
            step(window, rate)
        wait()
        return time.perf_counter() - began

    for side in (ours, theirs):
        timed(side, blocks[0])
    for number, block in enumerate(blocks):
        order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        seconds = {side: timed(side, block) for side in order}
        n_tokens = sum(batch.n_tokens for window in block for batch in window)
        yield Block(n_tokens, sum(map(flops, block)), seconds[ours], seconds[theirs])


def step_flops(model: nn.Module, window: "Window") -> int:
    """Return the floating-point operations of forward and backward: those of the forward products, times three.

    They are counted by torch, on its device that computes nothing. Each product of the forward pass has two of the
    same size in the backward pass.

    Args:
        model: of torch's parts (torch cannot look into a product of ours), on the device ``meta``.
        window: batches on any device.
    """
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for batch in window:
            model(batch.src.to("meta"), batch.tgt_in.to("meta"))
    return 3 * int(counter.get_total_flops())


def _median_and_spread(values: Sequence[float]) -> tuple[float, float]:
    lower, median, upper = quartiles(values)
    return median, upper - lower


def _apart(left: float, right: float) -> float:
    difference = abs(left - right)
    return difference if difference == difference else float("inf")
