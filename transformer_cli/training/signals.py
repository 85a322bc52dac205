"""Stopping on request: the first signal asks, the second one does not."""

import shlex
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from transformer_cli.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Remembers the first SIGINT or SIGTERM that arrives inside the ``with`` block.

    The handlers that were there before come back at once, so that a second signal acts as if we were not here. Outside
    the main thread, where Python allows no handlers, nothing is ever received.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())


def interruption(received: int, step: int, run: Path) -> Interrupted:
    """Return the error of a run that a signal stopped after a step, once it is saved."""
    text = f"stopped by {signal.Signals(received).name} after step {step}; the state is saved"
    return Interrupted(text, received, hint=f"continue with: tfm train --resume --run {shlex.quote(str(run))}")
