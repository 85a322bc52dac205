"""How one translation job searches: the recipe's ``decode`` section plus what the user overrides for this job."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from transformer_cli.config import DecodeConfig
from transformer_cli.errors import UserError
from transformer_cli.wording import counted

WIDEST = 1000  # beam
LARGEST = 2**63 - 1  # whole number that a tensor holds
_EXTRA_LENGTH = 10  # short sentences may more than double: the ratio alone would cut "Yes." short


@dataclass(frozen=True)
class DecodeSettings:
    """Settings of a translation job; ``batch_*``, ``refill`` and ``look_every`` change speed alone.

    Attributes:
        beam_size: hypotheses kept per step; 1 is greedy search.
        n_best: translations returned per line, at most ``beam_size``.
        length_penalty: alpha of the length normalisation; 0: none.
        max_length_ratio: target tokens allowed per source token, plus 10.
        length_normalization: ``gnmt``: by ((5 + length) / 6)^length_penalty; ``plain``: by length^length_penalty.
        early_stopping: end the search of a sentence when ``beam_size`` hypotheses have ended; otherwise when no other
            can win any more.
        min_length: target tokens before ``</s>`` is allowed.
        no_repeat_ngram: n-grams of this size may not recur; 0: they may.
        sampling: draw ``beam_size`` translations instead of searching the best ones.
        temperature: of the probabilities that are drawn from; below 1 the probable gets more probable.
        top_k: draw from so many most probable tokens; 0: from all.
        top_p: draw from the least set of tokens that holds this probability; 1: from all.
        seed: with a line's number, decides what is drawn for it.
        mbr: choose the one of the drawn translations that is most like the others (``risk.py``).
        batch_size: most sentences that are translated side by side.
        batch_tokens: most source tokens of them, padding counted (one sentence may be longer).
        refill: let waiting sentences take the places of finished ones.
        look_every: steps after which the search asks the device what has ended; None: what suits it (``history.py``).
        shortlist: choose among the pieces that a line's source pieces go with in training, and compute no others.
        alignment: tell which source words each translated word comes from; costs a pass over what was found.
        log_probs: tell the log-probability of each token; our engine does so anyway, CTranslate2 by one more pass.
    """

    beam_size: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    length_normalization: Literal["gnmt", "plain"] = "gnmt"
    early_stopping: bool = False
    max_length_ratio: float = 2.0
    min_length: int = 1
    no_repeat_ngram: int = 0
    sampling: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1
    mbr: bool = False
    batch_size: int = 128
    batch_tokens: int = 4096
    refill: bool = True
    look_every: int | None = None
    shortlist: bool = False
    alignment: bool = False
    log_probs: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be searched.

        Raises:
            UserError: a value is out of range, ``n_best`` exceeds ``beam_size``, or ``mbr`` has no samples.
        """
        for name in ("beam_size", "n_best"):
            self._check(name, 1 <= getattr(self, name) <= WIDEST, f"a whole number from 1 to {WIDEST}")
        for name in ("batch_size", "batch_tokens", "look_every"):
            value = getattr(self, name)
            self._check(name, value is None or value >= 1, "a whole number of at least 1")
            self._check(name, value is None or value <= LARGEST, "a whole number of at most 18 digits")
        for name in ("min_length", "no_repeat_ngram", "top_k", "seed"):
            self._check(name, getattr(self, name) >= 0, "a whole number of at least 0")
            self._check(name, getattr(self, name) <= LARGEST, "a whole number of at most 18 digits")
        self._check("temperature", 0.01 <= self.temperature <= 100, "a number from 0.01 to 100")
        self._check("top_p", 0 < self.top_p <= 1, "a number above 0, at most 1")
        self._check("length_penalty", 0 <= self.length_penalty <= 100, "a number from 0 to 100")
        self._check("max_length_ratio", 0 < self.max_length_ratio <= 100, "a number above 0, at most 100")
        if self.mbr and not self.sampling:
            raise UserError("mbr chooses among samples, and none are drawn", hint="set sampling too")
        if self.n_best > self.beam_size:
            size = "number of samples" if self.sampling else "beam size"
            raise UserError(
                "more translations are asked for than are drawn"
                if self.sampling
                else "more translations are asked for than the beam holds",
                got=f"n-best {self.n_best}, {size} {self.beam_size}",
                expected=f"n-best of at most the {size}",
                hint=f"raise the {size} to {self.n_best}, or lower n-best",
            )

    @classmethod
    def from_config(cls, decode: DecodeConfig) -> "DecodeSettings":
        """Take the recipe's values; it says nothing of ``n_best`` and of batches."""
        return cls(
            beam_size=decode.beam_size,
            length_penalty=decode.length_penalty,
            length_normalization=decode.length_normalization,
            early_stopping=decode.early_stopping,
            max_length_ratio=decode.max_length_ratio,
            min_length=decode.min_length,
            no_repeat_ngram=decode.no_repeat_ngram,
            shortlist=decode.shortlist,
        )

    def but(self, given: Mapping[str, Any]) -> "DecodeSettings":
        """Return the same settings but for what is given by name; None leaves a value as it is.

        Raises:
            UserError: see ``__post_init__``.
        """
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    @property
    def repeats(self) -> bool:
        """Whether one text may be returned twice: samples are a picture of the model's distribution."""
        return self.sampling and not self.mbr

    def max_length(self, src_length: int) -> int:
        """Return the longest translation, with ``</s>``, of a source of so many tokens, with ``</s>``."""
        return int(self.max_length_ratio * src_length) + _EXTRA_LENGTH

    def describe(self) -> str:
        """Return what a score must be read with, such as ``beam 5, length penalty 1``."""
        parts = [*self._choice(), f"length penalty {self.length_penalty:g}"]
        parts += ["plain length normalisation"] * (self.length_normalization == "plain")
        parts += [f"max length {self.max_length_ratio:g} x source + {_EXTRA_LENGTH}", f"min length {self.min_length}"]
        parts += [f"no repeated {self.no_repeat_ngram}-gram"] * bool(self.no_repeat_ngram)
        parts += ["shortlist"] * self.shortlist
        return ", ".join(parts)

    def _choice(self) -> list[str]:
        """Return how a translation is chosen."""
        if not self.sampling:
            return [f"beam {self.beam_size}", *["early stopping"] * self.early_stopping]
        parts = [counted(self.beam_size, "sample"), f"temperature {self.temperature:g}", f"seed {self.seed}"]
        parts += [f"top-k {self.top_k}"] * bool(self.top_k) + [f"top-p {self.top_p:g}"] * (self.top_p < 1)
        return [*parts, *["minimum Bayes risk by chrF"] * self.mbr]

    def _check(self, name: str, fits: bool, expected: str) -> None:
        if not fits:
            called = "the number of samples" if name == "beam_size" and self.sampling else name
            raise UserError(f"{called} is not valid", got=getattr(self, name), expected=expected)
