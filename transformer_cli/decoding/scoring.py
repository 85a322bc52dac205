"""What given translations are worth to a model: one pass over all their tokens, instead of a search.

Legend: B pairs, S source length, T target length, D d_model, V vocabulary.

The values are those that the search would have reported, but for the last bits: log-probabilities of the whole
vocabulary, whatever a search must not choose. Pairs share a batch only if their sources and their targets have one
canonical length each (``model_steps.py``), so that a pair's value does not depend on its neighbours.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_cli.data.tokenizer import BOS, EOS
from transformer_cli.decoding.ensemble import mean_log_probs, shortest_positions
from transformer_cli.decoding.model_steps import answering, canonical_length, padded
from transformer_cli.decoding.pool import Finished, length_norm
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

_ROWS = 512  # of logits at once: a multiple of 16


@dataclass(frozen=True)
class Pair:
    """A source and its translation, as ids."""

    src: Sequence[int]  # </s> at the end
    tgt: Sequence[int]  # without <s> and </s>


def score_pairs(
    models: Sequence[Transformer], runtime: Runtime, pairs: Sequence[Pair], settings: DecodeSettings
) -> list[Finished]:
    """Return each translation with its score and the log-probability of each token, and of ``</s>``.

    Args:
        models: one, or several that translate together; left in their modes.
        runtime: device and precision.
        pairs: neither side longer than the models' positions.
        settings: length normalisation, and how large a batch may be.
    """
    found: list[Finished | None] = [None] * len(pairs)
    with answering(models, runtime):
        for numbers, lengths in _batches(pairs, shortest_positions(models), settings):
            batch = [pairs[number] for number in numbers]
            for number, values in zip(numbers, _values(models, runtime, batch, lengths), strict=True):
                score = sum(values) / length_norm(len(values), settings)
                found[number] = Finished(score, list(pairs[number].tgt), False, values)
    return [finished for finished in found if finished is not None]


def _batches(
    pairs: Sequence[Pair], limit: int | None, settings: DecodeSettings
) -> Iterator[tuple[list[int], tuple[int, int]]]:
    """Yield the numbers of pairs that share a batch, and the lengths S and T of both sides; long ones first."""
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        groups[canonical_length(len(pair.src), limit), canonical_length(len(pair.tgt) + 1, limit)].append(number)
    for lengths in sorted(groups, reverse=True):
        numbers, size = groups[lengths], max(1, min(settings.batch_size, settings.batch_tokens // max(lengths)))
        yield from ((numbers[start : start + size], lengths) for start in range(0, len(numbers), size))


def _values(
    models: Sequence[Transformer], runtime: Runtime, pairs: Sequence[Pair], lengths: tuple[int, int]
) -> Iterator[list[float]]:
    """Yield the log-probabilities of each pair's target tokens and of ``</s>``."""
    both = lengths[::-1]
    src = padded([pair.src for pair in pairs], *lengths).to(runtime.device)  # [B, S]
    tgt_in = padded([[BOS, *pair.tgt] for pair in pairs], *both).to(runtime.device)  # [B, T]
    wanted = padded([[*pair.tgt, EOS] for pair in pairs], *both).to(runtime.device)  # [B, T]
    values = mean_log_probs([_of_model(model, runtime, src, tgt_in, wanted) for model in models])
    for pair, row in zip(pairs, values.tolist(), strict=False):
        yield row[: len(pair.tgt) + 1]


def _of_model(model: Transformer, runtime: Runtime, src: Tensor, tgt_in: Tensor, wanted: Tensor) -> Tensor:
    """Return the log-probability ``[B, T]`` of what is wanted at each position."""
    with runtime.autocast():
        hidden = model.decode(tgt_in, model.encode(src), src).flatten(0, 1)  # [B * T, D]
    values = [
        _log_probs(model, runtime, rows).gather(1, ids[:, None])[:, 0]
        for rows, ids in zip(_chunks(hidden), _chunks(wanted.flatten()), strict=True)
    ]
    return torch.cat(values).view_as(wanted)


def _log_probs(model: Transformer, runtime: Runtime, hidden: Tensor) -> Tensor:
    with runtime.autocast():
        logits = model.project(hidden)
    return logits.float().log_softmax(-1)  # [rows, V]


def _chunks(rows: Tensor) -> tuple[Tensor, ...]:
    """Split rows so that no chunk is small: the last one has up to twice as many."""
    n = max(1, len(rows) // _ROWS)
    return torch.split(rows, [_ROWS] * (n - 1) + [len(rows) - _ROWS * (n - 1)])
