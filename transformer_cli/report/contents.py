"""What a run has to tell: gathered from its records, its model and its dev set; what there is not is said.

A run may be young, unfinished, or without its data: whatever can be read is told, the rest goes into ``missing``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from transformer_cli.checkpoint import RunFolder, build_model, load_model
from transformer_cli.checkpoint.json_lines import read_records
from transformer_cli.data.corpus import load_split
from transformer_cli.data.pairs import ParallelText
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import UserError
from transformer_cli.inspection.heads import Head, doubles
from transformer_cli.inspection.inspector import Inspector
from transformer_cli.model.transformer import parameter_table
from transformer_cli.recipe import to_yaml
from transformer_cli.report.curves import Chart, is_number, training_charts
from transformer_cli.report.maps import PackedMaps, packed, size
from transformer_cli.report.translations import Translations, translations, worth_a_look
from transformer_cli.runtime import Runtime
from transformer_cli.wording import counted

Note = Callable[[str], None]

_HEAD_LINES = 200  # dev sentences over which heads are measured
_MAPS, _MAP_TOKENS, _MAP_BYTES = 4, 32, 1_500_000  # sentences whose maps are shown; all together half of the page


@dataclass
class Contents:
    """All parts of a report; a part without anything is empty, and ``missing`` says why."""

    name: str
    model: str  # whose: model.safetensors, or one of the checkpoints
    langs: tuple[str, str]
    info: dict[str, Any]  # run.json
    recipe: str  # YAML
    parameters: list[tuple[str, int]]
    charts: list[Chart]
    validations: list[dict[str, Any]]
    scores: list[dict[str, Any]]
    decoding: str  # as the recipe searches
    translations: Translations | None = None
    maps: list[PackedMaps] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    doubles: list[tuple[Head, int]] = field(default_factory=list)
    head_lines: int = _HEAD_LINES
    missing: dict[str, str] = field(default_factory=dict)  # part -> why it is not there


def gather(run: Path, folder: Path, device: str, to: str | None, lines: int, note: Note) -> Contents:
    """Read a run, and let its model translate.

    Args:
        run: the run folder, or one of its checkpoints.
        folder: the run folder.
        device: where to translate.
        to: one of the run's target languages; None: the main one.
        lines: most dev sentences to translate.
        note: told what is being done.

    Raises:
        RunError: there is no run.
        UserError: there is no such device or language.
    """
    opened, runtime = RunFolder.open(folder), Runtime.resolve(device)
    data, seed = opened.config.data, opened.config.train.seed
    made = _recorded(run, folder, opened, data.target(to), note)
    try:
        model = load_model(run, runtime.device)
        inspector = Inspector(*model, runtime, to)
        translator = Translator.from_run(run, str(runtime.device), to)
        dev = load_split(data, "dev", seed, note, to)
    except UserError as error:
        made.missing |= dict.fromkeys(("lengths", "sentences", "attention", "heads"), error.render())
        return made
    _translate(made, translator, dev, lines, note)
    _look(made, inspector, translator)
    note(f"measuring the heads over {counted(min(_HEAD_LINES, len(dev)), 'dev sentence')}")
    made.head_lines = min(_HEAD_LINES, len(dev))
    made.heads = inspector.heads(note, most=_HEAD_LINES)
    made.doubles = doubles(made.heads)
    return made


def _recorded(run: Path, folder: Path, opened: RunFolder, tgt_lang: str, note: Note) -> Contents:
    """Read what there is to tell without the model."""
    damage: dict[str, list[str]] = {"curves": [], "scores": []}
    config, records = opened.config, opened.metrics(damage["curves"].append)
    made = Contents(
        folder.resolve().name,
        "model.safetensors" if folder == run else f"checkpoints/{run.resolve().name}",
        (config.data.src_lang, tgt_lang),
        {key: value for key, value in opened.info.items() if key != "settings"},  # the recipe, told already
        to_yaml(config),
        _parameters(build_model(config, opened.tokenizer)),
        training_charts(records),
        [record for record in records if record.get("kind") in ("validation", "average")],
        scores(folder, damage["scores"].append),
        DecodeSettings.from_config(config.decode).describe(),
    )
    _tell_records(made, damage, note)
    return made


def scores(folder: Path, on_damage: Note) -> list[dict[str, Any]]:
    """Return what ``tfm eval`` has stored, the newest first; lines that are damaged are passed over and told."""
    found = read_records(folder / "scores.jsonl", on_damage, "score")
    return [record for record in found[::-1] if is_number(record["score"])]


def _tell_records(made: Contents, damage: Mapping[str, list[str]], note: Note) -> None:
    """Say where damaged lines are, and why there are no curves or scores at all."""
    none_yet = {
        "curves": "the run has recorded no step yet (metrics.jsonl)",
        "scores": "nothing was scored yet: tfm eval stores what it finds",
    }
    for part, told in damage.items():
        if not getattr(made, "charts" if part == "curves" else part):
            made.missing[part] = "".join(told) or none_yet[part]
        elif told:
            note("".join(told))


def _parameters(model: nn.Module) -> list[tuple[str, int]]:
    rows = parameter_table(model)
    return [*rows, ("total", sum(count for _, count in rows))]


def _translate(made: Contents, translator: Translator, dev: ParallelText, lines: int, note: Note) -> None:
    if lines == 0:
        made.missing |= dict.fromkeys(("lengths", "sentences", "attention"), "no line was translated: --lines 0")
        return
    note(f"translating {min(lines, len(dev)):,} of {counted(len(dev), 'dev sentence')}")
    try:
        made.translations = translations(translator, dev, lines)
    except UserError as error:
        made.missing |= dict.fromkeys(("lengths", "sentences", "attention"), error.render())


def _look(made: Contents, inspector: Inspector, translator: Translator) -> None:
    """Keep the maps of some sentences, as many as the page has room for."""
    if made.translations is None:
        return
    lines, tokenizer = made.translations.lines, translator.tokenizer
    sides = [(line.source or "", line.hypothesis) for line in lines]
    ids = zip(tokenizer.encode_src([s for s, _ in sides]), tokenizer.encode_tgt([t for _, t in sides]), strict=True)
    fits = [0 < len(src) < _MAP_TOKENS and len(tgt) < _MAP_TOKENS for src, tgt in ids]
    try:
        for label, line in worth_a_look(lines, fits, _MAPS):
            maps = packed(inspector.look(line.source or ""), label)
            if made.maps and sum(map(size, [*made.maps, maps])) > _MAP_BYTES:
                break
            made.maps.append(maps)
    except UserError as error:
        made.missing["attention"] = error.render()
    if not made.maps:
        made.missing.setdefault("attention", f"no translated sentence is shorter than {_MAP_TOKENS} tokens")
