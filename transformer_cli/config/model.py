"""``model``: the Transformer."""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from transformer_cli.config.attention import AttentionPlaces, SparseConfig
from transformer_cli.config.combinations import refuse_meaningless
from transformer_cli.config.section import Probability, Section

_LARGEST_FACTOR = 1e6
Width = Annotated[int, Field(ge=1, le=65_536)]
Depth = Annotated[int, Field(ge=1, le=1_000)]
Factor = Annotated[float, Field(gt=0, le=_LARGEST_FACTOR)]
DropoutPlace = Literal["embedding", "residual", "feed_forward"]
Positions = Literal["sinusoidal", "learned", "rotary", "transformer_xl", "t5", "alibi", "none"]


def _spread(value: object) -> object:
    return dict.fromkeys(AttentionPlaces.model_fields, value) if isinstance(value, str) else value


def _factor(value: object) -> bool | float:
    """Tell ``true`` from ``1``: recipes come as text, and a boolean would take either."""
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    try:
        number = {"true": True, "false": False}[text] if text in ("true", "false") else float(text)
    except ValueError:
        number = 0.0
    if number is False or 0 < number <= _LARGEST_FACTOR:
        return number
    raise ValueError(f"got {value}, expected true, false, or a factor above 0 and up to {_LARGEST_FACTOR:,.0f}")


class ModelConfig(Section):
    """The Transformer, in the words of Vaswani et al. 2017."""

    d_model: Width = Field(128, description="width of the residual stream")
    n_heads: Width = Field(4, description="attention heads")
    d_k: Width | None = Field(None, description="width of a head's queries and keys; null: d_model / n_heads")
    d_v: Width | None = Field(None, description="width of a head's values; null: d_model / n_heads")
    d_ff: Width = Field(256, description="inner width of the feed-forward layers")
    encoder_layers: Depth = Field(4, description="depth of the encoder")
    decoder_layers: Depth = Field(4, description="depth of the decoder")
    dropout: Probability = Field(0.2, description="dropout on embeddings, sub-layer outputs and inside feed-forward")
    embedding_dropout: Probability | None = Field(None, description="dropout on embeddings; null: as dropout")
    residual_dropout: Probability | None = Field(None, description="dropout on sub-layer outputs; null: as dropout")
    feed_forward_dropout: Probability | None = Field(None, description="dropout inside feed-forward; null: as dropout")
    word_dropout: Probability = Field(0.0, description="dropout of the whole embedding of a token, on both sides")
    attention_dropout: Probability = Field(
        0.0, description="dropout on attention weights (above 0 there is no flash kernel)"
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field("relu", description="non-linearity of feed-forward layers")
    bias: bool = Field(True, description="bias in the linear layers of attention and feed-forward")
    norm_placement: Literal["pre", "post"] = Field("pre", description="norm before or after each sub-layer")
    norm: Literal["layer", "rms"] = Field("layer", description="LayerNorm or RMSNorm")
    positions: Positions = Field("sinusoidal", description="what tells the order: added to embeddings or in attention")
    attention: Annotated[AttentionPlaces, BeforeValidator(_spread)] = Field(
        AttentionPlaces(), description="naive (the equations), sdpa or flash for all places, or each its own"
    )
    sparse: SparseConfig = Field(SparseConfig(), description="which keys sparse attention looks at")
    linformer_rank: Annotated[int, Field(ge=1, le=65_536)] = Field(
        64, description="keys and values to which linformer projects a source"
    )
    attention_scale: Annotated[StrictBool | Factor, BeforeValidator(_factor)] = Field(
        True, description="factor of the scores; true: one over the square root of d_k; false: 1"
    )
    qk_norm: bool = Field(False, description="norm of each head's queries and keys before their product")
    zero_init: bool = Field(False, description="the last matrix of each sub-layer starts at zero")
    tie_embeddings: Literal["none", "decoder", "all"] = Field(
        "all", description="share no embeddings, the decoder's with the output layer, or all three"
    )

    @model_validator(mode="after")
    def _widths_fit(self) -> "ModelConfig":
        if self.d_model % self.n_heads and (self.d_k is None or self.d_v is None):
            raise ValueError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: give d_k and d_v, or change one"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {self.d_model}")
        return self

    @model_validator(mode="after")
    def _combinations_mean_something(self) -> "ModelConfig":
        refuse_meaningless(self)
        return self

    @property
    def ends_at_max_length(self) -> bool:
        """Whether some of its parameters belong to a position, so that it knows none beyond ``data.max_length``."""
        return self.positions == "learned" or self.attention.encoder == "linformer"

    def dropout_at(self, place: DropoutPlace) -> float:
        """Return the dropout probability of a place: its own, or that of all places."""
        own: float | None = getattr(self, f"{place}_dropout")
        return self.dropout if own is None else own

    def dropouts(self) -> dict[DropoutPlace, float]:
        """Return the dropout probability of every place."""
        return {place: self.dropout_at(place) for place in get_args(DropoutPlace)}
