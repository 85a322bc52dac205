"""Ids of corpora larger than memory, in Arrow files that are mapped into memory, not read into it.

``datasets`` makes them once, in parallel; they lie in the cache (``cache.py``). What a corpus takes of the process
itself is eight bytes a pair, for the two lengths, and eight more if some were left out afterwards. The ids are those
that ``batching.py`` would hold.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from transformer_cli.data.batching import Ids, Indices, Lengths, TokenizedPairs, tokenize_pairs
from transformer_cli.data.cache import cached, key_of
from transformer_cli.data.mapped_text import CHUNK, SIDES, MappedText, mapped_table
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.runtime import available_cores

if TYPE_CHECKING:
    import pyarrow as pa  # heavy, and seldom needed: the functions below import it


class MappedIds(Sequence[Ids]):
    """The ids of one side: views of the files' pages."""

    def __init__(self, chunks: "Sequence[pa.ListArray]", rows: Indices | None = None) -> None:
        """Look at some arrays of ids as if they were one.

        Args:
            chunks: arrays, one after another.
            rows: places in them, in the order wanted; None: all.
        """
        self._chunks, self._rows = chunks, rows
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]
        self._ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)

    def __len__(self) -> int:
        return self._n_mapped() if self._rows is None else len(self._rows)

    def __add__(self, other: "MappedIds") -> "MappedIds":
        chunks = [*self._chunks, *other._chunks]
        if self._rows is None and other._rows is None:
            return MappedIds(chunks)
        first, second = (np.arange(len(ids)) if ids._rows is None else ids._rows for ids in (self, other))
        return MappedIds(chunks, np.concatenate([first, second + self._n_mapped()]))

    def select(self, indices: Indices | Sequence[int]) -> "MappedIds":
        """Return the ids at these places, in this order."""
        rows = np.asarray(indices, np.int64)
        return MappedIds(self._chunks, rows if self._rows is None else self._rows[rows])

    def _n_mapped(self) -> int:
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
        index = int(index if self._rows is None else self._rows[index])
        chunk = int(np.searchsorted(self._ends, index, side="right"))
        row = index - int(self._ends[chunk - 1]) if chunk else index
        start, end = self._offsets[chunk][row : row + 2]
        ids: Ids = self._values[chunk][start:end]
        return ids

    def lengths(self) -> Lengths:
        """Return the length of every sentence."""
        found = np.concatenate([np.zeros(0, np.int32), *(np.diff(offsets) for offsets in self._offsets)])
        return found if self._rows is None else found[self._rows]


@dataclass(frozen=True)
class MappedPairs(TokenizedPairs):
    """Ids of aligned sentences in mapped files; in memory are only their lengths."""

    src: MappedIds
    tgt: MappedIds

    @classmethod
    def of(cls, files: Sequence[Path]) -> "MappedPairs":
        """Return the pairs in some files, one after another."""
        tables = [mapped_table(file) for file in files]
        return cls(*(MappedIds([chunk for table in tables for chunk in table.column(side).chunks]) for side in SIDES))

    def __add__(self, other: TokenizedPairs) -> "MappedPairs":
        if not isinstance(other, MappedPairs):
            return NotImplemented
        return MappedPairs(self.src + other.src, self.tgt + other.tgt)

    def select(self, indices: Indices | Sequence[int]) -> "MappedPairs":
        """Return the pairs at these places, in this order."""
        return MappedPairs(self.src.select(indices), self.tgt.select(indices))

    def reversed(self) -> "MappedPairs":
        """Return the pairs read from target to source; the ids must be of one vocabulary."""
        return MappedPairs(self.tgt, self.src)

    @cached_property
    def src_lengths(self) -> Lengths:
        """Lengths of the sources, with EOS."""
        return self.src.lengths()

    @cached_property
    def tgt_lengths(self) -> Lengths:
        """Lengths of the targets, with EOS."""
        return self.tgt.lengths()


def map_pairs(
    text: MappedText, tokenizer: Tokenizer, max_length: int | None, note: Callable[[str], None] = lambda text: None
) -> tuple[MappedPairs, int]:
    """Tokenise mapped text, or find it tokenised; see ``tokenize_pairs``. ``note`` is told of a damaged cache.

    Raises:
        DataError: the cache cannot be written.
        DiskFull: there is no room for it.
    """
    key = key_of(text.key, tokenizer.sha256, max_length)
    folder = cached(f"ids-{key}", lambda made: _write_ids(text.file, tokenizer, max_length, made, key), note)
    pairs = MappedPairs.of(sorted(folder.glob("*.arrow")))
    return pairs, len(text) - len(pairs)


def _write_ids(text: Path, tokenizer: Tokenizer, max_length: int | None, folder: Path, key: str) -> None:
    import datasets
    import pyarrow as pa

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    ids = datasets.Features({side: datasets.List(datasets.Value("int32")) for side in SIDES})
    whole = datasets.Dataset.from_file(str(text))
    processes = min(available_cores(), -(-len(whole) // CHUNK))

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
