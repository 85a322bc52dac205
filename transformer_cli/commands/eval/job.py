"""``tfm eval``: translate a test set, or read hypotheses, and score them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.eval.confidence import Translated, calibrated
from transformer_cli.commands.eval.report import Details, EvalReport, Other, as_json, print_report, render
from transformer_cli.commands.eval.request import EvalRequest
from transformer_cli.commands.eval.text import Text, read_file, read_text, target_language, warn_of_tokenizer
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.files.output_file import output_file
from transformer_cli.commands.shared.batch_choice import search_settings
from transformer_cli.commands.shared.notes import LineNotes, written
from transformer_cli.commands.shared.run_choice import chosen_run, folder_of
from transformer_cli.config import Config
from transformer_cli.data.corpus import load_split
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError
from transformer_cli.evaluation import (
    Calibration,
    Score,
    by_length,
    check_counts,
    check_metrics,
    compare,
    nearest_neighbour,
    repeated_share,
    score,
    worst_lines,
)
from transformer_cli.wording import counted

__all__ = ["EvalReport", "EvalRequest", "as_json", "print_report", "render", "run_eval"]

Note = Callable[[str], None]


def run_eval(request: EvalRequest, note: Note = lambda text: None) -> EvalReport:
    """Score a run on a split or on files, or score a file of hypotheses.

    Args:
        request: what to score, and how.
        note: told which run is used, what is being done, and warnings.

    Raises:
        UserError: the options contradict each other, a metric is unknown, or there is no run.
        DataError: a file cannot be read, a split does not exist, or the numbers of lines differ.
    """
    request.check()
    run = _run(request, note)
    folder = RunFolder.open(folder_of(run)) if run else None
    config = folder.config if folder else None
    tgt_lang = target_language(request, config)
    check_metrics(request.metrics, tgt_lang=tgt_lang, tokenize=request.tokenize)
    text = read_text(request, config, note)
    warn_of_tokenizer(text, tgt_lang, request.tokenize, note)
    identity = folder.identity() if folder and request.hyp is None else {}
    task = _Task(request, text, config, tgt_lang, identity, note)
    report = task.report(task.hypotheses(run))
    if run and request.hyp is None:
        _store(run, report, note)
    return report


@dataclass(frozen=True)
class _Hypotheses:
    lines: list[str]
    system: str
    decoding: str | None = None
    seconds: float | None = None
    translated: Translated | None = None


@dataclass(frozen=True)
class _Task:
    """A request whose text is known."""

    request: EvalRequest
    text: Text
    config: Config | None
    tgt_lang: str
    identity: dict[str, str | None]
    note: Note

    def hypotheses(self, run: Path | None) -> _Hypotheses:
        """Read them from the file that was given, or translate."""
        if self.request.hyp is not None:
            return self._read(self.request.hyp)
        assert run is not None, "a request without hypotheses needs a run"
        found = self._translate(run)
        if self.request.output is not None:
            with output_file(self.request.output) as file:
                file.writelines(f"{line}\n" for line in found.lines)
            self.note(written(self.request.output, counted(len(found.lines), "translation")))
        return found

    def report(self, mine: _Hypotheses) -> EvalReport:
        return EvalReport(
            text=self.text.name,
            lines=len(mine.lines),
            system=mine.system,
            identity=self.identity,
            to=self.request.to,
            decoding=mine.decoding,
            seconds=mine.seconds,
            empty_hypotheses=sum(not line.strip() for line in mine.lines),
            scores=self._score(mine.lines),
            baseline=self._baseline() if self.request.baseline else [],
            other=self._other(mine.lines, self.request.compare) if self.request.compare else None,
            details=self._details(mine.lines) if self.request.details else None,
            confidence=self._confidence(mine.translated) if mine.translated else None,
        )

    def _score(self, hypotheses: Sequence[str]) -> list[Score]:
        return score(
            hypotheses,
            self.text.refs,
            tgt_lang=self.tgt_lang,
            metrics=self.request.metrics,
            lowercase=self.request.lowercase,
            tokenize=self.request.tokenize,
            n_bootstrap=self.request.n_bootstrap,
        )

    def _confidence(self, found: Translated) -> Calibration | None:
        return calibrated(found, self.text.refs, self.text.name, self.note, fit=self.request.calibrate)

    def _baseline(self) -> list[Score]:
        config, sources = self.config, self.text.src
        assert config is not None, "a request for the baseline needs a run and sources"
        assert sources is not None, "a request for the baseline needs a run and sources"
        train = load_split(config.data, "train", config.train.seed, self.note, self.request.to)
        return self._score(nearest_neighbour(train, sources, src_lang=config.data.src_lang))

    def _other(self, mine: Sequence[str], path: Path) -> Other:
        other = self._translate(path) if path.is_dir() else self._read(path)
        found = compare(
            mine,
            other.lines,
            self.text.refs,
            tgt_lang=self.tgt_lang,
            metrics=self.request.metrics,
            lowercase=self.request.lowercase,
            tokenize=self.request.tokenize,
            n_bootstrap=self.request.n_bootstrap or 1000,  # the test is made of resamples; 0 speaks of the interval
        )
        return Other(other.system, other.decoding, found)

    def _details(self, hypotheses: Sequence[str]) -> Details:
        text, request = self.text, self.request
        measured = text.refs[0] if text.src is None else text.src
        lang = self.tgt_lang if text.src is None or self.config is None else self.config.data.src_lang
        buckets = by_length(
            hypotheses,
            text.refs,
            measured,
            lang=lang,
            tgt_lang=self.tgt_lang,
            lowercase=request.lowercase,
            tokenize=request.tokenize,
        )
        worst = worst_lines(hypotheses, text.refs, text.src, lowercase=request.lowercase)
        return Details("reference" if text.src is None else "source", buckets, worst)

    def _read(self, path: Path) -> _Hypotheses:
        lines = read_file(path, self.note)
        hint = None if self.request.refs else f"--ref FILE takes the place of {self.text.name}, the run's references"
        check_counts({**self.text.counts, str(path): len(lines)}, hint)
        return _Hypotheses(lines, str(path))

    def _translate(self, run: Path) -> _Hypotheses:
        sources, request = self.text.src, self.request
        assert sources is not None, "a request to translate has sources"
        translator = Translator.from_run(run, device=request.device, to=request.to)
        settings = search_settings(translator.config.decode, request.search, [run], request.device, self.note)
        self.note(f"translating {counted(len(sources), 'line')} with {run} ({settings.describe()})")
        start, events, found = time.perf_counter(), LineNotes(), []
        for number, translation in enumerate(translator.stream(sources, settings), start=1):
            found.append(translation)
            if translation.pieces > 1:
                events.add("longer than training allowed, translated in pieces", number)
            if translation.capped:
                events.add("cut at the length limit (decode.max_length_ratio)", number)
        events.tell(self.note)
        seconds, lines = time.perf_counter() - start, [translation.text for translation in found]
        if (share := repeated_share(lines)) > 0.5:
            self.note(
                f"warning: {share:.0%} of the translations repeat one sentence: the model ignores its source so far"
            )
        translated = Translated(run, translator, settings, found)
        return _Hypotheses(lines, str(run), settings.describe(), seconds, translated)


def _run(request: EvalRequest, note: Note) -> Path | None:
    if request.run is None and not request.needs_run:
        return None
    try:
        return chosen_run(request.run, note)
    except RunError as error:
        if request.hyp is None or request.refs:
            raise
        hint = "give the references with --ref FILE, or with --run DIR the run whose test set was translated"
        raise RunError(
            "--hyp alone has nothing to be compared with", where=error.where, got=error.what, hint=hint
        ) from None


def _store(run: Path, report: EvalReport, note: Note) -> None:
    """Append the scores to the run, a JSON line each; a folder that cannot be written is no reason to fail."""
    common = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": "model.safetensors" if folder_of(run) == run else f"checkpoints/{run.resolve().name}",
        "text": report.text,
        **report.identity,
        "to": report.to,
        "lines": report.lines,
        "empty_hypotheses": report.empty_hypotheses,
        "decoding": report.decoding,
    }
    records = [
        {"metric": found.name, "score": found.value, "interval": found.interval, "signature": found.signature}
        for found in report.scores
    ]
    try:
        with (folder_of(run) / "scores.jsonl").open("a", encoding="utf-8", newline="\n") as file:
            file.write("".join(f"{json_text(common | record)}\n" for record in records))
    except OSError as error:
        note(f"the scores are not stored in the run: {error.strerror}")
