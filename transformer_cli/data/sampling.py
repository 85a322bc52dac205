"""Other pieces for the same text in every epoch: BPE-dropout and subword regularisation.

A word then comes in many spellings, and the model learns what its parts mean (Kudo 2018, "Subword Regularization";
Provilkov et al. 2020, "BPE-Dropout"). What an epoch draws is a function of (seed, epoch), so a resumed run reads the
same pieces. Not here: the drawing itself (``piece_draws.py``) and which epochs read what (``epochs.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer_cli.data.batching import Ids, TokenizedPairs, encoded
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.runtime import stream_seed


@dataclass(frozen=True)
class SubwordSampler:
    """Draws the pieces of sentence pairs anew."""

    tokenizer: Tokenizer
    strength: float  # BPE: probability to drop a merge; unigram: alpha, the sharpness of the lattice's distribution
    samples_src: bool
    samples_tgt: bool
    seed: int
    max_length: int  # longest side in tokens, with EOS
    n_tags: int = 0  # ids in front of every source that are no text and stay

    def draw(self, text: ParallelText, plain: TokenizedPairs, *key: int | str) -> TokenizedPairs:
        """Return other pieces of the same pairs; the draw is a function of the seed and ``key``.

        Args:
            text: the sentences.
            plain: their usual pieces, for the sides that are not sampled and for lines whose draw is too long.
            key: names the draw, for example by the epoch.
        """
        src, tgt = plain.src, plain.tgt
        if self.samples_src:
            src = self._side(self.tokenizer.sample_src, text.src, plain.src, (*key, "source"), self.n_tags)
        if self.samples_tgt:
            tgt = self._side(self.tokenizer.sample_tgt, text.tgt, plain.tgt, (*key, "target"), 0)
        return TokenizedPairs(src, tgt)

    def _side(
        self,
        sample: Callable[[Sequence[str], float, int], list[list[int]]],
        lines: Sequence[str],
        plain: Sequence[Ids],
        key: tuple[int | str, ...],
        n_tags: int,
    ) -> list[Ids]:
        def ids(part: Sequence[str], start: int) -> list[list[int]]:
            return sample(part, self.strength, stream_seed(self.seed, "subwords", *key, start))

        drawn = encoded(lines, ids)
        tagged = (np.append(old[:n_tags], new) if n_tags else new for new, old in zip(drawn, plain, strict=True))
        return [new if len(new) <= self.max_length else old for new, old in zip(tagged, plain, strict=True)]
