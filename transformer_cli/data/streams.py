"""Sentence pairs of local files one after another, in constant memory, as ``readers.py`` would read them whole.

Broken text is an error here, as in all training data. Not here: Hub data sets, which are read whole.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from transformer_cli.config import DataConfig, Source
from transformer_cli.data.lines import iter_lines, open_input
from transformer_cli.data.pairs import Strict
from transformer_cli.data.readers import files_of, refuse_other_counts
from transformer_cli.data.records import parse_record, record_text
from transformer_cli.errors import DataError
from transformer_cli.wording import counted


def source_files(source: Source) -> list[Path]:
    """Return the files of a source, sides one after the other.

    Raises:
        DataError: there are none.
    """
    patterns = [source.tsv or source.jsonl] if source.kind != "text" else [source.src, source.tgt]
    return [file for pattern in patterns for file in files_of(pattern or [])]


def stream_pairs(source: Source, config: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield every pair of a source of text files, TSV or JSONL.

    Args:
        source: where the pairs are.
        config: its language codes are the default fields of JSONL.

    Raises:
        DataError: a file is missing or unreadable, the sides do not fit together, or a line is not a pair.
    """
    if source.tsv is not None:
        columns = int(source.src_column or 0), 1 if source.tgt_column is None else int(source.tgt_column)
        for file in files_of(source.tsv):
            yield from _tsv_pairs(file, columns)
    elif source.jsonl is not None:
        fields = source.src_field or config.src_lang, source.tgt_field or config.tgt_lang
        for file in files_of(source.jsonl):
            yield from _jsonl_pairs(file, fields)
    else:
        yield from _text_pairs(files_of(source.src or []), files_of(source.tgt or []))


def _lines(file: Path) -> Iterator[str]:
    def refuse(number: int) -> None:
        hint = "mend the line, or convert the file: iconv -f LATIN1 -t UTF-8 (or -f UTF-16)"
        raise DataError("holds invalid UTF-8 or NUL", where=f"{file}:{number}", expected="UTF-8 text", hint=hint)

    with open_input(str(file.absolute())) as stream:
        yield from iter_lines(stream, refuse)


def _text_pairs(src_files: Sequence[Path], tgt_files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    refuse_other_counts(src_files, tgt_files)
    for src_file, tgt_file in zip(src_files, tgt_files, strict=True):
        pairs = zip_longest(_lines(src_file), _lines(tgt_file))
        for number, (src, tgt) in enumerate(pairs):
            if src is None or tgt is None:
                longer, shorter = (tgt_file, src_file) if src is None else (src_file, tgt_file)
                more = number + 1 + sum(1 for _ in pairs)
                raise DataError(
                    "source and target have different numbers of lines",
                    got=f"{shorter}: {counted(number, 'line')}, {longer}: {counted(more, 'line')}",
                    expected="line i of one file translates line i of the other",
                )
            yield src, tgt


def _tsv_pairs(file: Path, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    needed, width = max(columns) + 1, 0
    for number, line in enumerate(_lines(file), start=1):
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


def _jsonl_pairs(file: Path, fields: tuple[str, str]) -> Iterator[tuple[str, str]]:
    policy = Strict()
    for number, line in enumerate(_lines(file), start=1):
        where = f"{file}:{number}"
        record = parse_record(line, where)
        yield record_text(record, fields[0], where, policy), record_text(record, fields[1], where, policy)
