"""``tfm bench --decode``: how fast a run translates, alone or beside CTranslate2 with the same weights."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transformer_cli.benchmark.decoding import Measured, identical, measure, ratio
from transformer_cli.benchmark.early_end import Cause, finished_kept
from transformer_cli.checkpoint import load_model
from transformer_cli.commands.bench.decoding_sides import Side, Tuning, best_tuning, first_tuning, n_tried
from transformer_cli.commands.eval.text import read_file
from transformer_cli.commands.export import positions_of
from transformer_cli.config import Config
from transformer_cli.data.corpus import available_splits, load_split
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.errors import UserError
from transformer_cli.evaluation import check_counts, score
from transformer_cli.export.extra import Quantization
from transformer_cli.export.folder import weights_sha256
from transformer_cli.export.writing import Exported
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime, available_cores
from transformer_cli.wording import counted

_TRIED_LINES = 300  # to find the best tuning
_BEAM_SIZES = {"greedy": 1, "beam 5": 5}
#: What CTranslate2 does and cannot do otherwise.
_ALIKE = {"length_normalization": "plain", "early_stopping": True, "shortlist": False}
_MEANINGS = {
    "sentences_per_second": "lines to lines, SentencePiece included; median over rounds in turn, after warm-up",
    "round_seconds_spread": "interquartile range of the times of the rounds",
    "ratio": "our speed / that of CTranslate2 with the same weights, median over the rounds: 1.2 is faster by a fifth",
    "identical": "share of lines that both translate alike",
    "latency": "milliseconds of a line that comes alone",
    "peak_bytes": "greatest resident sets of all processes of a side, added up",
}


@dataclass(frozen=True)
class DecodingBenchRequest:
    """What the command line asked for."""

    run: Path
    src: Path | None = None
    ref: Path | None = None
    compare: bool = False  # with CTranslate2
    repeats: int = 5
    shortlist: bool | None = None  # measure our engine with it too; None: as the recipe says


@dataclass(frozen=True)
class SearchReport:
    """One way of searching, by all sides; ours is the first, and with a shortlist the last again."""

    sides: list[Measured]
    bleu: list[float]
    signature: str
    has_shortlist: bool = False

    @property
    def others(self) -> list[Measured]:
        """The sides of the other engine."""
        return self.sides[1 : -1 if self.has_shortlist else None]

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        ours, others = self.sides[0], self.others
        rows = [side.document() | {"bleu": bleu} for side, bleu in zip(self.sides, self.bleu, strict=True)]
        document: dict[str, object] = {"sentences_per_second": rows[0]["sentences_per_second"]}
        if others:
            document["ratio_to_ctranslate2_fp32"] = ratio(ours, others[0])
            document["ratio_to_ctranslate2_best"] = min(ratio(ours, other) for other in others)
            document["identical"] = identical(ours, others[0])
        if self.has_shortlist:
            document["shortlist"] = self._of_shortlist()
        return document | {"bleu_signature": self.signature, "sides": rows}

    def _of_shortlist(self) -> dict[str, float]:
        """Return what our side gains and loses with a shortlist: the same figures as without, and the BLEU lost."""
        ours, listed = self.sides[0], self.sides[-1]
        found = {
            "ratio_to_whole_vocabulary": ratio(listed, ours),
            "bleu_lost": self.bleu[0] - self.bleu[-1],
            "identical_to_whole_vocabulary": identical(listed, ours),
        }
        return found | ({"ratio_to_ctranslate2_fp32": ratio(listed, self.others[0])} if self.others else {})


@dataclass(frozen=True)
class DecodingReport:
    """What was measured, where and how."""

    device: str
    settings: dict[str, Any]
    searches: dict[str, SearchReport]
    ended_by: Cause | None = None  # the searches and rounds are those that were finished

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        found = {name: report.document() for name, report in self.searches.items()}
        where = {"device": self.device, "torch": torch.__version__, "settings": self.settings}
        return {**where, "searches": found, "interrupted": self.ended_by is not None}


def run_decoding_bench(request: DecodingBenchRequest, note: Callable[[str], None]) -> DecodingReport:
    """Find the best tuning of each side, then let them translate in turn, greedily and with a beam of 5.

    Ctrl-C, or that a process is killed, ends it early: the report then holds what was finished.

    Raises:
        WorkerKilled: a process was killed, and nothing was finished.
        UserError: files do not fit each other, or CTranslate2 is not installed or cannot represent the model.
        RunError: there is no usable model.
    """
    model, tokenizer, config = load_model(request.run)
    text = _text(request, config, note)
    recipe = DecodeSettings.from_config(config.decode)
    listed = Shortlist.of_run(request.run) if _wants_shortlist(request, config) else None
    settings_used = {
        "run": str(request.run),
        "weights_sha256": weights_sha256(request.run)[:16],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "text": text.name,
        "lines": len(text.lines),
        "repeats": request.repeats,
        "cores": available_cores(),
        "decode": recipe.but(_ALIKE).describe(),
        "shortlist": listed and {"fingerprint": listed.fingerprint, "per_piece": listed.of_pieces.shape[1]},
        **_MEANINGS,
    }
    searches: dict[str, SearchReport] = {}
    with tempfile.TemporaryDirectory(prefix="tfm-bench-") as folder:
        starts = [first_tuning(request.run), *_exports(request, (model, tokenizer, config), Path(folder))]
        if listed is not None:
            starts.append(first_tuning(request.run, shortlist=True))
        _tell_plan(starts, text, request.repeats, note)
        with finished_kept(searches) as end:
            for name, beam_size in _BEAM_SIZES.items():
                settings = recipe.but({"beam_size": beam_size, **_ALIKE})
                searches[name], end.cause = _searched(starts, settings, text, request.repeats, note)
                if end.cause is not None:
                    break
    return DecodingReport(str(Runtime.resolve("cpu").describe()["device"]), settings_used, searches, end.cause)


def _tell_plan(starts: Sequence[Tuning], text: "_Text", repeats: int, note: Callable[[str], None]) -> None:
    tried = sum(map(n_tried, starts)) * len(_BEAM_SIZES)
    few, all_lines = (counted(n, "line") for n in (min(_TRIED_LINES, len(text.lines)), len(text.lines)))
    note(
        f"{' and '.join(_BEAM_SIZES)}: first {counted(tried, 'setting')} are tried on {few}, to find the fastest of "
        f"{counted(len(starts), 'side')}; then {counted(repeats, 'round')} of {all_lines} in turn"
    )


def _searched(
    starts: Sequence[Tuning], settings: DecodeSettings, text: "_Text", repeats: int, note: Callable[[str], None]
) -> tuple[SearchReport, Cause | None]:
    """Measure one way of searching; return what was found, and what ended it early, if something did."""
    tunings = [best_tuning(start, settings, text.lines[:_TRIED_LINES], note) for start in starts]
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(tuning, settings)) for tuning in tunings]
        measured, end = measure(sides, text.lines, repeats, note)
    scores = [score(side.translations, [text.references], tgt_lang=text.lang)[0] for side in measured]
    bleu = [found.value for found in scores]
    return SearchReport(measured, bleu, scores[0].signature, starts[-1].shortlist), end.cause


@dataclass(frozen=True)
class _Text:
    """Lines to translate."""

    name: str  # of the split, or of the file
    lines: list[str]
    references: list[str]
    lang: str  # of the references


def _text(request: DecodingBenchRequest, config: Config, note: Callable[[str], None]) -> _Text:
    """Return the given files, or the run's test set, or its dev set where it has no test set."""
    lang = config.data.target(None)
    if (request.src is None) != (request.ref is None):
        raise UserError("--src and --ref belong together")
    if request.src is None or request.ref is None:
        split = "test" if "test" in available_splits(config.data) else "dev"
        if split == "dev":
            note("the run has no test set: its dev set is translated; --src and --ref name other lines")
        pairs = load_split(config.data, split, config.train.seed, note)
        return _Text(f"the run's {split} set", pairs.src, pairs.tgt, lang)
    lines, references = read_file(request.src, note), read_file(request.ref, note)
    check_counts({str(request.src): len(lines), str(request.ref): len(references)})
    return _Text(str(request.src), lines, references, lang)


def _wants_shortlist(request: DecodingBenchRequest, config: Config) -> bool:
    return config.decode.shortlist if request.shortlist is None else request.shortlist


def _exports(
    request: DecodingBenchRequest, loaded: tuple[Transformer, Tokenizer, Config], folder: Path
) -> Sequence[Tuning]:
    """Export the run twice, if it is to be compared: in float32 and in int8."""
    if not request.compare:
        return []
    origin = {"run": request.run.name, "weights_sha256": weights_sha256(request.run)}
    exported = Exported(*loaded, positions_of(loaded[-1]), origin)
    starts = []
    kinds: tuple[Quantization, ...] = ("float32", "int8")
    for quantization in kinds:
        exported.write(folder / quantization, quantization)
        starts.append(first_tuning(folder / quantization, quantization))
    return starts
