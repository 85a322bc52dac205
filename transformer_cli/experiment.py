"""From a configuration to everything that a training needs: text, tokenizer, token pairs and a fresh model.

Used by training and by ``--dry-run``. What is done with it (steps, files) is not here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np

from transformer_cli.checkpoint import build_model, load_model
from transformer_cli.checkpoint.tensor_files import load_strictly
from transformer_cli.config import Config
from transformer_cli.data.batching import TokenizedPairs, tokenize_pairs
from transformer_cli.data.corpus import Corpus, load_corpus
from transformer_cli.data.mapped_pairs import map_pairs
from transformer_cli.data.mapped_text import MappedText
from transformer_cli.data.pairs import ParallelText, SentencePairs
from transformer_cli.data.tokenizer import Tokenizer, train_tokenizer
from transformer_cli.errors import DataError, RunError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import seed_stream
from transformer_cli.training.ranks import Ranks

Parent = tuple[Transformer, Tokenizer, Config]

#: The tokenizer's trainer holds its sentences in memory, and more of them change its pieces little.
TOKENIZER_SENTENCES = 1_000_000
#: What a run may change against the one it starts from: the weights are the same whatever these say.
_FREE_IN_FINE_TUNING = {"dropout", "attention_dropout", "attention"}


@dataclass(frozen=True)
class Experiment:
    """The parts of a training, made from one configuration."""

    config: Config
    corpus: Corpus
    tokenizer: Tokenizer
    train_pairs: TokenizedPairs
    dev_pairs: TokenizedPairs  # for the loss: without over-long pairs; BLEU is measured on corpus.dev
    dropped: dict[str, int]  # reason -> pairs left out of training
    model: Transformer


def prepare(
    config: Config, note: Callable[[str], None], tokenizer: Tokenizer | None = None, ranks: Ranks | None = None
) -> Experiment:
    """Load the text, train or load the tokenizer, tokenise, and make the model.

    Args:
        config: the resolved configuration.
        note: told about warnings.
        tokenizer: that of a run to be continued; None: as the configuration says.
        ranks: those that train together, all of them here; each prepares, but the tokenizer comes from the main one.

    Raises:
        DataError: the text cannot be used, or nothing is left of it.
        RunError: ``train.init_from`` does not fit.
    """
    ranks = ranks or Ranks()
    corpus = ranks.together(lambda: load_corpus(config.data, config.train.seed))
    ranks.refuse_difference("training or dev data", corpus.fingerprint)
    for warning in corpus.notes:
        note(f"warning: {warning}")
    parent = None if tokenizer is not None else ranks.together(lambda: _parent(config, note))
    made = tokenizer or (parent[1] if parent else ranks.from_main(lambda: _tokenizer(config, corpus, note)))
    return ranks.together(lambda: _assembled(config, corpus, made, parent))


def _assembled(config: Config, corpus: Corpus, tokenizer: Tokenizer, parent: Parent | None) -> Experiment:
    train_pairs, too_long = _tokenized(corpus.train, tokenizer, config.data.max_length)
    dev_pairs, _ = tokenize_pairs(corpus.dev, tokenizer, config.data.max_length)
    dropped = {**corpus.dropped, f"longer than data.max_length {config.data.max_length}": too_long}
    if not len(train_pairs):
        raise DataError("no training pair is left", got=_told(dropped), hint="see the counts of what was dropped")
    if not len(dev_pairs.src):
        raise DataError("every dev pair is longer than data.max_length", got=config.data.max_length)
    seed_stream(config.train.seed, "weights")
    model = build_model(config, tokenizer)
    if parent is not None:
        load_strictly(model, dict(parent[0].named_parameters()), str(config.train.init_from))
    return Experiment(config, corpus, tokenizer, train_pairs, dev_pairs, dropped, model)


def _parent(config: Config, note: Callable[[str], None]) -> Parent | None:
    if config.train.init_from is None:
        return None
    parent = load_model(config.train.init_from)
    _refuse_other_architecture(config, parent[2])
    note(f"weights and tokenizer come from {config.train.init_from}; the tokenizer section is not used")
    return parent


def _tokenizer(config: Config, corpus: Corpus, note: Callable[[str], None]) -> Tokenizer:
    if not len(corpus.train):
        raise DataError(
            "no training pair is left", got=_told(corpus.dropped), hint="see the counts of what was dropped"
        )
    learned_from = sample(corpus.train, TOKENIZER_SENTENCES // 2, config.train.seed)
    if len(learned_from) < len(corpus.train):
        note(f"the tokenizer learns from {len(learned_from):,} of {len(corpus.train):,} pairs, drawn by train.seed")
    return train_tokenizer(config.tokenizer, learned_from.src, learned_from.tgt, note)


def sample(text: SentencePairs, size: int, seed: int) -> SentencePairs:
    """Return at most ``size`` pairs in their order, drawn by a seed; all of them if there are no more."""
    if len(text) <= size:
        return text
    chosen = np.zeros(len(text), bool)
    chosen[np.random.default_rng([seed, size]).choice(len(text), size, replace=False, shuffle=False)] = True
    return ParallelText(*(list(compress(side, chosen)) for side in (text.src, text.tgt)))


def _tokenized(text: ParallelText | MappedText, tokenizer: Tokenizer, max_length: int) -> tuple[TokenizedPairs, int]:
    if isinstance(text, MappedText):
        return map_pairs(text, tokenizer, max_length)
    return tokenize_pairs(text, tokenizer, max_length)


def _told(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count} dropped: {reason}" for reason, count in dropped.items() if count) or "an empty corpus"


def _refuse_other_architecture(config: Config, parent: Config) -> None:
    mine, theirs = (c.model.model_dump(exclude=_FREE_IN_FINE_TUNING) for c in (config, parent))
    if differing := [key for key in mine if mine[key] != theirs[key]]:
        raise RunError(
            "train.init_from has another architecture",
            where=str(Path(str(config.train.init_from))),
            got=", ".join(f"model.{key} {mine[key]}" for key in differing),
            expected=", ".join(f"model.{key} {theirs[key]}" for key in differing),
            hint="fine-tuning takes the architecture of the run it starts from",
        )
