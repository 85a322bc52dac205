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
from transformer_cli.data.batching import Indices, TokenizedPairs, fitting, tokenize_pairs
from transformer_cli.data.corpus import Corpus, load_corpus
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.data.filters import of_like_length
from transformer_cli.data.left_out import every_dev_pair_too_long, nothing_left
from transformer_cli.data.mapped_pairs import map_pairs
from transformer_cli.data.mapped_text import MappedText
from transformer_cli.data.pairs import ParallelText, SentencePairs
from transformer_cli.data.sampling import SubwordSampler
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.data.tokenizer_training import CHECKED_LINES, train_tokenizer
from transformer_cli.errors import DataError, RunError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import seed_stream
from transformer_cli.training.ranks import Ranks
from transformer_cli.training.teachers import check_teachers
from transformer_cli.wording import counted, spelled

Parent = tuple[Transformer, Tokenizer, Config]

#: The tokenizer's trainer holds its sentences in memory, and more of them change its pieces little.
TOKENIZER_SENTENCES = 1_000_000
#: What a run may change against the one it starts from: the weights are the same whatever these say.
_FREE_IN_FINE_TUNING = {"attention", "sparse", "attention_dropout", "dropout", "word_dropout"} | {
    f"{place}_dropout" for place in ("embedding", "residual", "feed_forward")
}


@dataclass(frozen=True)
class Experiment:
    """The parts of a training, made from one configuration."""

    config: Config
    corpus: Corpus
    tokenizer: Tokenizer
    train_pairs: EpochPairs
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
        RunError: ``train.init_from`` or one of ``train.teachers`` does not fit.
    """
    ranks = ranks or Ranks()
    needs_ram = ["train.subword_sampling"] if config.train.subword_sampling else []
    corpus = ranks.together(lambda: load_corpus(config.data, config.train.seed, needs_ram))
    ranks.refuse_difference("training or dev data", corpus.fingerprint)
    for warning in corpus.notes:
        note(f"warning: {warning}")
    parent = None if tokenizer is not None else ranks.together(lambda: _parent(config, note))
    made = tokenizer or (parent[1] if parent else ranks.from_main(lambda: _tokenizer(config, corpus, note)))
    return ranks.together(lambda: _assembled(config, corpus, made, parent, note))


def _assembled(
    config: Config, corpus: Corpus, tokenizer: Tokenizer, parent: Parent | None, note: Callable[[str], None]
) -> Experiment:
    if config.train.subword_sampling and not tokenizer.can_sample():
        raise DataError("train.subword_sampling needs a BPE or unigram tokenizer", got="a model of characters or words")
    check_teachers(config, tokenizer)
    train_pairs, dropped = _train_pairs(config, corpus, tokenizer, note)
    tag = _tag(config, tokenizer, config.data.tgt_lang)
    dev_pairs, _ = tokenize_pairs(corpus.dev, tokenizer, config.data.max_length, tag)
    if not len(train_pairs):
        raise nothing_left(config.data, dropped, len(corpus.dev))
    if not len(dev_pairs.src):
        raise every_dev_pair_too_long(config.data)
    _warn_of_single_pairs(train_pairs.plain, config.train.batch_tokens, note)
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
    is_given = config.tokenizer.model is not None  # and only looked at
    learned_from = sample(corpus.all_train, CHECKED_LINES if is_given else TOKENIZER_SENTENCES // 2, config.train.seed)
    if len(learned_from) < len(corpus.all_train) and not is_given:
        note(f"the tokenizer learns from {len(learned_from):,} of {len(corpus.all_train):,} pairs, drawn by train.seed")
    return train_tokenizer(config.tokenizer, learned_from.src, learned_from.tgt, note, config.data.tagged_targets)


def sample(text: SentencePairs, size: int, seed: int) -> SentencePairs:
    """Return at most ``size`` pairs in their order, drawn by a seed; all of them if there are no more."""
    if len(text) <= size:
        return text
    chosen = np.zeros(len(text), bool)
    chosen[np.random.default_rng([seed, size]).choice(len(text), size, replace=False, shuffle=False)] = True
    return ParallelText(*(list(compress(side, chosen)) for side in (text.src, text.tgt)))


def _train_pairs(
    config: Config, corpus: Corpus, tokenizer: Tokenizer, note: Callable[[str], None]
) -> tuple[EpochPairs, dict[str, int]]:
    """Tokenise, drop what is too long, and say what each epoch makes of the rest."""
    data, train, text = config.data, config.train, corpus.all_train
    plain, kept = _short_pairs(config, corpus, tokenizer, note)
    dropped = {**corpus.dropped, f"longer than data.max_length {data.max_length}": len(text) - len(plain)}
    if (ratio := data.filter.length_ratio) is not None:
        n_tags = 1 if data.more_targets else 0  # a tag is no text
        alike = of_like_length(plain.src_lengths - n_tags, plain.tgt_lengths, ratio)
        dropped[f"lengths differ by more than data.filter.length_ratio {ratio:g}"] = len(plain) - len(alike)
        plain, kept = plain.select(alike), kept[alike]
    if train.subword_sampling == 0.0 or isinstance(text, MappedText):
        return EpochPairs(plain, bidirectional_epochs=train.bidirectional_epochs), dropped
    sampler = SubwordSampler(
        tokenizer,
        train.subword_sampling,
        samples_src=train.sampled_sides != "target",
        samples_tgt=train.sampled_sides != "source",
        seed=train.seed,
        max_length=data.max_length,
        n_tags=1 if data.more_targets else 0,
    )
    text = text.select(kept.tolist())
    reading = EpochPairs(plain, bidirectional_epochs=train.bidirectional_epochs, text=text, sampler=sampler)
    return reading, dropped


def _short_pairs(
    config: Config, corpus: Corpus, tokenizer: Tokenizer, note: Callable[[str], None]
) -> tuple[TokenizedPairs, Indices]:
    """Return the tokenised pairs that are short enough, and their places in the text."""
    data = config.data
    if isinstance(corpus.train, MappedText):
        mapped, _ = map_pairs(corpus.train, tokenizer, data.max_length, note)
        return mapped, np.arange(len(mapped))
    everything, _ = tokenize_pairs(corpus.train, tokenizer, None, _tag(config, tokenizer, data.tgt_lang))
    for language, pairs in corpus.more.items():
        everything += tokenize_pairs(pairs, tokenizer, None, _tag(config, tokenizer, language))[0]
    kept = fitting(everything, data.max_length)
    return everything.select(kept), kept


def _tag(config: Config, tokenizer: Tokenizer, language: str) -> int | None:
    return tokenizer.tag(language) if config.data.more_targets else None


def _warn_of_single_pairs(pairs: TokenizedPairs, batch_tokens: int, note: Callable[[str], None]) -> None:
    """Say that batches are none, if two pairs of like length seldom fit into one."""
    alone = int((2 * np.maximum(pairs.src_lengths, pairs.tgt_lengths) > batch_tokens).sum())
    if len(pairs) > 1 and 2 * alone > len(pairs):
        told = f"{alone:,} of {counted(len(pairs), 'pair')} make a batch of one: two have more than train.batch_tokens"
        note(f"warning: {told} {batch_tokens}; raise it")


def _refuse_other_architecture(config: Config, parent: Config) -> None:
    mine, theirs = _architecture(config), _architecture(parent)
    if differing := [key for key in mine if mine[key] != theirs[key]]:
        raise RunError(
            "train.init_from has another architecture",
            where=str(Path(str(config.train.init_from))),
            got=", ".join(f"{key} {spelled(mine[key])}" for key in differing),
            expected=", ".join(f"{key} {spelled(theirs[key])}" for key in differing),
            hint="fine-tuning takes the architecture of the run it starts from",
        )


def _architecture(config: Config) -> dict[str, object]:
    """Return what decides which weights there are, and of which shapes."""
    model = config.model
    mixes = {"attention.encoder": "linformer" if model.attention.encoder == "linformer" else "another"}  # has weights
    keys = {f"model.{key}": value for key, value in (model.model_dump(exclude=_FREE_IN_FINE_TUNING) | mixes).items()}
    return keys | {"data.max_length": config.data.max_length if model.ends_at_max_length else None}
