"""``train``: the optimisation, its limits and what it keeps."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from transformer_cli.config.section import Beam, PositiveInt, Probability, Section

Averaged = Annotated[int, Field(ge=2, le=1_000)]
Strength = Annotated[float, Field(ge=0.0, le=100.0)]


class TrainConfig(Section):
    """The optimisation, its limits and what it keeps."""

    batch_tokens: Annotated[int, Field(ge=1, le=10**8)] = Field(
        2048, description="tokens in a batch: rows x max(longest source, longest target)"
    )
    accumulate: PositiveInt = Field(1, description="batches per step; the loss is divided by the tokens of them all")
    max_steps: PositiveInt | None = Field(None, description="stop after so many optimizer steps")
    max_epochs: PositiveInt | None = Field(None, description="stop after so many passes over the data")
    max_minutes: Annotated[float, Field(gt=0, le=10**6)] | None = Field(
        None, description="time budget; turned into a step count once, from the timed steps of the warm-up"
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
