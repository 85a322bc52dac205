"""Several processes that translate side by side, a thread each.

The small products of a decoding step leave little for a second thread: two processes of one thread are faster than one
of two, and the interpreter's lock does not stand between them. What a sentence becomes does not depend on the process
that translates it.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from transformer_cli.checkpoint import load_model
from transformer_cli.decoding.attention_reader import Pair
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import TfmError
from transformer_cli.runtime import Runtime

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")

_decoder: BatchDecoder | None = None  # of this process, if it is a worker


class Workers:
    """Searches translations in processes of their own, each with the model of a run."""

    def __init__(self, run: Path, n_workers: int, device: str = "cpu") -> None:
        """Start the processes; they load the model while the caller goes on.

        Args:
            run: run folder or checkpoint.
            n_workers: how many processes.
            device: where each computes.
        """
        self._n_workers = n_workers
        # Not forked: a forked process that had used threads may hang in its first product.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(n_workers, context, initializer=_load, initargs=(run, device))

    def search(self, sentences: Sequence[Source], settings: DecodeSettings) -> list[list[Finished]]:
        """Return the finished hypotheses of each sentence, best first; see ``BatchDecoder.search``.

        Raises:
            TfmError: a process was killed.
        """
        return self._shared(_search, sentences, [len(sentence.ids) for sentence in sentences], settings)

    def attention(self, pairs: Sequence[Pair], settings: DecodeSettings) -> list[NDArray[np.float32]]:
        """Return how each target token attends to its source; see ``read_attention``.

        Raises:
            TfmError: a process was killed.
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
        found: dict[int, _Found] = {}
        try:
            futures = [self._pool.submit(work, [asked[number] for number in share], settings) for share in shares]
            for share, future in zip(shares, futures, strict=True):
                found.update(zip(share, future.result(), strict=True))
        except BrokenProcessPool as error:
            raise TfmError(
                "a worker process was killed, perhaps because memory ran out", hint="take fewer --workers"
            ) from error
        return [found[number] for number in range(len(asked))]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


def _load(run: Path, device: str) -> None:
    global _decoder
    torch.set_num_threads(1)
    runtime = Runtime.resolve(device)
    _decoder = BatchDecoder(load_model(run, runtime.device)[0], runtime)


def _search(sentences: list[Source], settings: DecodeSettings) -> list[list[Finished]]:
    assert _decoder is not None, "the process has loaded its model"
    return _decoder.search(sentences, settings)


def _attention(pairs: list[Pair], settings: DecodeSettings) -> list[NDArray[np.float32]]:
    assert _decoder is not None, "the process has loaded its model"
    return _decoder.attention(pairs, settings)
