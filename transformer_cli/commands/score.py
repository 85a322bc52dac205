"""``tfm score``: how probable given translations are to a model, one line of result for each pair of lines."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.files.line_stream import WINDOW, input_lines
from transformer_cli.commands.files.output_file import output_file, refuse_replacing
from transformer_cli.commands.shared.batch_choice import search_settings
from transformer_cli.commands.shared.boundary import quiet_if_reader_left
from transformer_cli.commands.shared.notes import LineNotes, note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.decoding.scorer import ScoredPair, Scorer
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import DataError, UserError
from transformer_cli.wording import counted


@dataclass(frozen=True)
class ScoreRequest:
    """What the command line asked for; ``search`` overrides keys of the run's ``decode`` section."""

    src: str
    tgt: str
    runs: tuple[Path, ...]
    output: str
    output_format: str  # text | jsonl
    search: Mapping[str, Any]
    to: str | None
    device: str
    quiet: bool


def run_score(request: ScoreRequest) -> None:
    """Score the pairs of two files, and write the results in their order.

    Raises:
        UserError: there is no run, or a pair is too long for it.
        DataError: a file cannot be read, or they have different numbers of lines.
    """
    if request.src == request.tgt == "-":
        raise UserError("the standard input cannot be both sides")
    if "" in (request.src, request.tgt, request.output):
        raise UserError("an empty file name was given", expected="a file, or - for the standard stream")
    refuse_replacing(request.output, (request.src, request.tgt))
    note, events, count = note_on_stderr(request.quiet), LineNotes(), 0
    try:
        with _sink(request.output) as write:
            runs = request.runs or (chosen_run(None, note),)
            scorer = Scorer.from_runs(runs, request.device, request.to)
            wanted = {**request.search, "beam_size": 1}  # one translation of each line is read
            settings = search_settings(scorer.config.decode, wanted, runs, request.device, note)
            for scored in _scored(request, scorer, settings, events):
                write(_text(scored) if request.output_format == "text" else _jsonl(scored, count))
                count += 1
        if request.output != "-":
            note(written(request.output, counted(count, "score")))
    finally:
        events.tell(note)


def _scored(request: ScoreRequest, scorer: Scorer, settings: DecodeSettings, events: LineNotes) -> Iterator[ScoredPair]:
    pairs = _checked(_aligned(request.src, request.tgt, events), request, scorer)
    while window := list(islice(pairs, WINDOW)):
        yield from scorer.score([src for src, _ in window], [tgt for _, tgt in window], settings)


def _checked(pairs: Iterator[tuple[str, str]], request: ScoreRequest, scorer: Scorer) -> Iterator[tuple[str, str]]:
    for number, pair in enumerate(pairs, start=1):
        try:
            scorer.check(*pair)
        except UserError as error:
            where = f"{request.src}, {request.tgt}: line {number}"
            raise DataError.at(where, error) from None
        yield pair


def _aligned(src: str, tgt: str, events: LineNotes) -> Iterator[tuple[str, str]]:
    def repaired(line: int) -> None:
        events.add("held invalid UTF-8 or NUL, read as U+FFFD", line)

    sides = input_lines(src, repaired), input_lines(tgt, repaired)
    for number, (ours, theirs) in enumerate(zip_longest(*sides)):
        if ours is None or theirs is None:
            raise DataError(
                "the two files have different numbers of lines",
                got=f"{src if ours is None else tgt} ends after {counted(number, 'line')}, the other goes on",
                hint="line n of one file must be the translation of line n of the other",
            )
        yield ours, theirs


def _text(scored: ScoredPair) -> str:
    return f"{scored.score:.6f}\n"


def _jsonl(scored: ScoredPair, number: int) -> str:
    """The names are those of ``tfm translate --format jsonl``; a blank pair has no end."""
    document = {
        "sentence_id": number,
        "source": scored.source,
        "translation": scored.target,
        "score": scored.score,
        "tokens": scored.tokens,
        "token_logprobs": scored.log_probs[:-1],
        "end_logprobs": scored.log_probs[-1:],
    }
    return json_text(document) + "\n"


@contextmanager
def _sink(path: str) -> Iterator[Callable[[str], object]]:
    """Open stdout, or a file that appears only when it is complete."""
    if path == "-":
        with quiet_if_reader_left():
            yield lambda text: sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
    else:
        with output_file(path) as file:
            yield file.write
