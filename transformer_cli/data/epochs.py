"""What each epoch reads: the pairs as they are, both directions of them, or other pieces of them.

Every epoch is a function of its number (and of the run's settings), so a resumed run reads what it would have read.
Not here: how an epoch is cut into batches and steps (``batching.py``, ``training/data_order.py``).
"""

import time

from transformer_cli.data.batching import Lengths, TokenizedPairs
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.sampling import SubwordSampler


class EpochPairs:
    """The training pairs, epoch by epoch."""

    def __init__(
        self,
        plain: TokenizedPairs,
        *,
        bidirectional_epochs: int = 0,
        text: ParallelText | None = None,
        sampler: SubwordSampler | None = None,
    ) -> None:
        """Describe the epochs; nothing is drawn yet.

        Args:
            plain: the usual pieces of the pairs.
            bidirectional_epochs: the first so many epochs read each pair from source to target and from target to
                source (Ding et al. 2021, "Improving Neural Machine Translation by Bidirectional Training").
            text: the sentences of the pairs; only a sampler needs them.
            sampler: draws other pieces for every epoch; None: the usual ones.
        """
        self.plain, self._bidirectional_epochs = plain, bidirectional_epochs
        self._text, self._sampler = text, sampler
        self.seconds_to_draw = 0.0  # what the newest epoch took
        self._newest: tuple[int, TokenizedPairs] | None = None
        self._typical: tuple[Lengths, Lengths] | None = None

    def __len__(self) -> int:
        return len(self.plain)

    def pairs(self, epoch: int) -> TokenizedPairs:
        """Return what an epoch reads; in a bidirectional one the second half are the reversed pairs."""
        if self._newest is None or self._newest[0] != epoch:
            began = time.monotonic()
            self._newest = None  # first, so that never two epochs are in memory
            self._newest = (epoch, self._read(epoch))
            self.seconds_to_draw = 0.0 if self._sampler is None else time.monotonic() - began
        return self._newest[1]

    def typical_lengths(self, epoch: int) -> tuple[Lengths, Lengths]:
        """Return lengths, with EOS, like those of an epoch, without drawing its pieces.

        They are those of epoch 0 and decide how many batches an epoch has: counting the steps of a long run must not
        mean to tokenise its text once for every epoch to come.
        """
        if self._typical is None:
            first = self.pairs(0)
            self._typical = first.src_lengths, first.tgt_lengths
        src, tgt = self._typical
        return (src, tgt) if self._is_bidirectional(epoch) else (src[: len(self)], tgt[: len(self)])

    def _is_bidirectional(self, epoch: int) -> bool:
        return epoch < self._bidirectional_epochs

    def _read(self, epoch: int) -> TokenizedPairs:
        forward = self._drawn(self._text, self.plain, epoch, "forward")
        if not self._is_bidirectional(epoch):
            return forward
        text = self._text and self._text.reversed()
        backward = self._drawn(text, self.plain.reversed(), epoch, "backward")
        return forward + backward

    def _drawn(self, text: ParallelText | None, plain: TokenizedPairs, epoch: int, direction: str) -> TokenizedPairs:
        if self._sampler is None or text is None:
            return plain
        return self._sampler.draw(text, plain, epoch, direction)
