"""``tfm`` as a process that has imported everything already: for tests of signals, which have no interest in imports."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from killable_run import PRELOADED

from transformer_cli.cli import main


@dataclass(frozen=True)
class ForkedTfm:
    """A command that runs; its streams are files in a folder, of which ``stdin`` may be a named pipe."""

    process: BaseProcess
    folder: Path

    @classmethod
    def start(cls, folder: Path, *arguments: object) -> "ForkedTfm":
        """Fork it from a server, which takes a tenth of a second where importing torch takes several."""
        folder.mkdir(exist_ok=True)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        process = context.Process(target=_run, args=(folder, [str(argument) for argument in arguments]), daemon=True)
        process.start()
        return cls(process, folder)

    def send_when(self, ready: Callable[[], bool], number: int) -> int:
        """Send a signal as soon as the command is ready for it; return its exit code."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.is_alive() and not ready():
            time.sleep(0.01)
        os.kill(self.process.pid, number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        self.process.join(60)
        assert self.process.exitcode is not None, "it did not end"
        return self.process.exitcode

    @property
    def sleeps(self) -> bool:
        """Whether it waits for something, such as a line of its input."""
        status = Path(f"/proc/{self.process.pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "S"

    @property
    def out(self) -> str:
        return (self.folder / "stdout").read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        return (self.folder / "stderr").read_text(encoding="utf-8")


def _run(folder: Path, arguments: list[str]) -> None:
    for number, name, mode in ((1, "stdout", "w"), (2, "stderr", "w"), (0, "stdin", "r")):
        path = folder / name
        source = path if mode == "w" or path.exists() else Path(os.devnull)
        os.dup2(os.open(source, os.O_WRONLY | os.O_CREAT if mode == "w" else os.O_RDONLY), number)
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - lives as long as the process
    main(arguments)
