"""Whether an export says what the run says: the same lines through both, compared word for word."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.shared.notes import Note
from transformer_cli.config import Config, DataConfig
from transformer_cli.data.corpus import load_split
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import DataError, TfmError

LINES = 200
#: Share of lines that must be the same in float32; what is left are ties that the last bits decide.
LEAST = 0.99


@dataclass(frozen=True)
class Agreement:
    """How many lines came out the same."""

    identical: int
    lines: int
    example: tuple[str, str, str] | None  # the first line that did not: source, ours, theirs

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.identical / self.lines

    def __str__(self) -> str:
        return f"{self.identical} of {self.lines} ({100 * self.share:.1f} %)"


class Check:
    """Some lines and the run's own greedy translations of them, in float32."""

    def __init__(self, run: Translator, note: Note) -> None:
        self.lines, self.origin = _lines(run.config, note)
        self._ours = _greedy(run, self.lines)

    def of(self, folder: Path) -> Agreement:
        """Translate the lines with an export and compare."""
        theirs = _greedy(Translator.from_run(folder, "cpu", engine="ctranslate2"), self.lines)
        rows = list(zip(self.lines, self._ours, theirs, strict=True))
        different = [row for row in rows if row[1] != row[2]]
        return Agreement(len(rows) - len(different), len(rows), different[0] if different else None)


def refuse_unlike(agreement: Agreement) -> None:
    """Check that an export in float32 may be called good.

    Raises:
        TfmError: too many lines came out otherwise.
    """
    if agreement.share >= LEAST or agreement.example is None:
        return
    source, ours, theirs = agreement.example
    raise TfmError(
        f"the export translates otherwise than the run and was not kept; for instance {source!r}",
        got=f"{theirs!r}; the same in {agreement}",
        expected=f"{ours!r}; the same in {100 * LEAST:g} % of the lines",
        hint="a model that is hardly trained finds many words equally good; train it further",
    )


def _greedy(translator: Translator, lines: Sequence[str]) -> list[str]:
    settings = DecodeSettings.from_config(translator.config.decode).but({"beam_size": 1, "shortlist": False})
    return [translation.text for translation in translator.translate_window(lines, settings)]


def _lines(config: Config, note: Note) -> tuple[list[str], str]:
    """Return lines to compare on, and what they are."""
    try:
        return load_split(config.data, "dev", config.train.seed).src[:LINES], "dev lines of the run"
    except DataError as error:
        note(f"the run's dev lines cannot be read, checking with the phrasebook instead: {error}")
    known = {"en", "de", "zh"}
    source = config.data.src_lang if config.data.src_lang in known else "en"
    phrasebook = DataConfig(corpus="phrasebook", src_lang=source, tgt_lang=min(known - {source}))
    return load_split(phrasebook, "dev", config.train.seed).src[:LINES], f"phrasebook lines in {source}"
