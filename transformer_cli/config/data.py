"""``data``: where pairs come from, in which direction, which are noise, and where they lie."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from transformer_cli.config.section import PositiveInt, Section
from transformer_cli.errors import ConfigError, UserError
from transformer_cli.wording import whole_number


def _number_or_name(column: object) -> object:
    number = whole_number(column, 0, 10**9) if isinstance(column, str) else None
    return column if number is None else number


Column = Annotated[int | str, BeforeValidator(_number_or_name)]
_LANGUAGE = r"[A-Za-z0-9_-]+"
LanguageOfTag = Annotated[str, Field(pattern=f"^{_LANGUAGE}$")]


class Source(Section):
    """Where sentence pairs come from: exactly one of two text files, a TSV, a JSONL or a Hub data set."""

    src: str | list[str] | None = Field(None, description="source text file(s) or glob(s), one sentence a line")
    tgt: str | list[str] | None = Field(None, description="target text file(s) or glob(s), aligned with src")
    tsv: str | list[str] | None = Field(None, description="tab-separated file(s), one pair a line")
    jsonl: str | list[str] | None = Field(None, description="JSON-lines file(s), one object a line")
    hub: str | None = Field(None, description="data set for datasets.load_dataset: Hub id or local folder")
    config: str | None = Field(None, description="configuration name of the Hub data set")
    split: str | None = Field(None, description="split of the Hub data set, e.g. train or train[:10%]")
    src_column: Column | None = Field(None, description="TSV: column number from 0; Hub: column name")
    tgt_column: Column | None = Field(None, description="TSV: column number from 0; Hub: column name")
    src_field: str | None = Field(None, description="JSONL: field of the source sentence")
    tgt_field: str | None = Field(None, description="JSONL: field of the target sentence")

    @property
    def kind(self) -> Literal["text", "tsv", "jsonl", "hub"]:
        """Which reader this source is for."""
        return next((kind for kind in ("tsv", "jsonl", "hub") if getattr(self, kind) is not None), "text")

    @model_validator(mode="after")
    def _one_kind(self) -> "Source":
        allowed = {
            "text": {"src", "tgt"},
            "tsv": {"tsv", "src_column", "tgt_column"},
            "jsonl": {"jsonl", "src_field", "tgt_field"},
            "hub": {"hub", "config", "split", "src_column", "tgt_column"},
        }[self.kind]
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if extra := sorted(given - allowed):
            raise ValueError(
                f"{', '.join(extra)} cannot be combined with {self.kind if self.kind != 'text' else 'src/tgt'}"
            )
        if self.kind == "text" and not (self.src and self.tgt):
            raise ValueError("needs src and tgt, or tsv, or jsonl, or hub")
        if self.kind == "tsv":
            self._check_columns()
        return self

    def _check_columns(self) -> None:
        src, tgt = self.src_column or 0, 1 if self.tgt_column is None else self.tgt_column
        if isinstance(src, str) or isinstance(tgt, str):
            raise ValueError("src_column and tgt_column of a TSV are numbers, counted from 0")
        if src == tgt:
            raise ValueError(f"src_column and tgt_column are both {src}: the model would learn to copy")


class FilterConfig(Section):
    """Which training pairs are left out as noise; dev and test never are."""

    length_ratio: Annotated[float, Field(ge=1, le=10**6)] | None = Field(
        None, description="most subword tokens of the longer side for one of the shorter; null: any"
    )
    identical: bool = Field(False, description="drop pairs whose source is their target")
    duplicates: bool = Field(False, description="drop exact repetitions of an earlier pair")
    wrong_script: bool = Field(False, description="drop pairs with a side mostly in a script its language has not")


class MoreTarget(Section):
    """Another language that the same model translates into."""

    lang: LanguageOfTag = Field(description="language code of the target side")
    train: Source = Field(description="training pairs; the source side is in data.src_lang")


class DataConfig(Section):
    """Which sentence pairs, in which direction."""

    src_lang: str = Field("en", min_length=1, description="language code of the source side")
    tgt_lang: str = Field(
        "de", min_length=1, description="language code of the target side; eval's tokenizer follows it"
    )
    corpus: Literal["phrasebook"] | None = Field(None, description="an embedded corpus, instead of train/dev/test")
    train: Source | None = Field(None, description="training pairs")
    dev: Source | None = Field(None, description="pairs for validation; without them a seeded split of train is made")
    test: Source | None = Field(None, description="pairs for the final score")
    dev_size: PositiveInt = Field(1000, description="pairs split off as dev set if none is given (at most a tenth)")
    max_length: Annotated[int, Field(ge=2, le=100_000)] = Field(
        128, description="longest side in subword tokens, with </s>"
    )
    memory: Literal["auto", "ram", "disk"] = Field(
        "auto",
        description="where training pairs lie; auto: on disk above 200 MB of text, if there is a dev",
    )
    more_targets: tuple[MoreTarget, ...] = Field(
        (), description="other target languages of the same model, each chosen by a tag in front of the source"
    )
    filter: FilterConfig = Field(FilterConfig(), description="what leaves training as noise, counted")

    @model_validator(mode="after")
    def _where_from(self) -> "DataConfig":
        if (self.corpus is None) == (self.train is None):
            raise ValueError("needs exactly one of corpus and train")
        if self.corpus and (self.dev or self.test):
            raise ValueError("corpus brings its own dev and test: remove dev/test or give train instead of corpus")
        known = {"en", "de", "zh"}
        if self.corpus and (not {self.src_lang, self.tgt_lang} <= known or self.src_lang == self.tgt_lang):
            pair = f"{self.src_lang} and {self.tgt_lang}"
            raise ValueError(f"corpus phrasebook has {', '.join(sorted(known))}: choose two of them, got {pair}")
        return self

    @model_validator(mode="after")
    def _fits_on_disk(self) -> "DataConfig":
        if self.memory != "disk":
            return self
        if self.train is None or self.train.kind == "hub":
            raise ValueError("memory: disk needs train as files: src and tgt, tsv or jsonl")
        if self.dev is None:
            raise ValueError("memory: disk needs dev: none is split off from pairs that do not fit into memory")
        if self.needs_ram:
            raise ValueError(f"memory: disk and {' and '.join(self.needs_ram)} exclude each other: use memory: ram")
        return self

    @model_validator(mode="after")
    def _targets_differ(self) -> "DataConfig":
        if twice := sorted(lang for lang in set(self.targets) if self.targets.count(lang) > 1):
            raise ValueError(f"tgt_lang and more_targets name each language once, got {', '.join(twice)} twice")
        if self.more_targets and self.max_length < 3:
            raise ValueError("more_targets needs a max_length of at least 3: a tag, a token of text and </s>")
        return self

    def refuse_odd_languages(self) -> None:
        """Check the codes of a new run. Loading does not: older runs may have others, and must still translate.

        Raises:
            ConfigError: one has letters that a code has not, or the source language is also one of several targets.
        """
        for key, code in (("src_lang", self.src_lang), ("tgt_lang", self.tgt_lang)):
            if not re.fullmatch(_LANGUAGE, code):
                expected = "a code such as en, pt-BR or zh_Hans: a to z, digits, - and _"
                raise ConfigError(f"data.{key} is no language code", got=repr(code), expected=expected)
        if self.more_targets and self.src_lang in self.targets:
            hint = "the model would learn to copy for the tag of that language; leave it out"
            raise ConfigError("a language is both the source and one of several targets", got=self.src_lang, hint=hint)

    @property
    def targets(self) -> list[str]:
        """The languages that the model translates into, the main one first."""
        return [self.tgt_lang, *(target.lang for target in self.more_targets)]

    def target(self, wanted: str | None) -> str:
        """Return the language to translate into: the one that is wanted, or the main one.

        Raises:
            UserError: the model was not trained for it.
        """
        if wanted is not None and wanted not in self.targets:
            raise UserError(
                "the run does not translate into that language", got=wanted, expected=", ".join(self.targets)
            )
        return self.tgt_lang if wanted is None else wanted

    @property
    def tagged_targets(self) -> list[str]:
        """The languages that have a tag: all targets, if there are several."""
        return self.targets if self.more_targets else []

    @property
    def needs_ram(self) -> list[str]:
        """What here works only on training text in memory, by key."""
        needed = {
            "data.dev: null": self.corpus is None and self.dev is None,
            "data.more_targets": bool(self.more_targets),
            "data.filter.duplicates": self.filter.duplicates,
        }
        return [key for key, is_needed in needed.items() if is_needed]
