"""Ids of corpora larger than memory, in Arrow files that are mapped into memory, not read into it.

``datasets`` makes them once, in parallel; they lie in the cache (``cache.py``). What a corpus takes of the process
itself is eight bytes a pair, for the two lengths. The ids are those that ``batching.py`` would hold.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from transformer_cli.data.batching import Ids, Lengths, TokenizedPairs, tokenize_pairs
from transformer_cli.data.cache import cached, key_of
from transformer_cli.data.mapped_text import CHUNK, SIDES, MappedText, mapped_table
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa  # heavy, and seldom needed: the functions below import it


class MappedIds(Sequence[Ids]):
    """The ids of one side: views of the file's pages."""

    def __init__(self, chunks: "Sequence[pa.ListArray]") -> None:
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]
        self._ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, index: int) -> Ids: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ids]: ...

    def __getitem__(self, index: int | slice) -> Ids | list[Ids]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        chunk = int(np.searchsorted(self._ends, index, side="right"))
        row = index - int(self._ends[chunk - 1]) if chunk else index
        start, end = self._offsets[chunk][row : row + 2]
        ids: Ids = self._values[chunk][start:end]
        return ids

    def lengths(self) -> Lengths:
        """Return the length of every sentence."""
        return np.concatenate([np.zeros(0, np.int32), *(np.diff(offsets) for offsets in self._offsets)])


class MappedPairs(TokenizedPairs):
    """Ids of aligned sentences in a mapped file; in memory are only their lengths."""

    def __init__(self, files: Sequence[Path]) -> None:
        tables = [mapped_table(file) for file in files]
        src, tgt = (MappedIds([chunk for table in tables for chunk in table.column(side).chunks]) for side in SIDES)
        super().__init__(src, tgt)
        object.__setattr__(self, "_lengths", (src.lengths(), tgt.lengths()))  # as the frozen parent's own fields are

    @property
    def src_lengths(self) -> Lengths:
        """Lengths of the sources, with EOS."""
        lengths: tuple[Lengths, Lengths] = self.__dict__["_lengths"]
        return lengths[0]

    @property
    def tgt_lengths(self) -> Lengths:
        """Lengths of the targets, with EOS."""
        lengths: tuple[Lengths, Lengths] = self.__dict__["_lengths"]
        return lengths[1]


def map_pairs(text: MappedText, tokenizer: Tokenizer, max_length: int | None) -> tuple[TokenizedPairs, int]:
    """Tokenise mapped text, or find it tokenised; see ``tokenize_pairs``.

    Raises:
        DataError: the cache cannot be written.
    """
    key = key_of(text.key, tokenizer.sha256, max_length)
    folder = cached(f"ids-{key}", lambda made: _write_ids(text.file, tokenizer, max_length, made, key))
    pairs = MappedPairs(sorted(folder.glob("*.arrow")))
    return pairs, len(text) - len(pairs)


def _write_ids(text: Path, tokenizer: Tokenizer, max_length: int | None, folder: Path, key: str) -> None:
    import datasets
    import pyarrow as pa

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    ids = datasets.Features({side: datasets.List(datasets.Value("int32")) for side in SIDES})
    whole = datasets.Dataset.from_file(str(text))
    processes = min(len(os.sched_getaffinity(0)), -(-len(whole) // CHUNK))

    def tokenize(batch: dict[str, list[str]]) -> "pa.Table":
        pairs, _ = tokenize_pairs(ParallelText(batch["src"], batch["tgt"]), tokenizer, max_length)
        return pa.table({side: _list_array(getattr(pairs, side)) for side in SIDES})

    whole.map(
        tokenize,
        batched=True,
        batch_size=CHUNK,
        writer_batch_size=CHUNK,
        remove_columns=list(SIDES),
        features=ids,
        num_proc=processes if processes > 1 else None,
        cache_file_name=str(folder / "ids.arrow"),
        new_fingerprint=key,  # the library's own would hash the pickled tokenizer
        load_from_cache_file=False,
        desc="tokenising",
    )


def _list_array(rows: Sequence[Ids]) -> "pa.ListArray":
    import pyarrow as pa

    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, np.concatenate([np.zeros(0, np.int32), *rows]))
