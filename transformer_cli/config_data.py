"""The sections inside ``data``: where pairs come from, which are noise, and other target languages.

Part of ``config.py``, which is about everything else.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Column = Annotated[
    int | str, BeforeValidator(lambda text: int(text) if isinstance(text, str) and text.isdecimal() else text)
]
LanguageOfTag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class Section(BaseModel):
    """A group of keys: unknown keys are refused, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


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
        if self.kind == "tsv" and any(isinstance(column, str) for column in (self.src_column, self.tgt_column)):
            raise ValueError("src_column and tgt_column of a TSV are numbers, counted from 0")
        return self


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
