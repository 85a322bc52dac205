"""``tfm check``: the mask doctor and the stability list, for a trained run."""

from dataclasses import asdict, dataclass
from pathlib import Path

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.shared.notes import note_on_stderr
from transformer_cli.commands.shared.run_choice import chosen_run, folder_of
from transformer_cli.inspection.health import Check, heads_check, log_checks, settings_checks, variance_check
from transformer_cli.inspection.inspector import Inspector
from transformer_cli.inspection.mask_doctor import examine

_OF_MASKS = (
    "a mask or a kernel is wrong, or (is the same in every sentence) the layers before have collapsed, see variance "
    "per layer: the model has to be trained anew"
)


@dataclass(frozen=True)
class CheckReport:
    """What was found in a run."""

    run: str
    checks: list[Check]

    @property
    def sees_too_much(self) -> bool:
        """Whether a mask is wrong: what such a model learned is worth nothing."""
        return not all(check.sound for check in self.checks if check.name == "masks")


def check_run(run: Path | None, device: str, quiet: bool) -> CheckReport:
    """Look at masks, settings, log, variances and heads of a run.

    Raises:
        UserError: there is no usable run or device, or its dev set cannot be read.
    """
    note = note_on_stderr(quiet)
    path = chosen_run(run, note)
    inspector, folder = Inspector.from_run(path, device), RunFolder.open(folder_of(path))
    config, model = inspector.config, inspector.model
    batch = inspector.batch(note)
    found = examine(model, batch.src, batch.tgt_in)
    masks = "; ".join(map(str, found)) or "nothing is seen that must not be, and nothing is blind"
    checks = [
        Check("masks", not found, masks, _OF_MASKS),
        *settings_checks(config, folder.info.get("total_steps")),
        *log_checks(folder.metrics(note), config),
        variance_check(model, batch.src, batch.tgt_in),
        heads_check(model, inspector.heads(note)),
    ]
    return CheckReport(str(path), checks)


def _document(check: Check) -> dict[str, object]:
    return asdict(check) | ({"advice": None} if check.sound else {})


def print_check(report: CheckReport, as_json: bool) -> None:
    """Print one line for each check, with what to change below it; or one JSON document."""
    if as_json:
        print(json_text({"run": report.run, "checks": [_document(check) for check in report.checks]}, indent=1))
        return
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        print(f"{'ok  ' if check.sound else 'look'}  {check.name:{width}}  {check.evidence}")
        if not check.sound:
            print(f"      {'':{width}}  change: {check.advice}")
