"""Which target pieces the translation of a line may be made of: a shortlist of the vocabulary.

The output layer of a step computes a logit for every target piece, and nearly all of them cannot occur. A shortlist
holds, for each source piece, the target pieces that it most often goes with in training, and some that any line may
need (Jean et al. 2015, section 3.2). The list of a line is a function of its own pieces alone, so what is computed for
it does not depend on its batch. Probabilities are those among the pieces of the list.

Always in a list: the special ids, so that they keep the columns that they have in the vocabulary; the 256 bytes, so
that everything can be spelled; the most frequent pieces. ``shortlist.safetensors`` in a run holds it, and belongs to
the run's tokenizer, whatever becomes of its weights. Not here: how pieces are found to go together
(``data/lexicon.py``), and how a step makes use of it (``own_tokens.py``, ``own_output.py``).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from transformer_cli.checkpoint import durable, open_model
from transformer_cli.checkpoint.tensor_files import read_tensors_of, to_bytes
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.lexicon import fit_lexicon
from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_cli.decoding.pieces import is_byte
from transformer_cli.errors import RunError

SHORTLIST = "shortlist.safetensors"
PER_PIECE, FREQUENT = 100, 200


Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """What each source piece adds to the list of a line, and what is in every list."""

    always: Ids  # ascending, the special ids first
    of_pieces: NDArray[np.int32]  # [source vocabulary, K], -1 where a piece has fewer

    @classmethod
    def fitted(
        cls, pairs: TokenizedPairs, tokenizer: Tokenizer, per_piece: int = PER_PIECE, frequent: int = FREQUENT
    ) -> "Shortlist":
        """Learn one from training pairs, the ids of which are the tokenizer's.

        Args:
            pairs: as training sees them.
            tokenizer: of the run.
            per_piece: target pieces of each source piece.
            frequent: most frequent target pieces, which are in every list.
        """
        size = tokenizer.tgt_vocab_size
        counts = np.bincount(np.concatenate(list(pairs.tgt)), minlength=size)
        often = np.argsort(-counts, kind="stable")[:frequent]  # of equals the lower id
        single = [number for number, piece in enumerate(tokenizer.tgt_pieces(range(size))) if is_byte(piece)]
        always = [PAD, UNK, BOS, EOS, *single, *often[counts[often] > 0].tolist()]
        best = fit_lexicon(pairs, size).best(min(per_piece, size), tokenizer.src_vocab_size)
        return cls(np.unique(np.array(always, dtype=np.int64)), best)

    def of(self, source: Sequence[int]) -> Ids:
        """Return the ids, ascending, of which the translation of these source ids may be made."""
        listed = self._in_every_list.copy()
        listed[self.of_pieces[list(source)]] = True
        return np.flatnonzero(listed[:-1])

    @cached_property
    def _in_every_list(self) -> NDArray[np.bool_]:
        """Boolean for each id, and one more, which is what -1 points to."""
        found = np.zeros(max(self.always[-1], self.of_pieces.max()) + 2, dtype=bool)
        found[self.always] = True
        return found

    @property
    def fingerprint(self) -> str:
        """A hash of all that it says."""
        return hashlib.sha256(self._bytes()).hexdigest()[:16]

    def _bytes(self, tokenizer_sha256: str | None = None) -> bytes:
        tensors = {"always": torch.from_numpy(self.always), "of_pieces": torch.from_numpy(self.of_pieces)}
        return to_bytes(tensors, tokenizer_sha256)

    def save(self, folder: Path, tokenizer: Tokenizer) -> Path:
        """Put it into a run, in place of an older one; return where.

        Raises:
            RunError: the folder cannot be written.
        """
        durable.write_file(folder / SHORTLIST, self._bytes(tokenizer.sha256))
        return folder / SHORTLIST

    @classmethod
    def of_run(cls, run: str | Path) -> "Shortlist":
        """Read that of a run, or of one of its checkpoints.

        Raises:
            RunError: see ``load``.
        """
        folder = open_model(run)
        return cls.load(folder.path, folder.tokenizer)

    @classmethod
    def load(cls, folder: Path, tokenizer: Tokenizer) -> "Shortlist":
        """Read that of a run.

        Raises:
            RunError: there is none, it is damaged, or it belongs to another tokenizer.
        """
        path, hint = folder / SHORTLIST, f"make it: tfm shortlist --run {folder}"
        if not path.is_file():
            raise RunError("the run has no shortlist", where=str(folder), expected=SHORTLIST, hint=hint)
        tensors = read_tensors_of(path, tokenizer.sha256)
        try:
            found = cls(tensors["always"].numpy(), tensors["of_pieces"].numpy())
        except KeyError as error:
            raise RunError("is no shortlist", where=str(path), expected=f"a tensor {error}", hint=hint) from None
        found._check(path, tokenizer, hint)
        return found

    def _check(self, path: Path, tokenizer: Tokenizer, hint: str) -> None:
        always, of_pieces = self.always, self.of_pieces
        fits = always.ndim == 1 and of_pieces.ndim == 2 and len(of_pieces) == tokenizer.src_vocab_size
        fits = fits and always.dtype == np.int64 and of_pieces.dtype == np.int32 and of_pieces.size > 0
        fits = fits and always[: EOS + 1].tolist() == [PAD, UNK, BOS, EOS] and bool((np.diff(always) > 0).all())
        if not (fits and max(always[-1], of_pieces.max()) < tokenizer.tgt_vocab_size):
            raise RunError("is no shortlist, or damaged", where=str(path), hint=hint)
