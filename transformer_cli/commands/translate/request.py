"""What ``tfm translate`` was asked for, and which wishes exclude each other."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformer_cli.commands.files.output_file import is_special, refuse_replacing
from transformer_cli.decoding.ctranslate2_engine import unknown
from transformer_cli.decoding.translation import Engine
from transformer_cli.errors import UserError

_JSON_NAMES = (".jsonl", ".jsonl.gz")

#: Options that override a setting of the same name (``DecodeSettings``).
SEARCH = (
    "beam_size",
    "length_penalty",
    "length_normalization",
    "early_stopping",
    "max_length_ratio",
    "min_length",
    "no_repeat_ngram",
)
BATCHES = ("batch_size", "batch_tokens")
OUTPUT = ("alignment",)
LISTS = ("shortlist",)
SAMPLING = ("temperature", "top_k", "top_p", "seed")


@dataclass(frozen=True)
class TranslateRequest:
    """What the command line asked for.

    Attributes:
        runs: that translate together; none: the newest run alone.
        search: overrides keys of the run's ``decode`` section, and says what it has no key for; None leaves one.
        sample: draw translations, ``n_best`` of them.
        mbr: choose among so many drawn translations (``risk.py``).
    """

    texts: tuple[str, ...]
    runs: tuple[Path, ...]
    input_path: str | None
    output_path: str
    search: Mapping[str, Any]
    n_best: int
    output_format: str  # text | tsv | jsonl | json (one document)
    device: str
    quiet: bool
    to: str | None = None  # language to translate into; None: the run's main one
    engine: Engine | Literal["auto"] = "torch"  # auto: the faster one that says the same
    workers: int | None = None  # processes that share the work; None: as the first lines suggest
    input_format: str | None = None  # text | jsonl; None: by the name of the file
    field: str | None = None  # of a JSON object, with its text; None: source, or else text
    resume: bool = False  # go on with what an interrupted job has left
    overwrite: bool = False  # throw it away
    sample: bool = False
    mbr: int | None = None
    prefix: str | None = None  # with which every translation has to start, unless its line says otherwise
    glossary: Path | None = None  # file of terms and their translations
    forbid: Path | None = None  # file of phrases that no translation may hold

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "TranslateRequest":
        """Take the options of the command line, by their names."""
        search = {name: options[name] for name in (*SEARCH, *BATCHES, *SAMPLING, *OUTPUT, *LISTS)}
        return cls(search=search, **{name: value for name, value in options.items() if name not in search})

    @property
    def reads_json(self) -> bool:
        """Whether the lines of the input are JSON objects."""
        by_name = (self.input_path or "").endswith(_JSON_NAMES)
        return by_name if self.input_format is None else self.input_format == "jsonl"

    @property
    def prompts(self) -> bool:
        """Whether a person at a terminal types the lines."""
        return not self.texts and self.input_path is None and not self.reads_json and sys.stdin.isatty()

    @property
    def writes_json(self) -> bool:
        """Whether there is a place for what a translation says about itself."""
        return self.output_format in ("jsonl", "json")

    @property
    def has_part(self) -> bool:
        """Whether the output grows in a part file, so that it can be continued."""
        return self.output_path != "-" and self.output_format != "json" and not is_special(self.output_path)

    @property
    def overrides(self) -> dict[str, Any]:
        """What the request says of the settings of the search; None leaves one as the recipe has it."""
        drawn = self.mbr or (self.n_best if self.sample else None)
        how = {"sampling": True, "mbr": self.mbr is not None, "beam_size": drawn} if drawn else {}
        return {**self.search, "n_best": self.n_best, "log_probs": self.writes_json, **how}

    def check(self) -> None:
        """Refuse what cannot take effect.

        Raises:
            UserError: two options exclude each other, or one does not fit.
        """
        self._check_places()
        self._check_input()
        self._check_search()
        self._check_engine()
        self._check_continuation()

    def _check_places(self) -> None:
        source, target = self.input_path, self.output_path
        if self.texts and source is not None:
            hint = "put the texts into the file, or drop one"
            raise UserError("texts and --input cannot be given together", hint=hint)
        if source == "" or target == "":
            raise UserError("an empty file name was given", expected="a file, or - for the standard stream")
        refuse_replacing(target, (source, self.glossary, self.forbid))

    def _check_input(self) -> None:
        if self.texts and self.input_format == "jsonl":
            raise UserError("--input-format jsonl is about files and stdin", hint="put the objects into a file")
        if self.field == "":
            raise UserError("an empty field name was given", expected="--field NAME, a field of each JSON line")
        if self.field is not None and not self.reads_json:
            raise UserError("--field is about JSON lines", hint="add --input-format jsonl, or leave --field away")
        if self.search.get("alignment") and not self.writes_json:
            raise UserError("--alignment is written as a field of JSON", hint="add --format jsonl or --json")

    def _check_search(self) -> None:
        if self.sample and self.mbr is not None:
            raise UserError("--mbr draws its own samples", hint="leave --sample away")
        draws = self.sample or self.mbr is not None
        if draws and self.glossary is not None:
            raise UserError("--glossary is about beam search", hint="leave it or the samples away")
        if not draws and (given := self._given(SAMPLING)):
            raise UserError(f"{given} is about samples", hint="add --sample or --mbr N, or leave it away")
        if draws and (given := self._given(("beam_size", "early_stopping"))):
            wanted = "--n-best" if self.sample else "--mbr"
            raise UserError(f"{given} is about beam search", hint=f"the number of samples is that of {wanted}")

    def _check_engine(self) -> None:
        if self.engine != "ctranslate2":
            return
        wishes = {
            "--sample": self.sample,
            "--mbr": self.mbr is not None,
            "--early-stopping": bool(self.search.get("early_stopping")),
            "--alignment": bool(self.search.get("alignment")),
            "--prefix": self.prefix is not None,
            "--glossary": self.glossary is not None,
            "--forbid": self.forbid is not None,
            "--shortlist": bool(self.search.get("shortlist")),
            "more than one --run": len(self.runs) > 1,
            "--workers": self.workers is not None,
            "--batch-tokens auto": self.search.get("batch_tokens") == "auto",
        }
        for name, given in wishes.items():
            if given:
                raise unknown(name)

    def _given(self, names: tuple[str, ...]) -> str:
        """Return those of the options that were given, as they were spelled."""
        return ", ".join("--" + name.replace("_", "-") for name in names if self.search.get(name) is not None)

    def _check_continuation(self) -> None:
        if self.resume and self.overwrite:
            raise UserError("--resume and --overwrite exclude each other")
        if (self.resume or self.overwrite) and not self.has_part:
            name = "--resume" if self.resume else "--overwrite"
            raise UserError(
                f"{name} is about an unfinished output file", expected="--output FILE, as lines of text, tsv or jsonl"
            )
        if self.resume and self.prompts:
            raise UserError("--resume needs the whole input again", hint="give it with --input FILE, or pipe it in")
