"""One reader for each kind of source: text files, TSV, JSONL; Hub data sets are in ``hub.py``.

Readers never drop or change a pair: what does not fit is an error that names file and line. Not here: filtering and
splitting (``corpus.py``).
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from transformer_cli.config import DataConfig, Source
from transformer_cli.data.hub import read_hub
from transformer_cli.data.pairs import ParallelText, Policy
from transformer_cli.data.records import parse_record, record_text
from transformer_cli.errors import DataError
from transformer_cli.wording import counted

_HUB_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


def read_pairs(source: Source, config: DataConfig, split: str, policy: Policy) -> ParallelText:
    """Read every pair of a source.

    Args:
        source: where the pairs are.
        config: its language codes are the default fields of JSONL and Hub data sets.
        split: ``train``, ``dev`` or ``test``: the default split of a Hub data set.
        policy: what becomes of broken text.

    Raises:
        DataError: a file is missing or unreadable, the sides do not fit together, or a line is not a pair.
    """
    if source.hub is not None:
        src = config.src_lang if source.src_column is None else str(source.src_column)
        tgt = config.tgt_lang if source.tgt_column is None else str(source.tgt_column)
        return read_hub(source.hub, source.config, source.split or _HUB_SPLITS[split], (src, tgt), policy)
    return _whole(pairs_of_files(source, config, policy))


def read_tsv(files: Sequence[Path], columns: tuple[int, int], policy: Policy) -> ParallelText:
    """Read two columns, counted from 0, of tab-separated files. A quote is text like any other character.

    Raises:
        DataError: a file cannot be read, or a line has too few columns, or not as many as the first line of its file.
    """
    return _whole(pair for file in files for pair in _tsv_pairs(file, columns, policy))


def pairs_of_files(source: Source, config: DataConfig, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the pairs of text files, TSV or JSON lines, one after another, in constant memory.

    Args:
        source: where they are; no Hub data set.
        config: its language codes are the default fields of JSON lines.
        policy: what becomes of broken text.

    Raises:
        DataError: a file is missing or unreadable, the sides do not fit together, or a line is not a pair.
    """
    if source.tsv is not None:
        columns = int(source.src_column or 0), 1 if source.tgt_column is None else int(source.tgt_column)
        for file in files_of(source.tsv):
            yield from _tsv_pairs(file, columns, policy)
    elif source.jsonl is not None:
        fields = source.src_field or config.src_lang, source.tgt_field or config.tgt_lang
        for file in files_of(source.jsonl):
            yield from _json_pairs(file, fields, policy)
    else:
        yield from _text_pairs(files_of(source.src or []), files_of(source.tgt or []), policy)


def _whole(pairs: Iterable[tuple[str, str]]) -> ParallelText:
    whole = ParallelText([], [])
    for src, tgt in pairs:
        whole.src.append(src)
        whole.tgt.append(tgt)
    return whole


def _text_pairs(src_files: Sequence[Path], tgt_files: Sequence[Path], policy: Policy) -> Iterator[tuple[str, str]]:
    if len(src_files) != len(tgt_files):
        got = " and ".join(f"{len(files)} ({', '.join(map(str, files))})" for files in (src_files, tgt_files))
        raise DataError("source and target have different numbers of files", got=got)
    for src_file, tgt_file in zip(src_files, tgt_files, strict=True):
        both = zip_longest(policy.lines(src_file), policy.lines(tgt_file))
        for number, (src, tgt) in enumerate(both):
            if src is None or tgt is None:
                more = number + 1 + sum(1 for _ in both)
                counts = (number, more) if src is None else (more, number)
                told = (f"{file}: {counted(n, 'line')}" for file, n in zip((src_file, tgt_file), counts, strict=True))
                raise DataError(
                    "source and target have different numbers of lines",
                    got=", ".join(told),
                    expected="line i of one file translates line i of the other",
                )
            yield src, tgt


def _tsv_pairs(file: Path, columns: tuple[int, int], policy: Policy) -> Iterator[tuple[str, str]]:
    needed, width = max(columns) + 1, 0
    for number, line in enumerate(policy.lines(file), start=1):
        row = line.split("\t")
        width = width or len(row)
        if len(row) < needed or len(row) != width:
            raise DataError(
                "has the wrong number of columns",
                where=f"{file}:{number}",
                got=counted(len(row), "column"),
                expected=f"at least {needed}" if width < needed else f"{width}, as in line 1",
            )
        yield row[columns[0]], row[columns[1]]


def _json_pairs(file: Path, fields: tuple[str, str], policy: Policy) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(policy.lines(file), start=1):
        where = f"{file}:{number}"
        record = parse_record(line, where)
        yield record_text(record, fields[0], where, policy), record_text(record, fields[1], where, policy)


def source_files(source: Source) -> list[Path]:
    """Return the files of a source that is no Hub data set, sides one after the other.

    Raises:
        DataError: there are none.
    """
    patterns = [source.tsv or source.jsonl] if source.kind != "text" else [source.src, source.tgt]
    return [file for pattern in patterns for file in files_of(pattern or [])]


def files_of(patterns: str | list[str]) -> list[Path]:
    """Expand globs, sorted within each; a path that exists is taken as it is, whatever characters it has.

    Raises:
        DataError: a pattern is empty, or matches nothing.
    """
    paths: list[Path] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if not pattern:  # of which Path would make the folder that the user is in
            raise DataError("the name of a file is empty")
        path = Path(os.path.expanduser(pattern))
        matches = [path] if path.exists() else [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        if not matches:
            raise DataError("no such file", where=pattern, hint=f"relative paths start at {Path.cwd()}")
        paths += matches
    return paths
