"""What a benchmark has finished is kept when something ends it early."""

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass

from transformer_cli.errors import WorkerKilled

Cause = KeyboardInterrupt | WorkerKilled  # a WorkerKilled is of a process that the benchmark has started


@dataclass
class EarlyEnd:
    """What ended a benchmark early; None: nothing did."""

    cause: Cause | None = None


@contextmanager
def finished_kept(finished: Sized) -> Iterator[EarlyEnd]:
    """Stop measuring, without an exception, when Ctrl-C or the death of a process ends it early.

    Args:
        finished: what the block inside has measured so far.

    Raises:
        KeyboardInterrupt: Ctrl-C came, and nothing was finished.
        WorkerKilled: a process was killed, and nothing was finished.
    """
    end = EarlyEnd()
    try:
        yield end
    except (KeyboardInterrupt, WorkerKilled) as cause:
        if not finished:
            raise
        end.cause = cause
