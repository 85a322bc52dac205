"""The one truth about every key: its type, range, default and meaning.

Reading YAML, overrides and shipped recipes is ``recipe.py``; here is only what a valid experiment is.
Combinations that mean nothing are refused by name in the validators at the end of each section.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Depth = Annotated[int, Field(ge=1, le=1_000)]
Beam = Annotated[int, Field(ge=1, le=1_000)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Column = Annotated[
    int | str, BeforeValidator(lambda text: int(text) if isinstance(text, str) and text.isdecimal() else text)
]
Implementation = Literal["naive", "sdpa"]


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

    @model_validator(mode="after")
    def _where_from(self) -> "DataConfig":
        if (self.corpus is None) == (self.train is None):
            raise ValueError("needs exactly one of corpus and train")
        if self.corpus and (self.dev or self.test):
            raise ValueError("corpus brings its own dev and test: remove dev/test or give train instead of corpus")
        if self.memory == "disk" and (self.train is None or self.train.kind == "hub"):
            raise ValueError("memory: disk needs train as files: src and tgt, tsv or jsonl")
        if self.memory == "disk" and self.dev is None:
            raise ValueError("memory: disk needs dev: none is split off from pairs that do not fit into memory")
        known = {"en", "de", "zh"}
        if self.corpus and (not {self.src_lang, self.tgt_lang} <= known or self.src_lang == self.tgt_lang):
            pair = f"{self.src_lang} and {self.tgt_lang}"
            raise ValueError(f"corpus phrasebook has {', '.join(sorted(known))}: choose two of them, got {pair}")
        return self


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


class AttentionPlaces(Section):
    """Which implementation computes attention, for each of its three places."""

    encoder: Implementation = Field("sdpa", description="encoder self-attention")
    decoder: Implementation = Field("sdpa", description="masked decoder self-attention")
    cross: Implementation = Field("sdpa", description="encoder-decoder attention")


def _spread(value: object) -> object:
    return dict.fromkeys(AttentionPlaces.model_fields, value) if isinstance(value, str) else value


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
    attention_dropout: Probability = Field(
        0.0, description="dropout on attention weights (above 0 there is no flash kernel)"
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field("relu", description="non-linearity of feed-forward layers")
    bias: bool = Field(True, description="bias in the linear layers of attention and feed-forward")
    norm_placement: Literal["pre", "post"] = Field("pre", description="LayerNorm before or after each sub-layer")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="positional encoding")
    attention: Annotated[AttentionPlaces, BeforeValidator(_spread)] = Field(
        AttentionPlaces(), description="naive (the equations) or sdpa (fused kernels), for all places or each"
    )
    attention_scale: bool = Field(True, description="divide scores by the square root of d_k")
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


class TrainConfig(Section):
    """The optimisation, its limits and what it keeps."""

    batch_tokens: Annotated[int, Field(ge=1, le=10**8)] = Field(
        2048, description="tokens in a batch: rows x max(longest source, longest target)"
    )
    accumulate: PositiveInt = Field(1, description="batches per step; the loss is divided by the tokens of them all")
    max_steps: PositiveInt | None = Field(None, description="stop after so many optimizer steps")
    max_epochs: PositiveInt | None = Field(None, description="stop after so many passes over the data")
    max_minutes: Annotated[float, Field(gt=0, le=10**6)] | None = Field(
        None, description="time budget; turned into a step count once, from the first timed steps"
    )
    lr: Annotated[float, Field(gt=0)] = Field(0.002, description="peak learning rate")
    weight_decay: Annotated[float, Field(ge=0)] = Field(
        0.0, description="AdamW's decoupled weight decay, on matrices only"
    )
    warmup_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(400, description="steps of linear warm-up from zero")
    schedule: Literal["inverse_sqrt", "linear", "cosine"] = Field("inverse_sqrt", description="decay after the warm-up")
    label_smoothing: Probability = Field(0.1, description="probability mass spread over the vocabulary")
    clip_norm: Annotated[float, Field(gt=0)] | None = Field(1.0, description="largest gradient norm; null: no clipping")
    amp: Literal["auto", "off", "bf16", "fp16"] = Field(
        "auto", description="mixed precision; auto: bf16 where it is native and pays"
    )
    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="exponential moving average of the weights; validated and saved instead of them"
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(1, description="seed of weights, data order and dropout")
    validate_every: PositiveInt = Field(500, description="steps between validations; the last step always validates")
    save_every: PositiveInt = Field(500, description="steps between checkpoints; the last step always saves")
    log_every: PositiveInt = Field(50, description="steps between progress lines")
    keep_last: PositiveInt = Field(2, description="newest checkpoints kept")
    keep_best: Annotated[int, Field(ge=0)] = Field(1, description="best checkpoints kept besides")
    patience: PositiveInt | None = Field(
        None, description="validations without a better stop_metric before stopping early"
    )
    stop_metric: Literal["bleu", "loss"] = Field("bleu", description="which dev metric chooses the best model")
    validate_beam_size: Beam = Field(1, description="beam of validation's translations (1: greedy)")
    max_bad_steps: PositiveInt = Field(10, description="non-finite steps in a row before the run gives up")
    init_from: str | None = Field(None, description="run whose weights and tokenizer this one starts from")

    @model_validator(mode="after")
    def _has_an_end(self) -> "TrainConfig":
        if self.max_steps is None and self.max_epochs is None and self.max_minutes is None:
            raise ValueError("needs at least one of max_steps, max_epochs and max_minutes")
        return self


class DecodeConfig(Section):
    """How a translation is searched for."""

    beam_size: Beam = Field(5, description="hypotheses kept per step; 1 is greedy search")
    length_penalty: Annotated[float, Field(ge=0, le=100)] = Field(
        1.0, description="alpha of GNMT's length normalisation; 0: none"
    )
    max_length_ratio: Annotated[float, Field(gt=0, le=100)] = Field(
        2.0, description="target tokens allowed per source token (plus 10)"
    )
    min_length: Annotated[int, Field(ge=0, le=10**6)] = Field(1, description="target tokens before </s> is allowed")
    no_repeat_ngram: Annotated[int, Field(ge=0)] = Field(
        0, description="forbid n-grams of this size to recur; 0: allow"
    )


class Config(Section):
    """A whole experiment."""

    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig
    decode: DecodeConfig = DecodeConfig()

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
        return self


#: Keys that may differ between a run and its continuation; every other change is refused by name.
RESUMABLE = frozenset(
    [f"decode.{key}" for key in DecodeConfig.model_fields]
    + [f"train.{key}" for key in ("max_steps", "max_epochs", "max_minutes", "patience", "stop_metric", "max_bad_steps")]
    + [f"train.{key}" for key in ("validate_every", "validate_beam_size", "save_every", "log_every")]
    + [f"train.{key}" for key in ("keep_last", "keep_best")]
    + ["data.memory"]
)
