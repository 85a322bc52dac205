"""Which batches make up which step: a pure function of (seed, epoch, position), so that a resumed run finds its place.

An accumulation window never crosses the end of an epoch: the last window of an epoch may hold fewer batches. Its
gradient is still exact, because the loss is divided by the tokens that the window has.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import TokenizedPairs, epoch_batches

Window = list[NDArray[np.int64]]  # batches, each as the indices of its pairs


def batches_per_step(settings: TrainConfig, world_size: int) -> int:
    """Return how many batches make a step, over all ranks; a continued run keeps this number."""
    return settings.accumulate * world_size


@dataclass(frozen=True)
class Position:
    """The next batch to be read."""

    epoch: int = 0
    batch: int = 0


class DataOrder:
    """The batches of every epoch, cut into windows of ``accumulate`` batches."""

    def __init__(self, pairs: TokenizedPairs, batch_tokens: int, accumulate: int, seed: int) -> None:
        self._src_lengths, self._tgt_lengths = pairs.src_lengths, pairs.tgt_lengths
        self._batch_tokens, self._accumulate, self._seed = batch_tokens, accumulate, seed
        self._cached: tuple[int, Window] | None = None

    def batches(self, epoch: int) -> Window:
        """Return the batches of an epoch, each an array of indices into the pairs."""
        if self._cached is None or self._cached[0] != epoch:
            made = epoch_batches(self._src_lengths, self._tgt_lengths, self._batch_tokens, seed=self._seed, epoch=epoch)
            self._cached = (epoch, made)
        return self._cached[1]

    def window(self, at: Position) -> Window:
        """Return the batches of the step that starts at a position."""
        return self.batches(at.epoch)[at.batch : at.batch + self._accumulate]

    def after(self, at: Position) -> Position:
        """Return where the next step starts."""
        following = at.batch + self._accumulate
        return Position(at.epoch, following) if following < len(self.batches(at.epoch)) else Position(at.epoch + 1)

    def steps_per_epoch(self, epoch: int) -> int:
        """Return how many windows an epoch has."""
        return -(-len(self.batches(epoch)) // self._accumulate)

    def padded_tokens(self, window: Window) -> int:
        """Return source and target tokens of a window with padding: what its time is proportional to."""
        return sum(len(rows) * int(self._src_lengths[rows].max() + self._tgt_lengths[rows].max()) for rows in window)

    def mean_padded_tokens(self, epoch: int) -> float:
        """Return the padded tokens of an epoch's mean step."""
        return self.padded_tokens(self.batches(epoch)) / self.steps_per_epoch(epoch)

    def target_tokens(self, window: Window) -> int:
        """Return the target tokens of a window, without padding: what its loss is divided by."""
        return sum(int(self._tgt_lengths[rows].sum()) for rows in window)

    def passes(self, at: Position) -> float:
        """Return how often the data was read, with the fraction of the present epoch."""
        return at.epoch + (at.batch / len(self.batches(at.epoch)) if at.batch else 0.0)
