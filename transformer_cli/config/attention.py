"""``model.attention`` and ``model.sparse``: how attention is computed, and which keys a sparse one looks at."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from transformer_cli.config.section import Section

Implementation = Literal["naive", "sdpa", "flash", "linformer", "sparse"]
Tokens = Annotated[int, Field(ge=1, le=65_536)]

#: What each pattern reads, besides its name.
_KEYS_OF_A_PATTERN = {
    "window": {"window", "global_tokens"},
    "dilated": {"window", "global_tokens", "dilation"},
    "bigbird": {"window", "global_tokens", "random_blocks", "block", "seed"},
    "blocks": {"block"},
}


class AttentionPlaces(Section):
    """Which implementation computes attention, for each of its three places."""

    encoder: Implementation = Field("sdpa", description="encoder self-attention")
    decoder: Implementation = Field("sdpa", description="masked decoder self-attention")
    cross: Implementation = Field("sdpa", description="encoder-decoder attention")


class SparseConfig(Section):
    """Which keys a query sees in ``sparse`` attention; each pattern reads some of the keys."""

    pattern: Literal["window", "dilated", "bigbird", "blocks"] = Field("window", description="which keys are seen")
    window: Tokens = Field(128, description="keys on each side of a query, itself not counted")
    dilation: Tokens = Field(2, description="distance between two of these keys; pattern dilated")
    global_tokens: Annotated[int, Field(ge=0, le=65_536)] = Field(
        0, description="first tokens that see everything and are seen by all"
    )
    random_blocks: Annotated[int, Field(ge=0, le=1_000)] = Field(
        1, description="drawn blocks of keys on each side of a block of queries; pattern bigbird"
    )
    block: Tokens = Field(64, description="tokens of a block; patterns bigbird and blocks")
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(1, description="which blocks are drawn; pattern bigbird")

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> "SparseConfig":
        fields = type(self).model_fields
        changed = {name for name in fields if getattr(self, name) != fields[name].default} - {"pattern"}
        if vain := sorted(changed - _KEYS_OF_A_PATTERN[self.pattern]):
            raise ValueError(f"{' and '.join(vain)} would do nothing: pattern {self.pattern} does not read it")
        return self
