"""Processes of a pool leave when it is closed: at once, whatever they do, and without a word; a killed one is told of."""

import os
import signal
import time

import pytest

from transformer_cli.decoding.child_pool import ChildPool
from transformer_cli.errors import DataError, WorkerKilled


def nothing() -> None:
    """Load nothing."""


def unreadable() -> None:
    raise DataError("cannot be read", where="a file", hint="mend it")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("busy", [False, True])
def test_processes_leave_when_their_pool_is_closed(busy: bool) -> None:
    pool = ChildPool(2, nothing, ())
    assert pool.submit(os.getpid).result() != os.getpid()
    processes = list(pool._processes.values())
    began = time.monotonic()
    for _ in range(4 * busy):
        pool.submit(time.sleep, 60)
    pool.close()
    # Killed by std::terminate it would be -6; the executor's SIGTERM is as quiet as leaving.
    assert {process.exitcode for process in processes} <= {0, -signal.SIGTERM}
    assert time.monotonic() - began < 30


def test_results_come_in_the_order_of_what_was_asked_or_say_why_there_are_none() -> None:
    pool = ChildPool(2, nothing, ())
    try:
        assert pool.results(divmod, [(7, 2), (9, 4), (5, 5)]) == [(3, 1), (2, 1), (1, 0)]
        with pytest.raises(ZeroDivisionError):
            pool.results(divmod, [(1, 1), (1, 0)])
        with pytest.raises(WorkerKilled, match="a worker process was killed"):
            pool.results(killed, [()])
        with pytest.raises(WorkerKilled, match="a worker process was killed"):
            pool.results(os.getpid, [()])
    finally:
        pool.close()


def test_what_hinders_loading_is_told_whole() -> None:
    pool = ChildPool(1, unreadable, ())
    try:
        with pytest.raises(DataError) as told:
            pool.results(os.getpid, [()])
        assert str(told.value) == "a file: cannot be read\n  hint: mend it"
    finally:
        pool.close()
