"""One reader for each kind of source: text files, TSV, JSONL; Hub data sets are in ``hub.py``.

Readers never drop or change a pair: what does not fit is an error that names file and line. Not here: filtering and
splitting (``corpus.py``).
"""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

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
    if source.tsv is not None:
        columns = int(source.src_column or 0), 1 if source.tgt_column is None else int(source.tgt_column)
        return read_tsv(files_of(source.tsv), columns, policy)
    if source.jsonl is not None:
        fields = source.src_field or config.src_lang, source.tgt_field or config.tgt_lang
        return _read_jsonl(files_of(source.jsonl), fields, policy)
    if source.hub is not None:
        src = config.src_lang if source.src_column is None else str(source.src_column)
        tgt = config.tgt_lang if source.tgt_column is None else str(source.tgt_column)
        return read_hub(source.hub, source.config, source.split or _HUB_SPLITS[split], (src, tgt), policy)
    return _read_text(files_of(source.src or []), files_of(source.tgt or []), policy)


def read_tsv(files: Sequence[Path], columns: tuple[int, int], policy: Policy) -> ParallelText:
    """Read two columns, counted from 0, of tab-separated files. A quote is text like any other character.

    Raises:
        DataError: a line has too few columns, or not as many as the first line of its file.
    """
    needed = max(columns) + 1
    pairs = ParallelText([], [])
    for file in files:
        rows = [line.split("\t") for line in policy.lines(file)]
        width = len(rows[0]) if rows else needed
        if width < needed or any(len(row) != width for row in rows):
            _wrong_columns(file, rows, needed)
        pairs.src.extend([row[columns[0]] for row in rows])
        pairs.tgt.extend([row[columns[1]] for row in rows])
    return pairs


def _wrong_columns(file: Path, rows: list[list[str]], needed: int) -> NoReturn:
    width = len(rows[0])
    line = 1 if width < needed else next(i for i, row in enumerate(rows, start=1) if len(row) != width)
    raise DataError(
        "has the wrong number of columns",
        where=f"{file}:{line}",
        got=counted(len(rows[line - 1]), "column"),
        expected=f"at least {needed}" if width < needed else f"{width}, as in line 1",
    )


def _read_text(src_files: Sequence[Path], tgt_files: Sequence[Path], policy: Policy) -> ParallelText:
    refuse_other_counts(src_files, tgt_files)
    pairs = ParallelText([], [])
    for src_file, tgt_file in zip(src_files, tgt_files, strict=True):
        src_lines, tgt_lines = policy.lines(src_file), policy.lines(tgt_file)
        if len(src_lines) != len(tgt_lines):
            raise DataError(
                "source and target have different numbers of lines",
                got=f"{src_file}: {counted(len(src_lines), 'line')}, {tgt_file}: {counted(len(tgt_lines), 'line')}",
                expected="line i of one file translates line i of the other",
            )
        pairs.src.extend(src_lines)
        pairs.tgt.extend(tgt_lines)
    return pairs


def refuse_other_counts(src_files: Sequence[Path], tgt_files: Sequence[Path]) -> None:
    """Check that both sides have as many files.

    Raises:
        DataError: they have not.
    """
    if len(src_files) != len(tgt_files):
        got = " and ".join(f"{len(files)} ({', '.join(map(str, files))})" for files in (src_files, tgt_files))
        raise DataError("source and target have different numbers of files", got=got)


def _read_jsonl(files: Sequence[Path], fields: tuple[str, str], policy: Policy) -> ParallelText:
    pairs = ParallelText([], [])
    for file in files:
        for number, line in enumerate(policy.lines(file), start=1):
            where = f"{file}:{number}"
            record = parse_record(line, where)
            src, tgt = (record_text(record, field, where, policy) for field in fields)
            pairs.src.append(src)
            pairs.tgt.append(tgt)
    return pairs


def files_of(patterns: str | list[str]) -> list[Path]:
    """Expand globs, sorted within each; a path that exists is taken as it is, whatever characters it has.

    Raises:
        DataError: a pattern matches nothing.
    """
    paths: list[Path] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        path = Path(os.path.expanduser(pattern))
        matches = [path] if path.exists() else [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        if not matches:
            raise DataError("no such file", where=pattern, hint=f"relative paths start at {Path.cwd()}")
        paths += matches
    return paths
