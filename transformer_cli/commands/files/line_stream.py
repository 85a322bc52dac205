"""Lines as they come: from arguments, a file, a pipe or a prompt, in windows that never wait for more than has arrived.

A window of many lines can be sorted and batched; a pipe that is fed line by line must be answered line by line. A
reader thread puts lines into a bounded queue, and a window is whatever stands there, at least one line.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from transformer_cli.data.lines import iter_lines, open_input

#: Lines read ahead at most: enough to fill batches of equal lengths, a few hundred kilobytes of text.
WINDOW = 2048

Item = TypeVar("Item")


@dataclass(frozen=True)
class _End:
    """What follows the last line: the error that ended the input, if one did."""

    error: BaseException | None = None


def input_lines(path: str, on_repair: Callable[[int], None]) -> Iterator[str]:
    """Yield the lines of a file or of stdin (``-``); bytes that are no UTF-8 are replaced and reported."""
    with open_input(path) as stream:
        yield from iter_lines(stream, on_repair)


def prompted_lines() -> Iterator[str]:
    """Yield what is typed at a prompt until end of file, asking anew only when the next line is wanted."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    print("Type a sentence and press Enter; Ctrl-D ends.", file=sys.stderr)
    while True:
        try:
            print("> ", end="", file=sys.stderr, flush=True)
            yield input()
        except EOFError:
            print(file=sys.stderr)
            return


def windows(lines: Iterable[Item], size: int = WINDOW) -> Iterator[list[Item]]:
    """Yield lists of the lines that have arrived, of one to ``size`` lines, in order.

    Raises:
        BaseException: whatever reading raised, after the lines before it.
    """
    arrived: Queue[Item | _End] = Queue(maxsize=size)
    Thread(target=_fill, args=(arrived, lines), daemon=True).start()
    end = None
    while end is None:
        window, end = _collect(arrived, size)
        if window:
            yield window
    if end.error is not None:
        raise end.error


def _collect(arrived: "Queue[Item | _End]", size: int) -> tuple[list[Item], _End | None]:
    """Wait for one item, then take what else is there."""
    window: list[Item] = []
    with suppress(Empty):
        while len(window) < size:
            item = arrived.get(block=not window)
            if isinstance(item, _End):
                return window, item
            window.append(item)
    return window, None


def _fill(arrived: "Queue[Item | _End]", lines: Iterable[Item]) -> None:
    try:
        for line in lines:
            arrived.put(line)
    except BaseException as error:
        arrived.put(_End(error))
    else:
        arrived.put(_End())
