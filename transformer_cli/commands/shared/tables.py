"""Plain tables about data and models, as lines of text."""

from torch import nn

from transformer_cli.data.batching import token_share
from transformer_cli.experiment import Experiment
from transformer_cli.model.transformer import parameter_table
from transformer_cli.training.data_order import DataOrder


def data_table(experiment: Experiment) -> list[str]:
    """Return what is trained on, what was left out and why, and how full the batches are."""
    train, corpus, tokenizer = experiment.train_pairs, experiment.corpus, experiment.tokenizer
    settings = experiment.config.train
    order = DataOrder(train, settings.batch_tokens, 1, settings.seed)
    first, later = order.epoch(0), settings.bidirectional_epochs
    vocabulary = (
        f"{tokenizer.tgt_vocab_size}" if tokenizer.joint else f"{tokenizer.src_vocab_size} + {tokenizer.tgt_vocab_size}"
    )
    varies = "an epoch" if not (later or settings.subword_sampling) else "the first epoch"
    rows = [
        ("training pairs", f"{len(train):,}"),
        *((f"  dropped: {reason}", f"{count:,}") for reason, count in experiment.dropped.items()),
        ("dev pairs", f"{len(corpus.dev):,}"),
        ("test pairs", f"{len(corpus.test):,}"),
        ("vocabulary", vocabulary),
        (f"target tokens of {varies}", f"{first.target_tokens():,}"),
        ("batches of the first epoch", f"{len(first.batches):,}"),  # others are cut elsewhere: one more, one less
        *([(f"batches after epoch {later}", f"{order.steps_per_epoch(later):,}")] if later else []),
        ("real tokens in them", f"{token_share(first.pairs, first.batches):.1%}"),
    ]
    return _aligned(rows)


def parameters_table(model: nn.Module) -> list[str]:
    """Return the parameters of each part of the model, shared ones once, and their sum."""
    rows = parameter_table(model)
    return _aligned([(name, f"{count:,}") for name, count in [*rows, ("total", sum(count for _, count in rows))]])


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    names, values = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [f"{name:<{names}}  {value:>{values}}" for name, value in rows]
