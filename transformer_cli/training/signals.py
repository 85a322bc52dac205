"""Stopping on request: the first signal asks, the second one does not."""

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def told_how_to_go_on(run: Callable[[], Path | None]) -> Iterator[None]:
    """Say what a signal has left when nobody but Python took it: before the first step, or the second one in a row.

    Args:
        run: the run folder, or None if this command has not made it yet.

    Raises:
        Interrupted: a signal arrived.
    """
    try:
        yield
        return
    except KeyboardInterrupt:
        received = signal.SIGINT
    except SystemExit as stop:  # what the command line makes of SIGTERM
        if stop.code != 128 + signal.SIGTERM:
            raise
        received = signal.SIGTERM
    if (path := run()) is None:
        text = f"stopped by {received.name} before the first step; no run was made and nothing is lost"
        raise Interrupted(text, received, hint="start it again with the same command")
    text = f"stopped by {received.name} at once; the run is as its last checkpoint has it, or new if it has none"
    raise Interrupted(text, received, hint=_continue_with(path))


def _continue_with(run: Path) -> str:
    return f"continue with: tfm train --resume --run {shlex.quote(str(run))}"


def interruption(received: int, step: int, run: Path) -> Interrupted:
    """Return the error of a run that a signal stopped after a step, once it is saved."""
    text = f"stopped by {signal.Signals(received).name} after step {step}; the state is saved"
    return Interrupted(text, received, hint=_continue_with(run))
