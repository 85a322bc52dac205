"""The one truth about every key: its type, range, default and meaning.

One file a section; here is the whole, and which sections do not go together. Combinations that mean nothing are refused
by name in the validators at the end of each section. Reading YAML, overrides and shipped recipes is ``recipe.py``.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from pydantic import model_validator

from transformer_cli.config.attention import AttentionPlaces, Implementation, SparseConfig
from transformer_cli.config.data import DataConfig, FilterConfig, MoreTarget, Source
from transformer_cli.config.decode import DecodeConfig
from transformer_cli.config.model import ModelConfig
from transformer_cli.config.section import Section
from transformer_cli.config.tokenizer import TokenizerConfig
from transformer_cli.config.train import TrainConfig

__all__ = [
    "RESUMABLE",
    "AttentionPlaces",
    "Config",
    "DataConfig",
    "DecodeConfig",
    "FilterConfig",
    "Implementation",
    "ModelConfig",
    "MoreTarget",
    "Section",
    "Source",
    "SparseConfig",
    "TokenizerConfig",
    "TrainConfig",
]


#: Where files and runs lie; what is in them has hashes of its own.
_PLACES: Any = {
    "data": {"train": True, "dev": True, "test": True, "more_targets": {"__all__": {"train", "dev", "test"}}},
    "tokenizer": {"model": True},
    "train": {"init_from": True, "teachers": True},
}


#: The keys that name them.
_OF_A_SOURCE = {"src", "tgt", "tsv", "jsonl", "hub"}
_SOURCES: Any = dict.fromkeys(("train", "dev", "test"), _OF_A_SOURCE)
_READ: Any = {**_PLACES, "data": {**_SOURCES, "more_targets": {"__all__": {"train": _OF_A_SOURCE}}}}


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with its key; the places of a list share theirs."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str):
        yield key, value


def _sha256(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class Config(Section):
    """A whole experiment."""

    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig
    decode: DecodeConfig = DecodeConfig()

    def fingerprint(self) -> str:
        """Return a SHA-256 that is equal wherever the same experiment is done, in hexadecimal.

        It is taken of the values that differ from their defaults, so that a key that is new in a later version does
        not change it, and not of the places where files and runs lie.
        """
        return _sha256(self.model_dump(mode="json", exclude=_PLACES, exclude_defaults=True))

    def places(self) -> list[tuple[str, str]]:
        """Return the files, globs and runs that the experiment reads, each with its key."""
        return list(_texts(self.model_dump(mode="json", include=_READ)))

    def model_fingerprint(self) -> str:
        """Return the same of the section ``model`` alone."""
        return _sha256(self.model.model_dump(mode="json", exclude_defaults=True))

    @model_validator(mode="before")
    @classmethod
    def _an_empty_section_is_all_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: {} if value is None and name in cls.model_fields else value for name, value in values.items()}

    @model_validator(mode="after")
    def _sides_can_share(self) -> "Config":
        if self.model.tie_embeddings == "all" and not self.tokenizer.joint:
            raise ValueError(
                "model.tie_embeddings: all needs one vocabulary: set tokenizer.joint to true, or tie decoder/none"
            )
        if self.train.bidirectional_epochs and self.model.tie_embeddings != "all":
            raise ValueError(
                "train.bidirectional_epochs reads each side as source and as target: "
                "it needs tokenizer.joint: true and model.tie_embeddings: all"
            )
        return self

    @model_validator(mode="after")
    def _text_is_where_it_is_read(self) -> "Config":
        if self.data.memory == "disk" and self.train.subword_sampling:
            raise ValueError(
                "data.memory: disk and train.subword_sampling, which cuts the text anew for every epoch, "
                "exclude each other: use data.memory: ram"
            )
        return self

    @model_validator(mode="after")
    def _tags_name_the_target(self) -> "Config":
        if self.train.bidirectional_epochs and self.data.more_targets:
            raise ValueError(
                "train.bidirectional_epochs and data.more_targets exclude each other: the source has no tag"
            )
        return self

    @model_validator(mode="after")
    def _has_pieces_to_sample(self) -> "Config":
        of_its_own = self.tokenizer.model is None and self.train.init_from is None
        if self.train.subword_sampling and of_its_own and self.tokenizer.model_type == "char":
            raise ValueError("train.subword_sampling needs tokenizer.model_type bpe or unigram, got char")
        return self

    @model_validator(mode="after")
    def _passes_differ(self) -> "Config":
        model = self.model
        if self.train.r_drop and not any([*model.dropouts().values(), model.word_dropout, model.attention_dropout]):
            raise ValueError("train.r_drop compares two dropouts of a batch, and there is none: raise model.dropout")
        return self


#: Keys that may differ between a run and its continuation; every other change is refused by name.
RESUMABLE = frozenset(
    [f"decode.{key}" for key in DecodeConfig.model_fields]
    + [f"train.{key}" for key in ("max_steps", "max_epochs", "max_minutes", "patience", "stop_metric", "max_bad_steps")]
    + [f"train.{key}" for key in ("validate_every", "validate_beam_size", "save_every", "log_every")]
    + [f"train.{key}" for key in ("keep_last", "keep_best", "average_last", "average_best", "checkpointing")]
    + ["data.memory"]
)
