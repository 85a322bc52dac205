"""Several processes that translate side by side, a thread each.

The small products of a decoding step leave little for a second thread: two processes of one thread are faster than one
of two, and the interpreter's lock does not stand between them. What a sentence becomes does not depend on the process
that translates it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from transformer_cli.decoding.attention_reader import Pair
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.child_pool import ChildPool
from transformer_cli.decoding.ensemble import load_models
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import WorkerKilled
from transformer_cli.runtime import Runtime

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")

_decoder: BatchDecoder  # of this process, if it is a worker


class Workers:
    """Searches translations in processes of their own, each with the model of a run, or several."""

    def __init__(self, runs: Sequence[Path], n_workers: int, device: str = "cpu") -> None:
        """Start the processes; they load the model while the caller goes on.

        Args:
            runs: run folders or checkpoints, which translate together.
            n_workers: how many processes.
            device: where each computes.
        """
        self._n_workers = n_workers
        self._pool = ChildPool(n_workers, _load, (runs, device))

    def search(self, sentences: Sequence[Source], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each sentence, best first; see ``BatchDecoder.search``.

        Raises:
            WorkerKilled: a process was killed.
            TfmError: one could not load its model: then its own error.
        """
        return self._shared(_search, sentences, [len(sentence.ids) for sentence in sentences], settings)

    def attention(self, pairs: Sequence[Pair], settings: DecodeSettings) -> list[NDArray[np.float32]]:
        """Return how each target token attends to its source; see ``read_attention``.

        Raises:
            WorkerKilled: a process was killed.
            TfmError: as of ``search``.
        """
        return self._shared(_attention, pairs, [len(source) + len(target) for source, target in pairs], settings)

    def _shared(
        self,
        work: Callable[[list[_Asked], DecodeSettings], list[_Found]],
        asked: Sequence[_Asked],
        lengths: Sequence[int],
        settings: DecodeSettings,
    ) -> list[_Found]:
        order = sorted(range(len(asked)), key=lambda number: -lengths[number])
        shares = [order[worker :: self._n_workers] for worker in range(self._n_workers)]  # of equal work
        try:
            results = self._pool.results(work, [([asked[number] for number in share], settings) for share in shares])
        except WorkerKilled as killed:
            raise WorkerKilled(killed.what, hint="take fewer --workers") from killed
        found: dict[int, _Found] = {}
        for share, result in zip(shares, results, strict=True):
            found.update(zip(share, result, strict=True))
        return [found[number] for number in range(len(asked))]

    def told(self, asked: Sequence[tuple[Sequence[int], Finished]], settings: DecodeSettings) -> list[Finished]:
        """Return translations of sources as they are: the search has told the log-probabilities of their tokens."""
        return [finished for _, finished in asked]

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._pool.close()


def _load(runs: Sequence[Path], device: str) -> None:
    global _decoder
    torch.set_num_threads(1)
    runtime = Runtime.resolve(device)
    models = load_models(runs, runtime.device)[0]
    _decoder = BatchDecoder(models[0], runtime, models[1:], fixed=True)


def _search(sentences: list[Source], settings: DecodeSettings) -> list[list[Finished]]:
    return _decoder.search(sentences, settings)


def _attention(pairs: list[Pair], settings: DecodeSettings) -> list[NDArray[np.float32]]:
    return _decoder.attention(pairs, settings)
