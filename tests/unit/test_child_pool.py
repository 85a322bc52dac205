"""Processes of a pool leave when it is closed: at once, whatever they do, and without a word."""

import os
import time

import pytest

from transformer_cli.decoding.child_pool import ChildPool


def nothing() -> None:
    """Load nothing."""


@pytest.mark.parametrize("busy", [False, True])
def test_processes_leave_when_their_pool_is_closed(busy: bool) -> None:
    pool = ChildPool(2, nothing, ())
    assert pool.submit(os.getpid).result() != os.getpid()
    processes = list(pool._processes.values())
    began = time.monotonic()
    for _ in range(4 * busy):
        pool.submit(time.sleep, 60)
    pool.close()
    assert [process.exitcode for process in processes] == [0, 0]  # killed by std::terminate it would be -6
    assert time.monotonic() - began < 30
