"""``tfm bench --decode``: how fast a run translates, alone or beside CTranslate2 with the same weights."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from transformer_cli.benchmark.decoding import Measured, identical, measure, measure_latency, ratio
from transformer_cli.checkpoint import load_model, open_model
from transformer_cli.commands.bench.decoding_sides import Side, Tuning, best_tuning, first_tuning
from transformer_cli.commands.eval.text import read_file
from transformer_cli.commands.export import positions_of
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.config import Config
from transformer_cli.data.corpus import load_split
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.errors import UserError
from transformer_cli.evaluation import check_counts, score
from transformer_cli.export.extra import Quantization
from transformer_cli.export.folder import weights_sha256
from transformer_cli.export.writing import Exported
from transformer_cli.runtime import Runtime, available_cores
from transformer_cli.wording import counted

_TRIED_LINES = 300  # to find the best tuning
#: What CTranslate2 does and cannot do otherwise.
_ALIKE = {"length_normalization": "plain", "early_stopping": True, "shortlist": False}
_MEANINGS = {
    "sentences_per_second": "lines to lines, SentencePiece included; median over rounds in turn, after warm-up",
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

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        found = {name: report.document() for name, report in self.searches.items()}
        return {"device": self.device, "torch": torch.__version__, "settings": self.settings, "searches": found}


def run_decoding_bench(request: DecodingBenchRequest, note: Callable[[str], None]) -> DecodingReport:
    """Find the best tuning of each side, then let them translate in turn, greedily and with a beam of 5.

    Raises:
        UserError: files do not fit each other, or CTranslate2 is not installed or cannot represent the model.
        RunError: there is no usable model.
    """
    config = open_model(request.run).config
    lines, references = _text(request, config, note)
    recipe = DecodeSettings.from_config(config.decode)
    listed = Shortlist.of_run(request.run) if _wants_shortlist(request, config) else None
    searches = {}
    with tempfile.TemporaryDirectory(prefix="tfm-bench-") as folder:
        starts = [first_tuning(request.run), *_exports(request, config, Path(folder))]
        if listed is not None:
            starts.append(first_tuning(request.run, shortlist=True))
        for beam_size in (1, 5):
            settings = recipe.but({"beam_size": beam_size, **_ALIKE})
            tunings = [best_tuning(start, settings, lines[:_TRIED_LINES], note) for start in starts]
            with ExitStack() as stack:
                sides = [stack.enter_context(Side(tuning, settings)) for tuning in tunings]
                measured = measure(sides, lines, request.repeats, note)
                measure_latency(sides, lines, measured)
            scores = [score(side.translations, [references], tgt_lang=config.data.target(None))[0] for side in measured]
            name = "greedy" if beam_size == 1 else f"beam {beam_size}"
            bleu = [found.value for found in scores]
            searches[name] = SearchReport(measured, bleu, scores[0].signature, listed is not None)
    settings_used = {
        "run": str(request.run),
        "weights_sha256": weights_sha256(request.run)[:16],
        "lines": len(lines),
        "repeats": request.repeats,
        "cores": available_cores(),
        "decode": recipe.but(_ALIKE).describe(),
        "shortlist": listed and {"fingerprint": listed.fingerprint, "per_piece": listed.of_pieces.shape[1]},
        **_MEANINGS,
    }
    return DecodingReport(str(Runtime.resolve("cpu").describe()["device"]), settings_used, searches)


def print_report(report: DecodingReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(json_text(report.document(), indent=1))
        return
    console = Console()
    what = report.settings
    console.print(
        f"{report.device}, torch {torch.__version__}; "
        f"{counted(what['lines'], 'line')}, {counted(what['repeats'], 'round')} in turn"
    )
    for name, found in report.searches.items():
        console.print(_table(name, found))
    for meaning, text in _MEANINGS.items():
        console.print(f"{meaning}: {text}", markup=False, highlight=False)


def _table(name: str, report: SearchReport) -> Table:
    table = Table(title=name, title_justify="left")
    for column in ("engine", "sentences/s", "tokens/s", "ratio", "identical", "BLEU", "p50 ms", "p95 ms", "peak MiB"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    ours = report.sides[0]
    for side, bleu in zip(report.sides, report.bleu, strict=True):
        row: dict[str, Any] = side.document()
        compared = side is not ours
        table.add_row(
            f"{side.engine}: {side.setting}",
            f"{row['sentences_per_second']:,.0f}",
            f"{row['target_tokens_per_second']:,.0f}",
            f"{ratio(ours, side):.2f}" if compared else "-",
            f"{identical(ours, side):.1%}" if compared else "-",
            f"{bleu:.2f}",
            f"{row['latency_ms_p50']:.1f}",
            f"{row['latency_ms_p95']:.1f}",
            f"{side.peak_bytes / 2**20:,.0f}",
        )
    return table


def _text(request: DecodingBenchRequest, config: Config, note: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """Return lines and references: the given files, or the run's test set."""
    if (request.src is None) != (request.ref is None):
        raise UserError("--src and --ref belong together")
    if request.src is None or request.ref is None:
        pairs = load_split(config.data, "test", config.train.seed, note)
        return pairs.src, pairs.tgt
    lines, references = read_file(request.src, note), read_file(request.ref, note)
    check_counts({str(request.src): len(lines), str(request.ref): len(references)})
    return lines, references


def _wants_shortlist(request: DecodingBenchRequest, config: Config) -> bool:
    return config.decode.shortlist if request.shortlist is None else request.shortlist


def _exports(request: DecodingBenchRequest, config: Config, folder: Path) -> Sequence[Tuning]:
    """Export the run twice, if it is to be compared: in float32 and in int8."""
    if not request.compare:
        return []
    model, tokenizer, _ = load_model(request.run)
    origin = {"run": request.run.name, "weights_sha256": weights_sha256(request.run)}
    exported = Exported(model, tokenizer, config, positions_of(config), origin)
    starts = []
    kinds: tuple[Quantization, ...] = ("float32", "int8")
    for quantization in kinds:
        exported.write(folder / quantization, quantization)
        starts.append(first_tuning(folder / quantization, quantization))
    return starts
