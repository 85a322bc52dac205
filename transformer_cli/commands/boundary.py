"""The one boundary between exceptions and the shell: messages on stderr, exit codes, text in UTF-8."""

import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from transformer_cli.errors import TfmError


def run_guarded(command: Callable[[], Any], *, debug: bool) -> int:
    """Run a command and return its exit code.

    A ``TfmError`` becomes one message and its own code, a wrong option typer's message and 2; a reader that went away
    (``| head -1``) is no error; Ctrl-C is 130. Anything else is a bug of ours and keeps its traceback.

    Args:
        command: returns an exit code, or anything else for success.
        debug: print the traceback of a ``TfmError`` too.
    """
    _speak_utf8()
    try:
        result = command()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except TfmError as error:
        if debug:
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except typer.TyperException as error:
        error.show()  # type: ignore[attr-defined]  # every exception that the parser raises has it
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter's last flush complains
        return 0
    except KeyboardInterrupt:
        return 130


def _speak_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
