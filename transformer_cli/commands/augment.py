"""``tfm augment``: more training pairs, from text of one language (``--mono``) or from one's own pairs (``--pairs``).

The file is written in one pass over the input, whose length does not matter, and appears only when it is complete.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.files.line_stream import WINDOW, input_lines
from transformer_cli.commands.files.output_file import output_file
from transformer_cli.commands.shared.batch_choice import search_settings
from transformer_cli.commands.shared.notes import Note, note_on_stderr, written
from transformer_cli.commands.synthetic_pairs import TAG, Line, PairMaker
from transformer_cli.data.left_out import drop_table
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import DataError, UserError
from transformer_cli.wording import counted

_TOLD_EVERY = 10.0  # seconds between two notes of progress


@dataclass(frozen=True)
class AugmentRequest:
    """What the command line asked for; ``search`` overrides keys of the runs' ``decode`` section."""

    mono: str | None
    pairs: tuple[str, str] | None
    runs: tuple[Path, ...]
    output: str
    search: dict[str, Any]
    ensemble: bool = False  # the runs translate together; otherwise each proposes translations
    tag: bool | None = None  # None: yes for --mono
    choose: str = "score"  # score | reference
    max_ratio: float = 2.0
    to: str | None = None  # language to translate into; None: the runs' main one
    device: str = "auto"
    quiet: bool = False

    @property
    def inputs(self) -> list[str]:
        """The files that are read; the first is translated."""
        return list(self.pairs) if self.pairs is not None else [str(self.mono)]

    @property
    def groups(self) -> list[tuple[Path, ...]]:
        """The runs, those together that translate together."""
        return [self.runs] if self.ensemble else [(run,) for run in self.runs]

    @property
    def tags(self) -> bool:
        """Whether the synthetic sources bear the tag."""
        return self.mono is not None and self.tag is not False


@dataclass(frozen=True)
class AugmentReport:
    """What was made of what."""

    output: str
    kind: str  # back-translation | distillation
    runs: list[str]
    ensemble: bool  # they translated together
    to: str  # the language that they translated into
    languages: list[str]  # of the two columns
    decode: list[dict[str, Any]]  # of each run, or of the ensemble
    tag: str | None
    choose: str
    lines: int  # read
    pairs: int  # written
    in_pieces: int  # of them, from a line that was cut
    dropped: dict[str, int]
    seconds: float
    lines_per_second: float


def run_augment(request: AugmentRequest) -> AugmentReport:
    """Write the synthetic pairs as a TSV of two columns, source and target.

    Raises:
        UserError: the request means nothing, a file cannot be read or written, a run translates the wrong way, or no
            pair is left.
    """
    _check(request)
    note = note_on_stderr(request.quiet)
    began = time.monotonic()
    with output_file(request.output) as file:  # first: a place that cannot be written is known before a model is loaded
        translators = [Translator.from_runs(runs, request.device, request.to) for runs in request.groups]
        _check_direction(request, translators)
        maker = _maker(request, translators, note)
        total = _count(request.inputs)
        for src, tgt in _told(maker, _windows(request), total, note):
            file.write(f"{_one_cell(src)}\t{_one_cell(tgt)}\n")
        if not maker.written:
            raise DataError("no pair is left", got="\n" + drop_table(maker.read, maker.dropped))
    report = _report(request, maker, translators[0], time.monotonic() - began)
    _summarise(report, note)
    return report


def as_json(report: AugmentReport) -> str:
    """Return the report as one JSON document."""
    return json_text(asdict(report), indent=1)


def _check(request: AugmentRequest) -> None:
    if (request.mono is None) == (request.pairs is None):
        raise UserError("give exactly one of --mono FILE and --pairs SRC TGT")
    if request.ensemble and len(request.runs) == 1:
        raise UserError("--ensemble needs several runs", got="one --run", hint="give another --run, or leave it away")
    if request.output in ("", "-") or "" in request.inputs:
        raise UserError("a file name is missing", expected="--output FILE: it appears only when it is complete")
    if os.path.realpath(request.output) in map(os.path.realpath, request.inputs):
        raise UserError("the output would replace an input", where=request.output, hint="choose another --output")
    if request.pairs is None and request.choose == "reference":
        raise UserError("--mono has no references to choose by", hint="leave --choose away, or give --pairs")
    if request.pairs is not None and request.tag is not None:
        hint = "leave --tag and --no-tag away, or give --mono"
        raise UserError("--pairs has real sources, which bear no tag", hint=hint)
    if request.pairs == ("-", "-"):
        raise UserError("the standard input cannot be both sides")


def _check_direction(request: AugmentRequest, translators: list[Translator]) -> None:
    """Refuse what would fill a training set with noise: runs of other languages than the text to be translated."""
    directions = [(t.config.data.src_lang, t.tgt_lang) for t in translators]
    if len(set(directions)) > 1:
        raise UserError(
            "the runs translate in different directions",
            got=", ".join(f"{path} {src}-{tgt}" for path, (src, tgt) in zip(request.runs, directions, strict=True)),
        )
    languages = {language for t in translators for language in (t.config.data.src_lang, *t.config.data.targets)}
    for file, spoken in zip(request.inputs, directions[0], strict=False):
        ending = Path(file.removesuffix(".gz")).suffix[1:]
        if ending in languages and ending != spoken:
            raise UserError(
                f"a file of {spoken} is expected, and it is called .{ending}",
                where=file,
                got=f"a run that translates from {directions[0][0]} into {directions[0][1]}",
                hint="--mono takes target text and a run of the reverse direction, --pairs the source side first; "
                "--to chooses among the target languages of a run",
            )


def _maker(request: AugmentRequest, translators: list[Translator], note: Note) -> PairMaker:
    return PairMaker(
        translators,
        [
            search_settings(translator.config.decode, request.search, runs, request.device, note)
            for translator, runs in zip(translators, request.groups, strict=True)
        ],
        back=request.mono is not None,
        tag=request.tags,
        by_reference=request.choose == "reference",
        max_ratio=request.max_ratio,
    )


def _windows(request: AugmentRequest) -> Iterator[list[Line]]:
    """Yield full windows: unlike ``translate``, nobody waits for the answer to a single line."""
    lines = _aligned(*request.pairs) if request.pairs is not None else _alone(str(request.mono))
    while window := list(islice(lines, WINDOW)):
        yield window


def _alone(path: str) -> Iterator[Line]:
    return (Line(text, broken=broken) for text, broken in _marked(path))


def _aligned(src: str, tgt: str) -> Iterator[Line]:
    for number, (ours, theirs) in enumerate(zip_longest(_marked(src), _marked(tgt))):
        if ours is None or theirs is None:
            raise _other_counts(
                f"{src if ours is None else tgt} ends after {counted(number, 'line')}, the other goes on"
            )
        yield Line(ours[0], theirs[0], ours[1] or theirs[1])


def _marked(path: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether bytes of it had to be replaced: such text is no model of anything."""
    repaired: list[int] = []
    for line in input_lines(path, repaired.append):
        yield line, bool(repaired)
        repaired.clear()


def _count(paths: list[str]) -> int | None:
    """Count the lines beforehand, where the text can be read twice, so that files that do not fit cost no hours."""
    if not all(path != "-" and Path(path).is_file() for path in paths):
        return None
    counts = [sum(1 for _ in input_lines(path, lambda _: None)) for path in paths]
    if len(set(counts)) > 1:
        raise _other_counts(", ".join(f"{path}: {count}" for path, count in zip(paths, counts, strict=True)))
    return counts[0]


def _other_counts(got: str) -> DataError:
    hint = "line n of one file must be the translation of line n of the other"
    return DataError("the two files have different numbers of lines", got=got, hint=hint)


def _told(maker: PairMaker, windows: Iterable[list[Line]], total: int | None, note: Note) -> Iterator[tuple[str, str]]:
    """Yield the pairs of all windows, and tell from time to time how far it is."""
    began = told = time.monotonic()
    for window in windows:
        yield from maker.pairs(window)
        now = time.monotonic()
        if now - told >= _TOLD_EVERY:
            told = now
            speed = f"{maker.read / (now - began):,.0f} lines/s"
            read = counted(maker.read, "line") if total is None else f"{maker.read:,} of {counted(total, 'line')}"
            note(f"{read} read, {counted(maker.written, 'pair')} written, {speed}")


def _one_cell(text: str) -> str:
    return text.replace("\t", " ")


def _report(request: AugmentRequest, maker: PairMaker, translator: Translator, seconds: float) -> AugmentReport:
    languages = [translator.config.data.src_lang, translator.tgt_lang]
    return AugmentReport(
        output=request.output,
        kind="distillation" if request.mono is None else "back-translation",
        runs=[str(run) for run in request.runs],
        ensemble=request.ensemble,
        to=translator.tgt_lang,
        languages=languages if request.mono is None else languages[::-1],
        decode=[asdict(settings) for settings in maker.settings],
        tag=TAG if request.tags else None,
        choose=request.choose,
        lines=maker.read,
        pairs=maker.written,
        in_pieces=maker.in_pieces,
        dropped=dict(maker.dropped),
        seconds=round(seconds, 3),
        lines_per_second=round(maker.read / seconds, 2),
    )


def _summarise(report: AugmentReport, note: Note) -> None:
    note(drop_table(report.lines, report.dropped))
    pairs = f"{counted(report.pairs, 'pair')} {'-'.join(report.languages)}"
    if report.in_pieces:
        long = counted(report.in_pieces, "pair")
        note(f"{long} of a line longer than training allowed: translated in pieces, worth a look")
    note(written(report.output, f"{pairs}, {report.seconds:,.1f} s, {report.lines_per_second:,.0f} lines/s"))
    note(f"to train with them: data.train: {{tsv: [real.tsv, {report.output}]}}, and a data.dev of real pairs")
