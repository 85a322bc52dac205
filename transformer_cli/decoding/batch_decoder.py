"""A batch of source sentences, searched in shapes that make every row's arithmetic the same in every batch.

Legend: B sentences, S padded source length, R rows (hypotheses), V vocabulary.

A sentence's translation must not depend on its neighbours, and a matrix product is not so kind. Measured with torch
2.13 and MKL on an AVX-512 CPU, inner widths 96 to 2048, outputs to 8000, one to eight threads:

* its rows are equal to the last bit for every multiple of 8 rows from 16 on, wherever a row stands; 1 to 8, 12, 20 or
  33 rows differ (8 alone from an inner width of 192 on). So rows are filled up with copies to such a number;
* from an inner width of 768 on, products of few rows (up to 256) are also cut among threads, so that their sums change
  with rows and threads: models that wide are run on one thread;
* padding the source moves last bits: a source is padded to a length that depends on its own length alone, and only
  sources of one padded length share a batch;
* attention (naive and fused), norms and softmax are equal for any number of rows and threads.

On a GPU or another CPU none of this is promised; there the grid of ``ranking.py`` only makes differences rare.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transformer_cli.data.tokenizer import PAD
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.search import beam_search
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

_MULTIPLE = 8
_FEWEST = 16
_WIDEST_SHARED = 512  # inner width up to which products are equal on any number of threads (measured: 640)


def canonical_length(length: int, limit: int | None) -> int:
    """Return the padded length of a source of this length; ``limit`` is the model's number of positions."""
    padded = max(_FEWEST, -(-length // _MULTIPLE) * _MULTIPLE)
    return padded if limit is None else min(padded, limit)


def canonical_rows(n: int, width: int = 1) -> int:
    """Return the least number of rows from n on, each of ``width`` vectors, that makes canonical matrix products."""
    multiple = _MULTIPLE // math.gcd(_MULTIPLE, width)
    return max(-(-n // multiple), -(-_FEWEST // (width * multiple))) * multiple


def length_batches(lengths: Sequence[int], batch_size: int, batch_tokens: int) -> list[list[int]]:
    """Group sentences (by number) of one canonical length each into batches, short ones first.

    Args:
        lengths: canonical length of each sentence.
        batch_size: most sentences in a batch.
        batch_tokens: most tokens in a batch, padding counted; a sentence longer than that gets a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda number: lengths[number])
    batches: list[list[int]] = []
    for number in order:
        length = lengths[number]
        full = (
            not batches
            or lengths[batches[-1][0]] != length
            or len(batches[-1]) >= min(batch_size, batch_tokens // length)
        )
        if full:
            batches.append([])
        batches[-1].append(number)
    return batches


class BatchDecoder:
    """Searches translations of token ids with a model."""

    def __init__(self, model: Transformer, runtime: Runtime) -> None:
        self._model, self._runtime = model, runtime

    def search(self, sources: Sequence[Sequence[int]], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each source, best first.

        The model is left in the mode (training or not) and the random generators in the state in which they were.

        Args:
            sources: source ids, ``</s>`` at the end, none longer than the model's positions.
            settings: how to search, and how large a batch may be.
        """
        lengths = [canonical_length(len(source), self._model.max_length) for source in sources]
        found: list[list[Finished]] = [[] for _ in sources]
        with _evaluating(self._model), torch.inference_mode(), _canonical_threads(self._model, self._runtime):
            for batch in length_batches(lengths, settings.batch_size, settings.batch_tokens):
                results = self._search_batch([sources[number] for number in batch], lengths[batch[0]], settings)
                for number, result in zip(batch, results, strict=True):
                    found[number] = result
        return found

    def _search_batch(
        self, sources: list[Sequence[int]], length: int, settings: DecodeSettings
    ) -> list[list[Finished]]:
        rows = _fill_up(torch.arange(len(sources)), canonical_rows(len(sources), length))
        src = torch.full((len(sources), length), PAD)
        for row, source in zip(src, sources, strict=True):
            row[: len(source)] = torch.tensor(source)
        steps = ModelSteps(self._model, src[rows].to(self._runtime.device), len(sources), self._runtime)
        limit = self._model.max_length or math.inf
        caps = [int(min(settings.max_length(len(source)), limit)) for source in sources]
        return beam_search(steps.step, steps.reorder, caps, settings, self._runtime.device)


class ModelSteps:
    """The two callbacks of the search: a model with its cache, filled up to canonical rows."""

    def __init__(self, model: Transformer, src: Tensor, n_sentences: int, runtime: Runtime) -> None:
        """Encode sources ``[B, S]``, of which the first ``n_sentences`` are searched; others only fill up."""
        self._model, self._runtime = model, runtime
        with runtime.autocast():
            self._cache = model.start_cache(model.encode(src), src)
        self._n_rows = len(src)
        self.reorder(torch.arange(n_sentences, device=src.device))

    def step(self, tokens: Tensor) -> Tensor:
        """Return the log-probabilities ``[R, V]``, float32, of what follows the newest tokens ``[R]``."""
        with self._runtime.autocast():
            hidden = self._model.decode_step(_fill_up(tokens, self._n_rows), self._cache)
            logits = self._model.project(hidden)[: len(tokens)]
        return logits.float().log_softmax(-1)

    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        n_rows = canonical_rows(len(rows))
        filled = _fill_up(rows, n_rows)
        if n_rows != self._n_rows or not torch.equal(filled, torch.arange(n_rows, device=rows.device)):
            self._cache.select(filled)
        self._n_rows = n_rows


def _fill_up(rows: Tensor, n: int) -> Tensor:
    """Repeat the first of the rows until there are n."""
    return torch.cat([rows, rows[:1].expand(n - len(rows))])


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _canonical_threads(model: nn.Module, runtime: Runtime) -> Iterator[None]:
    """Run wide models on one thread: see the module's docstring."""
    before = torch.get_num_threads()
    widest = max((module.in_features for module in model.modules() if isinstance(module, nn.Linear)), default=0)
    if runtime.device.type != "cpu" or widest <= _WIDEST_SHARED or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
