"""Text of corpora larger than memory: sentence pairs in an Arrow file that is mapped into memory, not read into it.

The system loads a page of the file when a sentence on it is asked for and drops it when memory is short. The file lies
in the cache (``cache.py``) and is made once, in constant memory. Its pairs are those that ``corpus.py`` would hold:
where the data lie does not change a run. Not here: their ids (``mapped_pairs.py``).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from transformer_cli.config import DataConfig, Source
from transformer_cli.data.cache import cached, key_of
from transformer_cli.data.filters import PairFilters
from transformer_cli.data.pairs import Strict
from transformer_cli.data.readers import pairs_of_files, source_files

if TYPE_CHECKING:
    import pyarrow as pa  # heavy, and seldom needed: the functions below import it

CHUNK = 20_000  # pairs written, tokenised or read at a time
SIDES = ("src", "tgt")
EMPTY = "one side is empty"  # why a pair is dropped


class MappedText:
    """Aligned sentences in a mapped file; ``src`` and ``tgt`` read like lists."""

    def __init__(self, file: Path, key: str, dropped: dict[str, int]) -> None:
        table = mapped_table(file)
        self.src, self.tgt = (MappedLines(table.column(side)) for side in SIDES)
        self.file, self.key, self.dropped = file, key, dropped

    def __len__(self) -> int:
        return len(self.src)


class MappedLines(Sequence[str]):
    """One side of a mapped text."""

    def __init__(self, column: "pa.ChunkedArray") -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __iter__(self) -> Iterator[str]:
        for chunk in self._column.chunks:
            yield from chunk.to_pylist()

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        found: Any = self._column[index]
        return list(found.to_pylist()) if isinstance(index, slice) else str(found.as_py())


def map_text(config: DataConfig, note: Callable[[str], None] = lambda text: None) -> MappedText:
    """Return the training pairs of which both sides hold more than white space, and that ``data.filter`` leaves.

    Args:
        config: which pairs.
        note: told of a damaged cache.

    Raises:
        DataError: a file cannot be read or is not as it should be, or the cache cannot be written.
        DiskFull: there is no room for it.
    """
    source = config.train
    assert source is not None, "callers ask only for corpora of files"
    # The ratio of lengths is not among the filters here: it is one of subword tokens.
    filters = config.filter.model_dump(exclude={"length_ratio"})
    reading = source.model_dump(exclude={"src", "tgt", "tsv", "jsonl"})  # files are known by what is in them
    key = key_of(source.kind, reading, config.src_lang, config.tgt_lang, filters, files=source_files(source))
    folder = cached(f"text-{key}", lambda made: _write_text(source, config, made), note)
    return MappedText(folder / "text.arrow", key, json.loads((folder / "dropped.json").read_text()))


def mapped_table(file: Path) -> "pa.Table":
    """Return the table in an Arrow file, mapped."""
    import pyarrow as pa

    return pa.ipc.open_stream(pa.memory_map(str(file))).read_all()


def _write_text(source: Source, config: DataConfig, folder: Path) -> None:
    import pyarrow as pa

    pairs = pairs_of_files(source, config, Strict())
    schema = pa.schema([(side, pa.large_string()) for side in SIDES])
    n_empty, filters = 0, PairFilters(config, config.tgt_lang)
    with pa.OSFile(str(folder / "text.arrow"), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        while chunk := list(islice(pairs, CHUNK)):
            full = [pair for pair in chunk if pair[0].strip() and pair[1].strip()]
            n_empty += len(chunk) - len(full)
            kept = [pair for pair in full if filters.keep(*pair)]
            sides = [pa.array([pair[i] for pair in kept], pa.large_string()) for i in range(2)]
            out.write_batch(pa.record_batch(sides, schema=schema))
    (folder / "dropped.json").write_text(json.dumps({EMPTY: n_empty, **filters.dropped}))
