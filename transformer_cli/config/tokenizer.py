"""``tokenizer``: how text becomes subword tokens."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from transformer_cli.config.section import Section


class TokenizerConfig(Section):
    """How text becomes subword tokens (SentencePiece)."""

    model_type: Literal["bpe", "unigram", "char"] = Field("bpe", description="segmentation model")
    vocab_size: Annotated[int, Field(ge=8, le=1_000_000)] = Field(
        4000, description="number of pieces, special ones and bytes included"
    )
    joint: bool = Field(True, description="one vocabulary for both sides")
    character_coverage: Annotated[float, Field(ge=0.98, le=1.0)] = Field(
        0.9995, description="share of characters with a piece of their own; the rest are spelled in bytes"
    )
    model: str | None = Field(None, description="a given SentencePiece model file, instead of training one")

    @model_validator(mode="after")
    def _given_model_is_joint(self) -> "TokenizerConfig":
        if self.model is not None and not self.joint:
            raise ValueError("a given model serves both sides: set joint to true")
        return self
