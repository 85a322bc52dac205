"""``tfm export``: a run as a folder that another engine answers from, compared with the run before it is kept."""

from dataclasses import asdict, dataclass
from pathlib import Path

from transformer_cli.checkpoint import load_model
from transformer_cli.checkpoint.durable import new_folder
from transformer_cli.commands.export_check import Agreement, Check, refuse_unlike
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.shared.notes import Note
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.config import Config
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.export.ctranslate2_spec import refuse_unrepresentable
from transformer_cli.export.extra import Quantization, ctranslate2
from transformer_cli.export.folder import INSIDE, weights_sha256
from transformer_cli.export.writing import Exported, amend_description, refuse_existing
from transformer_cli.runtime import Runtime

_POSITIONS = 1024  # sinusoids go on as long as their table, which costs little


@dataclass(frozen=True)
class ExportReport:
    """What was exported, and how it compares with the run."""

    folder: str
    quantization: str
    megabytes: float
    lines: str  # what it was compared on
    agreement: dict[str, Agreement]  # float32 first, then the type that was asked for


def run_export(
    run: Path | None, output: Path | None, quantization: Quantization, overwrite: bool, note: Note
) -> ExportReport:
    """Export a run, checked against its own translations; nothing is left at the place if they differ.

    Args:
        run: run folder or checkpoint; None: the newest run.
        output: folder to make; None: ``ctranslate2`` inside the run.
        quantization: type of the stored weights.
        overwrite: replace an export that is there.
        note: told what happens.

    Raises:
        UserError: CTranslate2 is not installed, or cannot represent the model.
        RunError: there is no run, or something is in the way.
        TfmError: the export translates otherwise than the run.
    """
    ctranslate2()
    path = chosen_run(run, note)
    target = output or path / INSIDE
    refuse_existing(target, overwrite)
    model, tokenizer, config = load_model(path)
    refuse_unrepresentable(config.model)
    origin = {"run": path.resolve().name, "weights_sha256": weights_sha256(path)}
    exported = Exported(model, tokenizer, config, positions_of(config), origin)
    check = Check(Translator.of_model(model, tokenizer, config, Runtime.resolve("cpu")), note)
    kinds: list[Quantization] = ["float32"] if quantization == "float32" else ["float32", quantization]
    agreement: dict[str, Agreement] = {}
    with new_folder(target, "--output") as folder:
        for kind in kinds:
            exported.write(folder, kind)
            agreement[kind] = check.of(folder)
            if kind == "float32":
                refuse_unlike(agreement[kind])
        found = {kind: result.identical for kind, result in agreement.items()}
        amend_description(folder, {"check": {"on": check.origin, "lines": len(check.lines), "identical": found}})
    size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
    return ExportReport(str(target), quantization, size, check.origin, agreement)


def print_report(report: ExportReport, as_json: bool) -> None:
    """Print what was exported, or one JSON document."""
    if as_json:
        print(json_text(asdict(report), indent=1))
        return
    print(f"{'exported':<15}{report.folder} ({report.quantization}, {report.megabytes:.1f} MB)")
    for kind, agreement in report.agreement.items():
        print(f"{kind:<15}{agreement} identical to the run, greedy, {report.lines}")
    print(f"{'try':<15}tfm translate --engine ctranslate2 --run {report.folder}")


def positions_of(config: Config) -> int:
    """Return the most tokens that a source or a translation of an export may have, with ``</s>``."""
    longest = config.data.max_length
    if config.model.positions == "learned":
        return longest
    return max(_POSITIONS, DecodeSettings.from_config(config.decode).max_length(longest))
