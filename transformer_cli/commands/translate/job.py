"""``tfm translate``: a filter. One line in, one line out, in order, whatever stands in the line."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from transformer_cli.commands.files.confidence_file import fitting_confidence, with_confidence
from transformer_cli.commands.files.input_lines import InputLine, json_lines, plain_lines
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.files.line_stream import WINDOW, input_lines, prompted_lines, windows
from transformer_cli.commands.files.output_file import output_file
from transformer_cli.commands.files.part_file import Job, part_file
from transformer_cli.commands.shared.batch_choice import search_settings
from transformer_cli.commands.shared.boundary import quiet_if_reader_left
from transformer_cli.commands.shared.engine_choice import with_chosen_engine
from transformer_cli.commands.shared.notes import LineNotes, Note, note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.commands.translate.formats import FIELDS, RENDER, document
from transformer_cli.commands.translate.phrase_lists import read_forbidden, read_glossary
from transformer_cli.commands.translate.request import TranslateRequest
from transformer_cli.commands.translate.unfinished import job_of
from transformer_cli.decoding.confidence import Confidence
from transformer_cli.decoding.ctranslate2_engine import differences
from transformer_cli.decoding.phrases import Phrases
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.decoding.wishes import Wishes
from transformer_cli.errors import DataError, UserError
from transformer_cli.wording import counted

if TYPE_CHECKING:
    from transformer_cli.decoding.sharing import SharedTranslator

__all__ = ["TranslateRequest", "run_translate"]


def run_translate(request: TranslateRequest) -> None:
    """Translate the texts, the file or stdin, and write the results in the order of the input.

    Raises:
        UserError: texts and a file are given together, an option does not fit, or there is no run.
    """
    request.check()
    note = note_on_stderr(request.quiet)
    events = LineNotes()
    try:
        # First of all the sink: a place that cannot be written is known before a model is loaded.
        with _sink(request, note) as sink, ExitStack() as stack:
            runs = request.runs or (chosen_run(None, note),)
            request = with_chosen_engine(request, runs, note)
            translator = _translator(request, runs)
            shared = stack.enter_context(closing(_shared(request, runs, translator)))
            settings = _settings(request, runs, translator, note)
            if request.engine == "ctranslate2" and (told := differences(settings)):
                note(told)
            confidence = _confidence(request, runs, translator, settings, note)
            phrases = _phrases(request, translator)
            lines = _prefixed(_source(request, events), request, translator.wishes, phrases)
            job = partial(job_of, request, runs, translator, settings, phrases, confidence)
            done = sink.begin(job, (line.raw for line in lines))
            batches = ([line] for line in lines) if request.prompts else windows(lines)
            del translator, job  # its model is of no use any more once workers are called

            def translate(batch: list[InputLine], first: int) -> list[Translation]:
                texts, prefixes = [line.text for line in batch], [line.prefix for line in batch]
                return shared.translate_window(texts, settings, first, prefixes, phrases)

            found = _answers(translate, sink, batches, done)
            answers = with_confidence(found, confidence, lambda line: line.prefix is None)
            done += _write_all(request, settings, sink, _watched(answers, done, settings, phrases, events))
        if request.output_path != "-":
            note(written(request.output_path, counted(done, "line")))
    finally:
        events.tell(note)


def _translator(request: TranslateRequest, runs: Sequence[Path]) -> Translator:
    if len(runs) > 1 or request.workers is not None:
        return Translator.from_runs(runs, request.device, request.to, request.workers or 1)
    assert request.engine != "auto", "it has been chosen"
    return Translator.from_run(runs[0], device=request.device, to=request.to, engine=request.engine)


def _settings(request: TranslateRequest, runs: Sequence[Path], translator: Translator, note: Note) -> DecodeSettings:
    recipe, processes = translator.config.decode, request.workers or 1
    return search_settings(recipe, request.overrides, runs, request.device, note, processes=processes)


def _shared(request: TranslateRequest, runs: Sequence[Path], translator: Translator) -> "SharedTranslator | Translator":
    """Return the translator, or one that calls for more processes when there is much to do."""
    if request.engine == "ctranslate2" or request.workers is not None:
        return translator
    from transformer_cli.decoding.sharing import SharedTranslator
    from transformer_cli.runtime import Runtime, available_cores

    def start(n_workers: int) -> Translator:
        return Translator.from_runs(runs, request.device, request.to, n_workers)

    on_cpu = Runtime.resolve(request.device).device.type == "cpu"
    return SharedTranslator(translator, start, available_cores() if on_cpu else 1, WINDOW)


def _phrases(request: TranslateRequest, translator: Translator) -> Phrases:
    wishes = translator.wishes
    free = Phrases(None, None if request.forbid is None else wishes.forbid(read_forbidden(request.forbid)))
    if request.glossary is None:
        return free
    terms = read_glossary(request.glossary, lambda translation: wishes.check_translation(translation, free))
    return replace(free, glossary=wishes.glossary(terms))


def _source(request: TranslateRequest, events: LineNotes) -> Iterator[InputLine]:
    def repaired(line: int) -> None:
        events.add("held invalid UTF-8 or NUL, read as U+FFFD", line)

    if request.texts:
        return plain_lines(text.replace("\n", " ") for text in request.texts)
    if request.prompts:
        return plain_lines(prompted_lines())
    path = request.input_path or "-"
    if not request.reads_json:
        return plain_lines(input_lines(path, repaired))
    reserved = FIELDS if request.writes_json else ()
    place = "the standard input" if path == "-" else path
    return json_lines(input_lines(path, repaired), request.field, place, reserved, repaired)


def _confidence(
    request: TranslateRequest, runs: Sequence[Path], translator: Translator, settings: DecodeSettings, note: Note
) -> Confidence | None:
    """Return the confidence of a run that translates alone, if it has one that holds here and a place to be told."""
    if not request.writes_json or len(runs) > 1 or request.prefix is not None:
        return None
    if request.glossary is not None or request.forbid is not None:
        return None  # it was fitted to translations that were free
    assert request.engine != "auto", "it has been chosen"
    return fitting_confidence(runs[0], translator, settings, note, request.engine)


def _prefixed(
    lines: Iterable[InputLine], request: TranslateRequest, wishes: Wishes, phrases: Phrases
) -> Iterator[InputLine]:
    """Give each line the prefix that all lines have, unless it brings its own, which is checked with its place."""
    wishes.prefix_ids(request.prefix, phrases)  # one mistake, told before anything is read
    for number, line in enumerate(lines, start=1):
        if line.prefix is None:
            yield replace(line, prefix=request.prefix)
            continue
        try:
            wishes.prefix_ids(line.prefix, phrases)
        except UserError as error:
            place = "the standard input" if request.input_path in (None, "-") else request.input_path
            raise DataError.at(f"{place}:{number}", error) from None
        yield line


Answer = tuple[InputLine, Translation]


def _answers(
    translate: Callable[[list[InputLine], int], list[Translation]],
    sink: "Sink",
    batches: Iterable[list[InputLine]],
    first: int,
) -> Iterator[Answer]:
    for lines in batches:
        translations = translate(lines, first)
        first += len(lines)
        yield from zip(lines, translations, strict=True)
        sink.mark([line.raw for line in lines])  # all are written by now: the next answer is asked for


def _watched(
    answers: Iterable[Answer], done: int, settings: DecodeSettings, phrases: Phrases, events: LineNotes
) -> Iterator[tuple[int, InputLine, Translation]]:
    """Yield the answers with the number of their line, from 0, and note what its user should know."""
    for number, (line, translation) in enumerate(answers, start=done):
        if translation.pieces > 1:
            events.add("longer than training allowed, translated in pieces", number + 1)
        if translation.spelled:
            events.add("with characters so rare in training that they have no piece, read byte by byte", number + 1)
        if translation.failed:
            events.add("could not be translated: no word had a probability, or none was allowed", number + 1)
        if translation.capped:
            events.add("cut at the length limit (decode.max_length_ratio)", number + 1)
        if len(translation.hypotheses[0].tokens) < settings.min_length * translation.pieces and not translation.failed:
            events.add("ended by the length limit before the least length (--min-length)", number + 1)
        if phrases.missing(line.text, translation.text):
            events.add("without the translation of a term (--glossary)", number + 1)
        if phrases.said(translation.text):
            events.add("held a forbidden phrase, where parts of a translation meet", number + 1)
        yield number, line, translation


def _write_all(
    request: TranslateRequest,
    settings: DecodeSettings,
    sink: "Sink",
    answers: Iterable[tuple[int, InputLine, Translation]],
) -> int:
    """Write them; return how many."""
    if request.output_format == "json":
        documents = [document(translation, number, line.fields) for number, line, translation in answers]
        whole = {"decode": asdict(settings), "translations": documents}
        sink.write(json_text(whole, indent=1) + "\n")
        return len(documents)
    render, count = RENDER[request.output_format], 0
    for number, line, translation in answers:
        sink.write(render(translation, number, settings.n_best, line.fields))
        count += 1
    return count


class Sink(Protocol):
    """Where the results go."""

    def begin(self, job: Callable[[], Job], lines: Iterator[str]) -> int:
        """Return how many lines of the input an interrupted job has answered; they are taken from the input."""

    def write(self, text: str) -> None:
        """Add results."""

    def mark(self, lines: Sequence[str]) -> None:
        """Take note that these lines of the input are answered."""


class _Stream:
    """A sink that keeps no record."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin(self, job: Callable[[], Job], lines: Iterator[str]) -> int:
        return 0

    def write(self, text: str) -> None:
        self._write(text)

    def mark(self, lines: Sequence[str]) -> None:
        return None


@contextmanager
def _sink(request: TranslateRequest, note: Note) -> Iterator[Sink]:
    """Open stdout, flushed line by line, or a file that appears only when it is complete."""
    if request.output_path == "-":
        with quiet_if_reader_left():
            yield _Stream(_write_stdout)
    elif request.has_part:
        with part_file(request.output_path, note, resume=request.resume, overwrite=request.overwrite) as part:
            yield part
    else:
        with output_file(request.output_path) as file:
            yield _Stream(file.write)


def _write_stdout(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
