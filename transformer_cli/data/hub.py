"""Sentence pairs of a Hub data set, or of a local folder in its layout, through ``datasets.load_dataset``.

The library is imported only here and only when asked: nothing else can touch the network or a cache.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_cli.data.pairs import ParallelText, Policy
from transformer_cli.data.records import record_text
from transformer_cli.errors import DataError


def read_hub(name: str, config: str | None, split: str, columns: tuple[str, str], policy: Policy) -> ParallelText:
    """Read two columns, or two languages of the ``translation`` column.

    Args:
        name: Hub id or local folder.
        config: configuration of the data set.
        split: as the library takes it, e.g. ``train[:10%]``.
        columns: source and target; names of columns or keys of ``translation``.
        policy: what becomes of broken text.

    Raises:
        DataError: the data set cannot be loaded, or a row has no such text.
    """
    pairs = ParallelText([], [])
    with _cache_for(name) as cache:
        table = _load(name, config, split, cache)
        kept = [column for column in table.column_names if column in (*columns, "translation")]
        if not kept:
            names = ", ".join(map(repr, table.column_names))
            raise DataError(f"has no columns {columns[0]!r} and {columns[1]!r}", where=name, got=f"columns {names}")
        for row, record in enumerate(table.select_columns(kept), start=1):
            texts = [record_text(record, column, f"{name}, {split}, row {row}", policy) for column in columns]
            pairs.src.append(texts[0])
            pairs.tgt.append(texts[1])
    return pairs


@contextmanager
def _cache_for(name: str) -> Iterator[str | None]:
    """Give a local folder a cache of its own: the library takes a file of equal size and time for unchanged."""
    if not Path(name).exists():
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def _load(name: str, config: str | None, split: str, cache: str | None) -> Any:
    import datasets  # heavy

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(name, config, split=split, cache_dir=cache)
    except Exception as error:  # the library has no common base class; whatever it says is about the user's data set
        raise DataError(
            "the data set cannot be loaded",
            where=f"{name}, split {split}",
            got=error,
            hint="check hub, config and split, and the network (HF_HUB_OFFLINE, HF_HOME)",
        ) from error
