"""Sentence pairs of local files one after another, in constant memory, as ``readers.py`` would read them whole.

Broken text is an error here, as in all training data. Not here: Hub data sets, which are read whole.
"""

from collections.abc import Iterator
from pathlib import Path

from transformer_cli.config import DataConfig, Source
from transformer_cli.data.lines import stream_lines
from transformer_cli.data.pairs import Strict
from transformer_cli.data.readers import files_of, pairs_of_files


def source_files(source: Source) -> list[Path]:
    """Return the files of a source, sides one after the other.

    Raises:
        DataError: there are none.
    """
    patterns = [source.tsv or source.jsonl] if source.kind != "text" else [source.src, source.tgt]
    return [file for pattern in patterns for file in files_of(pattern or [])]


def stream_pairs(source: Source, config: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield every pair of a source of text files, TSV or JSONL; see ``pairs_of_files``.

    Raises:
        DataError: a file is missing or unreadable, the sides do not fit together, or a line is not a pair.
    """
    return pairs_of_files(source, config, stream_lines, Strict())
