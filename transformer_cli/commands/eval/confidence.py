"""``tfm eval``: fit the confidence of a run to what was translated, or measure how far to trust it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.files.confidence_file import circumstances, fitting_confidence, write_confidence
from transformer_cli.commands.shared.notes import Note, written
from transformer_cli.decoding.confidence import features
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import Calibration, calibration, fit_confidence, good_lines
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Translated:
    """What was translated, by whom and how."""

    run: Path
    translator: Translator
    settings: DecodeSettings
    translations: list[Translation]


def calibrated(
    found: Translated, references: Sequence[Sequence[str]], text: str, note: Note, *, fit: bool
) -> Calibration | None:
    """Return how well confidences fit these lines; None if the run has none that holds for them.

    Args:
        found: the translations.
        references: as of ``score``.
        text: names the lines.
        note: told where a confidence was written, or why it cannot be used.
        fit: fit it to these lines first, and store it in the run.

    Raises:
        DataError: there are too few good or bad lines to fit.
        RunError: the run cannot be written.
    """
    confidence = None if fit else fitting_confidence(found.run, found.translator, found.settings, note)
    if confidence is None and not fit:
        return None
    told = [(features(translation), number) for number, translation in enumerate(found.translations)]
    chosen = [number for values, number in told if values is not None]
    hypotheses = [found.translations[number].text for number in chosen]
    good = good_lines(hypotheses, [[lines[number] for number in chosen] for lines in references])
    if confidence is None:
        values = [values for values, _ in told if values is not None]
        fitted_for = circumstances(found.run, found.translator, found.settings)
        confidence = fit_confidence(values, good, fitted_for, text)
        note(written(write_confidence(found.run, confidence), f"confidence fitted to {counted(len(values), 'line')}"))
    said = [confidence.probability(found.translations[number]) for number in chosen]
    return calibration(confidence, [p for p in said if p is not None], good)
