"""A model as the search sees it, in shapes that make every row's arithmetic the same in every batch.

Legend: N places (a sentence each), K hypotheses of a place, S padded source length, V vocabulary.

A sentence's translation must not depend on its neighbours, and a matrix product is not so kind. Measured with torch
2.13 and MKL on an AVX-512 CPU, inner widths 96 to 2048, outputs to 8000, one to eight threads:

* its rows are equal to the last bit for every multiple of 8 rows from 16 on, wherever a row stands; 1 to 8, 12, 20 or
  33 rows differ (8 alone from an inner width of 192 on). So there are only such numbers of places;
* from an inner width of 768 on, products of few rows (up to 256) are also cut among threads, so that their sums change
  with rows and threads: models that wide are run on one thread;
* what is hidden behind the real keys moves last bits, unless all lengths are multiples of 16 (head widths 16 to 64, one
  to 48 queries): so keys are padded (``model/cache.py``), and a source is encoded at a length that depends on its own
  length alone;
* attention, norms and softmax are equal for any number of rows and threads.

On a GPU or another CPU none of this is promised; there the grid of ``ranking.py`` only makes differences rare.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from transformer_cli.data.tokenizer import PAD
from transformer_cli.decoding.own_output import OwnOutput
from transformer_cli.decoding.source import Source
from transformer_cli.model.cache import padded_keys
from transformer_cli.model.packed import PackedLayer
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

_MULTIPLE = 8
_FEWEST = 16
_WIDEST_SHARED = 512  # inner width up to which products are equal on any number of threads (measured: 640)


def canonical_length(length: int, limit: int | None) -> int:
    """Return the padded length of a source of this length; ``limit`` is the model's number of positions."""
    padded = -(-length // _MULTIPLE) * _MULTIPLE
    return padded if limit is None else min(padded, limit)


def canonical_places(n: int, width: int = 1) -> int:
    """Return the least number of places from n on, of ``width`` rows each, that makes canonical matrix products."""
    multiple = _MULTIPLE // math.gcd(_MULTIPLE, width)
    return max(-(-n // multiple), -(-_FEWEST // (width * multiple))) * multiple


class ModelSteps:
    """A model with its cache."""

    def __init__(
        self,
        model: Transformer,
        n_places: int,
        n_hypotheses: int,
        src_length: int,
        runtime: Runtime,
        longest_list: int | None = None,
        packed: list[PackedLayer] | None = None,
    ) -> None:
        """Make room for ``n_places`` (canonical) sources of at most ``src_length`` tokens, padding counted.

        Sources with lists, of at most ``longest_list`` ids, are searched in tokens that are numbered by their lists.
        ``packed`` are the model's layers as of ``Transformer.packed_layers``, if they have been made.
        """
        self._model, self._runtime = model, runtime
        self._own = None if longest_list is None else OwnOutput(model.output.weight, n_places, longest_list)
        with runtime.autocast():
            self._cache = model.new_cache(n_places, n_hypotheses, src_length, packed)
        self._broken = torch.zeros(n_places, dtype=torch.bool, device=runtime.device)

    def admit(self, places: list[int], sentences: Sequence[Source]) -> None:
        """Encode sentences, those of one canonical length together, and let them take places."""
        is_broken = self._broken.tolist()
        if broken := [place for place in places if is_broken[place]]:
            self._cache.clear(broken)
            self._broken[broken] = False
        if self._own is not None:
            self._own.admit(places, [sentence.listed for sentence in sentences if sentence.listed is not None])
        lengths = [canonical_length(len(sentence.ids), self._model.max_length) for sentence in sentences]
        for length in sorted(set(lengths)):
            chosen = [number for number, other in enumerate(lengths) if other == length]
            src = padded([sentences[number].ids for number in chosen], length).to(self._runtime.device)
            with self._runtime.autocast():
                self._model.admit(self._cache, [places[number] for number in chosen], src)

    def release(self, places: list[int]) -> None:
        """Let places rest."""
        self._cache.release(places)

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self._cache.keep(places)
        self._broken = self._broken[places]
        if self._own is not None:
            self._own.keep(places)

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return the log-probabilities ``[N * K, V]``, float32, of what follows the newest tokens ``[N, K]``."""
        ids = tokens if self._own is None else self._own.ids(tokens)
        hidden = self._model.decode_step(ids, parents, self._cache)  # [N, K, D]
        with self._runtime.autocast():
            log_probs = self._whole(hidden) if self._own is None else self._own.log_probs(hidden)
        # To clear every place that a new sentence takes would cost 4 % of a search with a beam of 5.
        self._broken |= log_probs[:, PAD].isnan().view(len(tokens), -1).any(-1)
        return log_probs

    def _whole(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._model.project(hidden.flatten(0, 1))
        return logits.float().log_softmax(-1)


def room_for_keys(model: Transformer, length: int) -> int:
    """Return the number of keys that a cache needs for a memory of so many tokens."""
    attention = model.decoder.layers[0].cross_attn
    return padded_keys(length, min(attention.d_k, attention.d_v))


def padded(sources: Sequence[Sequence[int]], *lengths: int) -> Tensor:
    """Return ids ``[m, length]``; a number of rows that is not canonical is filled up with copies of the first.

    Args:
        sources: at least one.
        lengths: the padded length, and those of what the rows meet: their number is canonical for all of them.
    """
    length = lengths[0]
    src = torch.full((canonical_places(len(sources), math.gcd(*lengths)), length), PAD)
    src[len(sources) :, : len(sources[0])] = torch.tensor(sources[0])
    for row, source in zip(src, sources, strict=False):
        row[: len(source)] = torch.tensor(source)
    return src


@contextmanager
def answering(models: Sequence[nn.Module], runtime: Runtime) -> Iterator[None]:
    """Let models answer, without gradients, and leave them as they were."""
    with ExitStack() as stack:
        for model in models:
            stack.enter_context(evaluating(model))
            stack.enter_context(canonical_threads(model, runtime))
        stack.enter_context(torch.inference_mode())
        yield


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and every module back into its own."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def canonical_threads(model: nn.Module, runtime: Runtime) -> Iterator[None]:
    """Run wide models on one thread: see the module's docstring."""
    before = torch.get_num_threads()
    if runtime.device.type != "cpu" or before == 1 or _widest(model) <= _WIDEST_SHARED:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _widest(model: nn.Module) -> int:
    return max((module.in_features for module in model.modules() if isinstance(module, nn.Linear)), default=0)
