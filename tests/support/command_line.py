"""``tfm`` inside the test's own process (quick), and as a process of its own (real)."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from transformer_cli.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        assert self.out == b"" or self.out.endswith(b"\n")
        return self.out.decode().split("\n")[:-1]

    @property
    def json(self) -> object:
        return json.loads(self.out)


class Tfm:
    """Calls the command line."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch) -> None:
        self._capture, self._patch = capture, patch

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        self._capture.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Outcome(int(left.value.code or 0), out, err.decode())


def tfm_process(*arguments: object, stdin: bytes = b"", cwd: Path | None = None, **env: str) -> Outcome:
    """Run ``tfm`` as a user's shell would."""
    command = [sys.executable, "-m", "transformer_cli", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=os.environ | env, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
