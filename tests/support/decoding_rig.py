"""Models to search with: a table of random probabilities, and a small Transformer."""

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from transformer_cli.checkpoint import build_model
from transformer_cli.config import Config, TokenizerConfig
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.beam import BeamSearch
from transformer_cli.decoding.constrained import ConstrainedBeam
from transformer_cli.decoding.pool import Finished, length_norm
from transformer_cli.decoding.ranking import STEPS_PER_NAT
from transformer_cli.decoding.sampling import Sampling
from transformer_cli.decoding.search import SteppedModel, search
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translator import Translator
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime, seed_stream

N_SPECIAL = 4


class TableModel:
    """Random log-probabilities that are a function of sentence and prefix; keeps the prefix of every hypothesis.

    A sentence's first source id says which row of the table it is.
    """

    def __init__(self, seed: int, vocab_size: int, scale: float = 1.0) -> None:
        self.seed, self.vocab_size, self.scale = seed, vocab_size, scale
        self.places: dict[int, list[tuple[int, ...]]] = {}  # of each busy place, of each hypothesis: sentence, <s>, ...
        self.busy_per_step: list[int] = []
        self._known: dict[tuple[int, ...], Tensor] = {}

    def log_probs(self, row: tuple[int, ...]) -> Tensor:
        if row not in self._known:
            draws = np.random.default_rng([self.seed, *row]).normal(size=self.vocab_size) * self.scale
            self._known[row] = torch.tensor(draws, dtype=torch.float32).log_softmax(-1)
        return self._known[row].clone()

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        for place, sentence in zip(places, sentences, strict=True):
            self.places[place] = [(sentence.ids[0],)]

    def release(self, places: list[int]) -> None:
        for place in places:
            del self.places[place]

    def keep(self, places: list[int]) -> None:
        self.places = {new: self.places[old] for new, old in enumerate(places) if old in self.places}

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        self.busy_per_step.append(len(self.places))
        log_probs = torch.zeros(*tokens.shape, self.vocab_size)
        for place, rows in self.places.items():
            first = len(rows) == 1
            pairs = zip(parents[place].tolist(), tokens[place].tolist(), strict=True)
            grown = [(*rows[0 if first else parent], token) for parent, token in pairs]
            log_probs[place] = torch.stack([self.log_probs(row) for row in grown])
            self.places[place] = grown
        return log_probs.flatten(0, 1)


def run_search(
    model: SteppedModel, caps: Sequence[int], how: DecodeSettings, n_places: int | None = None, **changes: object
) -> list[list[Finished]]:
    """Search sentences 0, 1, ... of a table with these caps."""
    asked = [Source([number], number=(number, 0), cap=cap) for number, cap in enumerate(caps)]
    return run_sentences(model, [replace(sentence, **changes) for sentence in asked], how, n_places)  # type: ignore[arg-type]


def run_sentences(
    model: SteppedModel, sentences: Sequence[Source], how: DecodeSettings, n_places: int | None = None
) -> list[list[Finished]]:
    n_places = n_places or max(1, len(sentences))
    longest = max((sentence.cap for sentence in sentences), default=1)
    beam = ConstrainedBeam if any(sentence.required for sentence in sentences) else BeamSearch
    chooser = (Sampling if how.sampling else beam)(n_places, longest, how)
    return search(model, chooser, sentences, n_places, refill=how.refill)


def grid(log_prob: float) -> float:
    """Round a log-probability as the search does."""
    return round(log_prob * STEPS_PER_NAT) / STEPS_PER_NAT


def settings(**changes: float) -> DecodeSettings:
    return DecodeSettings(**({"beam_size": 1, "length_penalty": 1.0, "min_length": 0} | changes))  # type: ignore[arg-type]


def forbidden(tokens: Sequence[int], n: int) -> set[int]:
    """Return the tokens that would end an n-gram which is there already."""
    if n == 0 or len(tokens) < n:
        return set()
    last = list(tokens[len(tokens) - n + 1 :])
    return {tokens[i + n - 1] for i in range(len(tokens) - n + 1) if list(tokens[i : i + n - 1]) == last}


def exhaustive(model: TableModel, sentence: int, cap: int, how: DecodeSettings) -> list[Finished]:
    """Score every hypothesis that the settings allow, best first."""

    def walk(tokens: tuple[int, ...], total: float) -> Iterator[Finished]:
        log_probs = [grid(value) for value in model.log_probs((sentence, 2, *tokens)).tolist()]
        length = len(tokens) + 1
        at_cap = length == cap
        words = [w for w in range(N_SPECIAL, model.vocab_size) if w not in forbidden(tokens, how.no_repeat_ngram)]
        if at_cap or len(tokens) >= how.min_length:
            capped = at_cap and any(log_probs[word] > log_probs[EOS] for word in words)
            score = (total + log_probs[EOS]) / length_norm(length, how)
            yield Finished(score, list(tokens), capped)
        for word in [] if at_cap else words:
            yield from walk((*tokens, word), total + log_probs[word])

    return sorted(walk((), 0.0), key=lambda hypothesis: -hypothesis.score)


def argmax_loop(model: TableModel, sentence: int, cap: int, how: DecodeSettings) -> list[int]:
    """Greedy search in its plainest form."""
    tokens: list[int] = []
    while len(tokens) + 1 < cap:
        scores = (model.log_probs((sentence, 2, *tokens)) * STEPS_PER_NAT).round()
        scores[: N_SPECIAL - 1] = -torch.inf
        scores[list(forbidden(tokens, how.no_repeat_ngram))] = -torch.inf
        if len(tokens) < how.min_length:
            scores[EOS] = -torch.inf
        token = int(scores.argmax())
        if token == EOS:
            break
        tokens.append(token)
    return tokens


WORDS = [
    "ein",
    "zwei",
    "rot",
    "haus",
    "hund",
    "katze",
    "baum",
    "see",
    "tag",
    "nacht",
    "weg",
    "bild",
    "mann",
    "frau",
    "kind",
    "rad",
    "boot",
    "wald",
    "buch",
    "stern",
]


def sentences(n: int, seed: int = 0, longest: int = 30) -> list[str]:
    """Return random sentences of very different lengths."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choices(WORDS, k=rng.randint(1, longest))) + rng.choice([".", "?", "", " !"]) for _ in range(n)
    ]


@functools.cache
def tokenizer() -> Tokenizer:
    text = sentences(200)
    return train_tokenizer(TokenizerConfig(vocab_size=400, character_coverage=1.0), text, text, lambda _: None)


def config(**changes: dict[str, object]) -> Config:
    model = {"d_model": 32, "n_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    sections = {
        "data": {"corpus": "phrasebook", "max_length": 40},
        "model": model,
        "train": {"max_steps": 1},
        "decode": {"beam_size": 3, "max_length_ratio": 1.0},
    }
    merged = {name: sections.get(name, {}) | changes.get(name, {}) for name in sections | changes}
    return Config.model_validate(merged)


def transformer(how: Config, *, weights: float = 1.0, seed: int = 0) -> Transformer:
    """Make a model; ``weights`` above 1 makes its choices pronounced and its sentences different."""
    seed_stream(seed, "init")
    model = build_model(how, tokenizer())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= weights if parameter.dim() == 2 else 1
    return model.eval()


def translator(model: Transformer, how: Config) -> Translator:
    return Translator.of_model(model, tokenizer(), how, Runtime.resolve("cpu"))


class UncachedSteps:
    """A model that decodes the whole prefix afresh at each step."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.src: dict[int, Tensor] = {}
        self.prefixes: dict[int, list[list[int]]] = {}

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        for place, sentence in zip(places, sentences, strict=True):
            self.src[place], self.prefixes[place] = torch.tensor([sentence.ids]), [[]]

    def release(self, places: list[int]) -> None:
        for place in places:
            del self.src[place], self.prefixes[place]

    def keep(self, places: list[int]) -> None:
        self.src = {new: self.src[old] for new, old in enumerate(places) if old in self.src}
        self.prefixes = {new: self.prefixes[old] for new, old in enumerate(places) if old in self.prefixes}

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        out = torch.zeros(*tokens.shape, self.model.output.out_features)
        for place, src in self.src.items():
            before = self.prefixes[place]
            pairs = zip(parents[place].tolist(), tokens[place].tolist(), strict=True)
            self.prefixes[place] = now = [[*before[parent if len(before) > 1 else 0], token] for parent, token in pairs]
            wide = src.expand(len(now), -1)
            hidden = self.model.decode(torch.tensor(now), self.model.encode(wide), wide)[:, -1]
            out[place] = self.model.project(hidden).log_softmax(-1)
        return out.flatten(0, 1)
