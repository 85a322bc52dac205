"""Processes that work for the one that starts them: Ctrl-C is not their affair, and they leave with it.

They leave when that process ends, however it ends, and at once when it closes the pool, whatever they are doing: they
watch a pipe that it holds open. One that is killed is told of in a message, and so is why one could not load.
"""

import atexit
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection
from threading import Thread
from typing import Any, TypeVar

from transformer_cli.errors import WorkerKilled

_Found = TypeVar("_Found")

_unloaded: Exception | None = None  # why this process, one of a pool, could not load


class ChildPool(ProcessPoolExecutor):
    """A pool whose processes have all been started."""

    def __init__(
        self, n_workers: int, load: Callable[..., None], told: tuple[Any, ...], leave: Callable[[], None] | None = None
    ) -> None:
        """Start the processes; they load while the caller goes on.

        Args:
            n_workers: how many processes.
            load: called first in each; ``results`` raises what it raises.
            told: the arguments of ``load``.
            leave: called in each when it leaves, in a thread of its own.
        """
        # Not forked: a forked process that had used threads may hang in its first product.
        context = multiprocessing.get_context("spawn")
        watched, self._held = context.Pipe(duplex=False)
        super().__init__(n_workers, context, initializer=_begin, initargs=(watched, leave, load, told))
        with _ctrl_c_waits(), suppress(BrokenProcessPool):  # ``results`` tells that one was killed at once
            for _ in range(n_workers):  # each call starts one, as long as none is idle
                self.submit(os.getpid)

    def results(self, work: Callable[..., _Found], arguments: Iterable[tuple[Any, ...]]) -> list[_Found]:
        """Call ``work`` with each of the arguments, in the processes side by side; return what it returns, in order.

        Raises:
            WorkerKilled: a process was killed.
            Exception: what ``work`` or ``load`` raised.
        """
        try:
            futures = [self.submit(_worked, work, one) for one in arguments]
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise WorkerKilled("a worker process was killed, perhaps because memory ran out") from error

    def close(self) -> None:
        """End the processes, whatever they are doing.

        Each leaves with exit code 0, or by the SIGTERM that the executor sends to the rest when it sees that one has
        left before it has heard of the end.
        """
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
    global _unloaded
    try:
        load(*told)
    except Exception as error:  # left to the pool it would look like a killed process
        _unloaded = error


def _worked(work: Callable[..., _Found], arguments: tuple[Any, ...]) -> _Found:
    if _unloaded is not None:
        raise _unloaded
    return work(*arguments)


def _leave_after(watched: connection.Connection, leave: Callable[[], None] | None) -> None:
    connection.wait([watched])  # readable: the other end is closed
    try:
        if leave is not None:
            leave()
    finally:
        os._exit(0)
