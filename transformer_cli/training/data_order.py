"""Which batches make up which step: a pure function of (seed, epoch, position), so that a resumed run finds its place.

An accumulation window never crosses the end of an epoch: the last window of an epoch may hold fewer batches. Its
gradient is still exact, because the loss is divided by the tokens that the window has.
"""

from dataclasses import dataclass

import numpy as np

from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import Indices, Lengths, TokenizedPairs, count_batches, epoch_batches
from transformer_cli.data.epochs import EpochPairs


def batches_per_step(settings: TrainConfig, world_size: int) -> int:
    """Return how many batches make a step, over all ranks; a continued run keeps this number."""
    return settings.accumulate * world_size


@dataclass(frozen=True)
class Position:
    """The next batch to be read."""

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Window:
    """The batches of one step, or of an epoch."""

    pairs: TokenizedPairs  # as the epoch reads them
    batches: list[Indices]  # each the places of its pairs

    def target_tokens(self) -> int:
        """Return the target tokens without padding: what the loss is divided by."""
        return sum(int(self.pairs.tgt_lengths[rows].sum()) for rows in self.batches)

    def padded_tokens(self) -> int:
        """Return source and target tokens with padding: what the time is proportional to."""
        sides = self.pairs.src_lengths, self.pairs.tgt_lengths
        return sum(len(rows) * int(lengths[rows].max()) for rows in self.batches for lengths in sides)


class DataOrder:
    """The batches of every epoch, cut into windows of ``accumulate`` batches.

    How many batches an epoch has is known without drawing its pieces (``EpochPairs.typical_lengths``); how they are
    cut is decided by the pieces that are drawn. Cut by the usual lengths instead, sampled batches of Multi30k (merges
    dropped with probability 0.1) would be twice and at worst 3.3 times as large as ``batch_tokens``, and a third of
    their tokens padding.
    """

    def __init__(self, pairs: EpochPairs, batch_tokens: int, accumulate: int, seed: int) -> None:
        self._pairs, self._batch_tokens, self._accumulate, self._seed = pairs, batch_tokens, accumulate, seed
        self._counts: dict[int, int] = {}
        self._longest: dict[int, Lengths] = {}  # by the number of pairs of an epoch
        self._cached: tuple[int, Window] | None = None

    def epoch(self, number: int) -> Window:
        """Return all batches of an epoch."""
        if self._cached is None or self._cached[0] != number:
            self._cached = None
            count = self._n_batches(number)  # first: it may look at epoch 0
            pairs = self._pairs.pairs(number)
            lengths, seed = (pairs.src_lengths, pairs.tgt_lengths), self._seed
            made = epoch_batches(*lengths, self._batch_tokens, seed=seed, epoch=number, count=count)
            self._cached = (number, Window(pairs, made))
        return self._cached[1]

    def window(self, at: Position) -> Window:
        """Return the batches of the step that starts at a position."""
        epoch = self.epoch(at.epoch)
        return Window(epoch.pairs, epoch.batches[at.batch : at.batch + self._accumulate])

    def after(self, at: Position) -> Position:
        """Return where the next step starts."""
        following = at.batch + self._accumulate
        return Position(at.epoch, following) if following < self._n_batches(at.epoch) else Position(at.epoch + 1)

    def steps_per_epoch(self, epoch: int) -> int:
        """Return how many windows an epoch has."""
        return -(-self._n_batches(epoch) // self._accumulate)

    def mean_step_seconds(self, epoch: int, seconds_per_token: float) -> float:
        """Return what the mean step of an epoch takes, with its share of drawing the epoch's pieces.

        Args:
            epoch: counted from 0.
            seconds_per_token: cost of a padded token.
        """
        seconds = self.epoch(epoch).padded_tokens() * seconds_per_token + self._pairs.seconds_to_draw
        return seconds / self.steps_per_epoch(epoch)

    def passes(self, at: Position) -> float:
        """Return how often the data was read, with the fraction of the present epoch."""
        return at.epoch + (at.batch / self._n_batches(at.epoch) if at.batch else 0.0)

    def _n_batches(self, epoch: int) -> int:
        if epoch not in self._counts:
            longest = self._longer_sides(epoch)
            self._counts[epoch] = count_batches(longest, self._batch_tokens, seed=self._seed, epoch=epoch)
        return self._counts[epoch]

    def _longer_sides(self, epoch: int) -> Lengths:
        """Return the usual lengths of an epoch's longer sides, ascending; sorted once for all epochs of a kind."""
        src, tgt = self._pairs.typical_lengths(epoch)
        if len(src) not in self._longest:
            self._longest[len(src)] = np.sort(np.maximum(src, tgt))
        return self._longest[len(src)]
