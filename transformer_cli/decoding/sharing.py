"""How many processes share a job: measured on its first lines, if it is long enough to pay for starting them.

Starting a process takes two or three seconds, for torch above all. So a job begins in this process; only when a whole
window of lines has arrived at once is a sample of them timed, with one thread and with all.
"""

import time
from collections.abc import Callable, Sequence

import torch

from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translation, Translator

_SAMPLE = 64  # lines that are timed
_GAIN = 1.1  # processes must promise to be so many times as fast


class SharedTranslator:
    """A translator that calls more processes when the job turns out to be long."""

    def __init__(
        self, translator: Translator, start: Callable[[int], Translator], n_cores: int, long_enough: int
    ) -> None:
        """Wrap a translator.

        Args:
            translator: of this process.
            start: makes one with so many workers.
            n_cores: how many workers there may be.
            long_enough: lines of a window with which a job counts as long.
        """
        self._translator, self._start = translator, start
        self._n_cores, self._long_enough = n_cores, long_enough
        self._decided = n_cores == 1

    def translate_window(self, lines: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[Translation]:
        """Translate lines; see ``Translator``."""
        if not self._decided and len(lines) >= self._long_enough:
            self._decided = True
            if workers_pay(self._translator, lines, settings, self._n_cores):
                self._translator = self._start(self._n_cores)
        return self._translator.translate_window(lines, settings, first)

    def close(self) -> None:
        """End the processes."""
        self._translator.close()


def workers_pay(translator: Translator, lines: Sequence[str], settings: DecodeSettings, n_cores: int) -> bool:
    """Return whether so many processes of one thread promise to be faster than this one with all its threads."""
    sample = lines[:: max(1, len(lines) // _SAMPLE)][:_SAMPLE]
    threads = torch.get_num_threads()
    translator.translate_window(sample, settings)  # warms up
    with_all = _seconds(translator, sample, settings)
    torch.set_num_threads(1)
    try:
        with_one = _seconds(translator, sample, settings)
    finally:
        torch.set_num_threads(threads)
    return with_one / n_cores * _GAIN < with_all


def _seconds(translator: Translator, lines: Sequence[str], settings: DecodeSettings) -> float:
    start = time.perf_counter()
    translator.translate_window(lines, settings)
    return time.perf_counter() - start
