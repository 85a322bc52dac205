"""``tfm runs``: what was trained here, and how far it came."""

from dataclasses import asdict, dataclass
from pathlib import Path

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.errors import TfmError
from transformer_cli.wording import searched


@dataclass(frozen=True)
class RunSummary:
    """One run folder in a line; ``problem`` says why the rest is unknown."""

    name: str
    created: str = ""
    pair: str = ""
    steps: int = 0
    total_steps: int | None = None
    dev_bleu: float | None = None
    beam_size: int | None = None  # of the search that found it
    megabytes: float = 0.0
    status: str = ""
    problem: str | None = None


def list_runs(root: Path) -> list[RunSummary]:
    """Return the runs in a folder, oldest first; a damaged one is listed with its problem."""
    from transformer_cli.checkpoint import run_folders

    return sorted((_summary(folder) for folder in run_folders(root)), key=lambda run: run.created)


def print_runs(runs: list[RunSummary], root: Path, as_json: bool) -> None:
    """Print a table, or one JSON list."""
    if as_json:
        print(json_text([asdict(run) for run in runs], indent=1))
        return
    if not runs:
        print(f"no runs in {root}/: tfm train --config base.yaml makes one")
        return
    print(f"{'created (UTC)':20} {'pair':7} {'steps':>14} {'dev BLEU':>13} {'MB':>7}  {'status':11} run")
    for run in runs:
        steps = f"{run.steps}/{run.total_steps or '?'}"
        bleu = "-" if run.dev_bleu is None or not run.beam_size else f"{run.dev_bleu:.1f} ({searched(run.beam_size)})"
        status = run.problem or run.status
        size = f"{run.megabytes:7.1f}"
        print(f"{run.created[:19]:20} {run.pair:7} {steps:>14} {bleu:>13} {size}  {status:11} {root / run.name}")


def _summary(folder: Path) -> RunSummary:
    from transformer_cli.checkpoint import RunFolder

    try:
        run = RunFolder.open(folder)
        data, info = run.config.data, run.info
    except TfmError as error:
        return RunSummary(folder.name, problem=error.what)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    best = info.get("best") or {}
    return RunSummary(
        name=folder.name,
        created=str(info.get("created", "")),
        pair=f"{data.src_lang}-{data.tgt_lang}",
        steps=int(info.get("step") or 0),
        total_steps=info.get("total_steps"),
        dev_bleu=best.get("bleu"),
        beam_size=run.config.train.validate_beam_size,
        megabytes=size / 1e6,
        status=str(info.get("status", "")),
    )
