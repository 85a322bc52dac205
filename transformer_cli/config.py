"""The one truth about every key: its type, range, default and meaning.

Reading YAML, overrides and shipped recipes is ``recipe.py``; here is only what a valid experiment is.
Combinations that mean nothing are refused by name in the validators at the end of each section.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from transformer_cli.config_data import FilterConfig, MoreTarget, Section, Source

PositiveInt = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=1, le=65_536)]
Depth = Annotated[int, Field(ge=1, le=1_000)]
Beam = Annotated[int, Field(ge=1, le=1_000)]
Averaged = Annotated[int, Field(ge=2, le=1_000)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Strength = Annotated[float, Field(ge=0.0, le=100.0)]
Implementation = Literal["naive", "sdpa"]


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
    def _targets_differ(self) -> "DataConfig":
        if twice := sorted(lang for lang in set(self.targets) if self.targets.count(lang) > 1):
            raise ValueError(f"tgt_lang and more_targets name each language once, got {', '.join(twice)} twice")
        if self.more_targets and self.max_length < 3:
            raise ValueError("more_targets needs a max_length of at least 3: a tag, a token of text and </s>")
        return self

    @property
    def targets(self) -> list[str]:
        """The languages that the model translates into, the main one first."""
        return [self.tgt_lang, *(target.lang for target in self.more_targets)]

    @property
    def tagged_targets(self) -> list[str]:
        """The languages that have a tag: all targets, if there are several."""
        return self.targets if self.more_targets else []


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
    embedding_dropout: Probability | None = Field(None, description="dropout on embeddings; null: as dropout")
    residual_dropout: Probability | None = Field(None, description="dropout on sub-layer outputs; null: as dropout")
    feed_forward_dropout: Probability | None = Field(None, description="dropout inside feed-forward; null: as dropout")
    word_dropout: Probability = Field(0.0, description="dropout of the whole embedding of a token, on both sides")
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
    qk_norm: bool = Field(False, description="LayerNorm of each head's queries and keys before their product")
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

    def dropout_at(self, place: Literal["embedding", "residual", "feed_forward"]) -> float:
        """Return the dropout probability of a place: its own, or that of all places."""
        own: float | None = getattr(self, f"{place}_dropout")
        return self.dropout if own is None else own


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
    optimizer: Literal["adamw", "muon"] = Field(
        "adamw", description="adamw, or muon for the matrices inside the layers and adamw for the rest"
    )
    muon_lr: Annotated[float, Field(gt=0)] | None = Field(
        None, description="peak learning rate of Muon's matrices; null: lr, as both make steps of one size"
    )
    muon_momentum: Probability = Field(0.95, description="share of Muon's momentum kept from step to step")
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="decoupled weight decay, on matrices only")
    warmup_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(400, description="steps of linear warm-up from zero")
    schedule: Literal["inverse_sqrt", "linear", "cosine", "trapezoidal"] = Field(
        "inverse_sqrt", description="decay after the warm-up; trapezoidal: a constant rate first, then a linear decay"
    )
    decay_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.2, description="share of the steps, at the end, in which the trapezoidal schedule decays"
    )
    label_smoothing: Probability = Field(0.1, description="probability mass spread over the vocabulary")
    r_drop: Strength = Field(0.0, description="alpha of R-Drop: two dropouts of a batch shall agree; 0: off")
    simcut: Strength = Field(0.0, description="alpha of SimCut: whole and cut sentences shall agree; 0: off")
    simcut_cutoff: Annotated[float, Field(gt=0, lt=1)] = Field(0.05, description="probability that SimCut cuts a token")
    teachers: list[str] = Field([], description="runs with this tokenizer, whose mean prediction is learned too")
    distill: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="weight of the teachers against the data")
    clip_norm: Annotated[float, Field(gt=0)] | None = Field(1.0, description="largest gradient norm; null: no clipping")
    subword_sampling: Probability = Field(
        0.0, description="other pieces in each epoch: BPE-dropout's probability, unigram's alpha; 0: the usual ones"
    )
    sampled_sides: Literal["both", "source", "target"] = Field("both", description="whose pieces are sampled")
    bidirectional_epochs: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="first epochs that read each pair in both directions"
    )
    amp: Literal["auto", "off", "bf16", "fp16"] = Field(
        "auto", description="mixed precision; auto: bf16 where it is native and pays"
    )
    checkpointing: Literal["none", "attention", "layer"] = Field(
        "none", description="what is computed again in the backward pass instead of being kept in memory"
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
    average_last: Averaged | None = Field(
        None, description="at the end, try the mean of the weights of so many newest checkpoints"
    )
    average_best: Averaged | None = Field(
        None, description="at the end, try the mean of the weights of so many best validated checkpoints"
    )
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
        if self.sampled_sides != "both" and self.subword_sampling == 0.0:
            raise ValueError(f"sampled_sides {self.sampled_sides} means nothing while subword_sampling is 0")
        return self

    @model_validator(mode="after")
    def _nothing_is_set_in_vain(self) -> "TrainConfig":
        if self.optimizer != "muon" and (self.muon_lr is not None or self.muon_momentum != 0.95):
            raise ValueError("muon_lr and muon_momentum need optimizer: muon")
        if self.schedule != "trapezoidal" and self.decay_share != 0.2:
            raise ValueError(f"decay_share needs schedule: trapezoidal; {self.schedule} decays from the warm-up on")
        if self.average_last is not None and self.average_best is not None:
            raise ValueError("average_last and average_best exclude each other: set one of them to null")
        return self

    @model_validator(mode="after")
    def _objectives_fit(self) -> "TrainConfig":
        if self.r_drop and self.simcut:
            raise ValueError("r_drop and simcut exclude each other: both compare two passes over a batch; set one to 0")
        if not self.simcut and self.simcut_cutoff != type(self).model_fields["simcut_cutoff"].default:
            raise ValueError("simcut_cutoff does nothing while simcut is 0")
        if bool(self.teachers) != bool(self.distill):
            raise ValueError("teachers and distill belong together: give runs and a weight above 0, or neither")
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
        if self.train.bidirectional_epochs and self.model.tie_embeddings != "all":
            raise ValueError(
                "train.bidirectional_epochs reads each side as source and as target: "
                "it needs tokenizer.joint: true and model.tie_embeddings: all"
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
        places = [model.dropout_at(place) for place in ("embedding", "residual", "feed_forward")]
        if self.train.r_drop and not any([*places, model.word_dropout, model.attention_dropout]):
            raise ValueError("train.r_drop compares two dropouts of a batch, and there is none: raise model.dropout")
        return self


#: Keys that may differ between a run and its continuation; every other change is refused by name.
RESUMABLE = frozenset(
    [f"decode.{key}" for key in DecodeConfig.model_fields]
    + [f"train.{key}" for key in ("max_steps", "max_epochs", "max_minutes", "patience", "stop_metric", "max_bad_steps")]
    + [f"train.{key}" for key in ("validate_every", "validate_beam_size", "save_every", "log_every")]
    + [f"train.{key}" for key in ("keep_last", "keep_best", "average_last", "average_best", "checkpointing")]
)
