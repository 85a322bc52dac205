"""``tfm translate``: a filter. One line in, one line out, in order, whatever stands in the line."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformer_cli.commands.boundary import quiet_if_reader_left
from transformer_cli.commands.line_stream import input_lines, prompted_lines, windows
from transformer_cli.commands.notes import LineNotes, note_on_stderr
from transformer_cli.commands.output_file import output_file
from transformer_cli.commands.run_choice import chosen_run
from transformer_cli.decoding.ctranslate2_engine import differences
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Engine, Translation, Translator
from transformer_cli.errors import UserError

Write = Callable[[str], None]


@dataclass(frozen=True)
class TranslateRequest:
    """What the command line asked for; ``search`` overrides keys of the run's ``decode`` section."""

    texts: tuple[str, ...]
    run: Path | None
    input_path: str | None
    output_path: str
    search: dict[str, Any]
    n_best: int
    output_format: str  # text | tsv | jsonl | json (one document)
    device: str
    quiet: bool
    to: str | None = None  # language to translate into; None: the run's main one
    engine: Engine = "torch"


def run_translate(request: TranslateRequest) -> None:
    """Translate the texts, the file or stdin, and write the results in the order of the input.

    Raises:
        UserError: texts and a file are given together, an option does not fit, or there is no run.
    """
    _check(request)
    note = note_on_stderr(request.quiet)
    events = LineNotes()
    lines = windows(_source(request, events))
    with _sink(request.output_path) as write:  # first: a place that cannot be written is known before a model is loaded
        run = chosen_run(request.run, note)
        translator = Translator.from_run(run, device=request.device, to=request.to, engine=request.engine)
        settings = DecodeSettings.from_config(translator.config.decode).but(
            {**request.search, "n_best": request.n_best}
        )
        if request.engine == "ctranslate2" and (told := differences(settings)):
            note(told)
        found = (translation for window in lines for translation in translator.translate_window(window, settings))
        translations = _watched(found, events)
        _write_all(translations, request.output_format, settings, write)
    events.tell(note)


def _check(request: TranslateRequest) -> None:
    source, target = request.input_path, request.output_path
    if request.texts and source is not None:
        raise UserError("texts and --input cannot be given together", hint="put the texts into the file, or drop one")
    if source == "" or target == "":
        raise UserError("an empty file name was given", expected="a file, or - for the standard stream")
    if source not in (None, "-") and target != "-" and os.path.realpath(str(source)) == os.path.realpath(target):
        raise UserError("the output would replace the input", where=target, hint="choose another --output")


def _source(request: TranslateRequest, events: LineNotes) -> Iterable[str]:
    if request.texts:
        return [text.replace("\n", " ") for text in request.texts]
    if request.input_path is None and sys.stdin.isatty():
        return prompted_lines()
    return input_lines(
        request.input_path or "-", lambda line: events.add("held invalid UTF-8 or NUL, read as U+FFFD", line)
    )


def _watched(translations: Iterable[Translation], events: LineNotes) -> Iterator[Translation]:
    for number, translation in enumerate(translations, start=1):
        if translation.pieces > 1:
            events.add("longer than training allowed, translated in pieces", number)
        if translation.capped:
            events.add("cut at the length limit (decode.max_length_ratio)", number)
        yield translation


def _write_all(translations: Iterable[Translation], output_format: str, settings: DecodeSettings, write: Write) -> None:
    if output_format == "json":
        documents = [_document(t, i) for i, t in enumerate(translations)]
        write(json.dumps({"decode": asdict(settings), "translations": documents}, ensure_ascii=False, indent=1) + "\n")
        return
    render = {"text": _text, "tsv": _tsv, "jsonl": _jsonl}[output_format]
    for number, translation in enumerate(translations):
        write(render(translation, number, settings.n_best))


def _text(translation: Translation, number: int, n_best: int) -> str:
    """One line; with n-best, n lines in a row: always as many as asked for, so that lines stay countable."""
    texts = [hypothesis.text for hypothesis in translation.hypotheses]
    return "".join(f"{text}\n" for text in (texts + [""] * n_best)[:n_best])


def _tsv(translation: Translation, number: int, n_best: int) -> str:
    """One line per hypothesis: sentence number from 0, rank from 1, score, translation."""
    rows = enumerate(translation.hypotheses, start=1)
    return "".join(f"{number}\t{rank}\t{h.score:.4f}\t{_one_cell(h.text)}\n" for rank, h in rows)


def _jsonl(translation: Translation, number: int, n_best: int) -> str:
    return json.dumps(_document(translation, number), ensure_ascii=False) + "\n"


def _document(translation: Translation, number: int) -> dict[str, object]:
    best = translation.hypotheses[0]
    document: dict[str, object] = {"sentence_id": number, "source": translation.source, "translation": best.text}
    return document | {
        "score": best.score,
        "tokens": best.tokens,
        "translations": [asdict(hypothesis) for hypothesis in translation.hypotheses],
    }


def _one_cell(text: str) -> str:
    return text.replace("\t", " ")


@contextmanager
def _sink(path: str) -> Iterator[Write]:
    """Open stdout, flushed line by line, or a file that appears only when it is complete."""
    if path == "-":
        with quiet_if_reader_left():
            yield _write_stdout
        return
    with output_file(path) as file:
        yield lambda text: _none(file.write(text))


def _write_stdout(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _none(_: object) -> None:
    return None
