"""What ``tfm eval`` was asked for, and which wishes exclude each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer_cli.commands.files.output_file import refuse_file_of_run, refuse_replacing
from transformer_cli.errors import UserError

#: Resamples of a confidence interval: with more of them no digit that is shown changes, and the hours pass in silence.
MOST_RESAMPLES = 100_000

#: Options that override a setting of the same name (``DecodeSettings``).
_SEARCH = ("beam_size", "length_penalty", "length_normalization", "early_stopping", "shortlist")
_BATCHES = ("batch_size", "batch_tokens")


@dataclass(frozen=True)
class EvalRequest:
    """What the command line asked for.

    Attributes:
        run: run folder or checkpoint; None: the newest run, if one is needed.
        split: test, dev, train, or handwritten of the phrasebook; None: test, if no files are given.
        src: source file to translate instead of a split.
        refs: reference files, each a complete set.
        hyp: hypotheses to score; nothing is translated then.
        to: language that the run translates into, and of its references; None: its main one.
        metrics: of bleu, chrf, ter.
        lowercase: ignore case.
        tokenize: BLEU's tokenizer; None: that of the target language.
        tgt_lang: target language; None: the run's, or the ending of the reference file.
        n_bootstrap: resamples of the confidence interval; 0: none.
        output: file for the hypotheses.
        search: overrides keys of the run's ``decode`` section; None leaves one.
        device: where to translate.
        compare: hypothesis file or run to compare with.
        details: add BLEU by length, and the worst lines.
        baseline: add the score of the nearest training neighbours.
        calibrate: fit the run's confidence to these lines.
    """

    run: Path | None = None
    split: str | None = None
    src: Path | None = None
    refs: tuple[Path, ...] = ()
    hyp: Path | None = None
    to: str | None = None
    metrics: tuple[str, ...] = ("bleu",)
    lowercase: bool = False
    tokenize: str | None = None
    tgt_lang: str | None = None
    n_bootstrap: int = 1000
    output: Path | None = None
    search: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"
    compare: Path | None = None
    details: bool = False
    baseline: bool = False
    calibrate: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "EvalRequest":
        """Take the options of the command line, by their names."""
        search = {name: options[name] for name in (*_SEARCH, *_BATCHES)}
        return cls(search=search, **{name: value for name, value in options.items() if name not in search})

    @property
    def compares_with_run(self) -> bool:
        """Whether another model has to translate too."""
        return self.compare is not None and self.compare.is_dir()

    @property
    def needs_sources(self) -> bool:
        """Whether references alone are not enough."""
        return self.hyp is None or self.baseline or self.compares_with_run

    @property
    def needs_run(self) -> bool:
        """Whether a model, a split or training data of a run are used."""
        files_suffice = self.refs and not (self.needs_sources and self.src is None)
        return self.hyp is None or not files_suffice or self.split is not None or self.baseline

    def check(self) -> None:
        """Refuse what cannot take effect.

        Raises:
            UserError: two options exclude each other, or the output has no place.
        """
        searches = any(value is not None for value in self.search.values())
        if self.hyp is not None and not self.compares_with_run and searches:
            raise UserError("nothing is translated, so search options have no effect", hint="drop them, or drop --hyp")
        if self.hyp is not None and not self.compares_with_run and self.device != "auto":
            raise UserError("nothing is translated, so --device has no effect", hint="drop it, or drop --hyp")
        if self.tokenize is not None and "bleu" not in self.metrics and not self.details:
            raise UserError("--tokenize is BLEU's, which is not measured", hint="drop it, or add bleu to --metrics")
        if self.to is not None and not self.needs_run and not self.compares_with_run:
            raise UserError("no run is used, so --to has no effect", hint="the language of files is --tgt-lang")
        if self.hyp is not None and self.output is not None:
            raise UserError("--output would only copy --hyp", hint="drop one of them")
        if self.src is not None and not self.refs:
            raise UserError("--src alone has nothing to be compared with", hint="give its translation with --ref")
        if self.src is not None and self.split is not None:
            raise UserError("--src and --split both say what is translated", hint="give one of them")
        if not 0 <= self.n_bootstrap <= MOST_RESAMPLES:
            wanted = f"0 to {MOST_RESAMPLES:,} resamples; 0 switches them off"
            raise UserError("there is no such number of resamples", got=self.n_bootstrap, expected=wanted)
        if self.calibrate:
            self._check_calibration()
        self._check_output()

    def _check_calibration(self) -> None:
        if self.hyp is not None:
            raise UserError("nothing is translated, so --calibrate has nothing to learn from", hint="drop --hyp")
        if self.split != "dev" and self.src is None:
            raise UserError(
                "confidence is not fitted to lines that were learned from, nor to those that judge it",
                got=f"--split {self.split or 'test'}",
                expected="--split dev, or lines of your own with --src and --ref",
            )
        if self.lowercase:
            raise UserError("--calibrate compares with case", hint="drop --lowercase")

    def _check_output(self) -> None:
        """Now, not after the minutes that translating may take."""
        if str(self.output) == "-":
            raise UserError("the scores go to stdout, so hypotheses cannot", hint="give --output a file name")
        if self.output is None:
            return
        if not self.output.parent.is_dir():
            raise UserError("there is no such folder", where=str(self.output.parent))
        refuse_file_of_run(self.output)
        refuse_replacing(str(self.output), [self.src, *self.refs, self.compare])
