"""``decode``: how a translation is searched for."""

from typing import Annotated, Literal

from pydantic import Field

from transformer_cli.config.section import Beam, Section


class DecodeConfig(Section):
    """How a translation is searched for."""

    beam_size: Beam = Field(5, description="hypotheses kept per step; 1 is greedy search")
    length_penalty: Annotated[float, Field(ge=0, le=100)] = Field(
        1.0, description="alpha of the length normalisation; 0: none"
    )
    length_normalization: Literal["gnmt", "plain"] = Field(
        "gnmt", description="log-probability over ((5 + length) / 6)^length_penalty | over length^length_penalty"
    )
    early_stopping: bool = Field(
        False, description="stop when beam_size hypotheses have ended, not when no other can win"
    )
    max_length_ratio: Annotated[float, Field(gt=0, le=100)] = Field(
        2.0, description="target tokens allowed per source token (plus 10)"
    )
    min_length: Annotated[int, Field(ge=0, le=10**6)] = Field(1, description="target tokens before </s> is allowed")
    no_repeat_ngram: Annotated[int, Field(ge=0)] = Field(
        0, description="forbid n-grams of this size to recur; 0: allow"
    )
    shortlist: bool = Field(
        False, description="choose among the pieces that a line's source pieces go with in training; made by train"
    )
