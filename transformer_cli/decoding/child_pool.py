"""Processes that work for the one that starts them: Ctrl-C is not their affair, and they leave with it.

They leave when that process ends, however it ends, and at once when it closes the pool, whatever they are doing: they
watch a pipe that it holds open.
"""

import atexit
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from threading import Thread
from typing import Any


class ChildPool(ProcessPoolExecutor):
    """A pool whose processes have all been started."""

    def __init__(
        self, n_workers: int, load: Callable[..., None], told: tuple[Any, ...], leave: Callable[[], None] | None = None
    ) -> None:
        """Start the processes; they load while the caller goes on.

        Args:
            n_workers: how many processes.
            load: called first in each. An exception of it looks to the caller like a killed process.
            told: the arguments of ``load``.
            leave: called in each when it leaves, in a thread of its own.
        """
        # Not forked: a forked process that had used threads may hang in its first product.
        context = multiprocessing.get_context("spawn")
        watched, self._held = context.Pipe(duplex=False)
        super().__init__(n_workers, context, initializer=_begin, initargs=(watched, leave, load, told))
        with _ctrl_c_waits():
            for _ in range(n_workers):  # each call starts one, as long as none is idle
                self.submit(os.getpid)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._held.close()
        self.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C wait, also in a child that is started meanwhile: it would print a traceback while it loads."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(
    watched: connection.Connection,
    leave: Callable[[], None] | None,
    load: Callable[..., None],
    told: tuple[Any, ...],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(os._exit, 0)  # Python's own end, if the thread wakes in it, was at times C++'s std::terminate
    Thread(target=_leave_after, args=(watched, leave), daemon=True).start()
    load(*told)


def _leave_after(watched: connection.Connection, leave: Callable[[], None] | None) -> None:
    connection.wait([watched])  # readable: the other end is closed
    try:
        if leave is not None:
            leave()
    finally:
        os._exit(0)
