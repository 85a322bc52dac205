"""The one boundary between exceptions and the shell: messages on stderr, exit codes, text in UTF-8."""

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

from transformer_cli.errors import NO_SPACE, Interrupted, TfmError, UserError, is_out_of_memory
from transformer_cli.wording import numbers, printable


def run_guarded(command: Callable[[], Any], *, debug: bool) -> int:
    """Run a command and return its exit code.

    A ``TfmError``, a word of the command line that typer cannot use, or memory that ran out becomes one message and
    its own code; SIGINT (Ctrl-C) and SIGTERM become one line and 130 or 143. Anything else is a bug of ours and keeps
    its traceback.

    Args:
        command: returns an exit code, or anything else for success.
        debug: print the traceback of a ``TfmError`` too.
    """
    _prepare_streams()
    try:
        with _sigterm_as_exception():
            result = command()
        sys.stdout.flush()
        if result == 128 + signal.SIGINT:  # what typer, or a command that showed what it had, makes of Ctrl-C
            return _stopped(signal.SIGINT)
        return result if isinstance(result, int) else 0
    except Interrupted as stop:
        return _tell(str(stop), stop.exit_code, debug, kind="")
    except TfmError as error:
        return _tell(str(error), error.exit_code, debug)
    except OSError as error:  # of a place that nobody foresaw: a name too long, a full disk behind stdout
        _abandon_stdout()
        # All that we write into files says which; nobody says it of what is printed.
        place = "stdout" if error.filename is None and error.errno in NO_SPACE else error.filename
        what = error.strerror or error
        return _tell(f"{what}" if place is None else f"{place}: {what}", UserError.exit_code, debug)
    except typer.TyperException as error:
        return _tell(str(_in_our_form(error)), error.exit_code, debug)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _tell(str(_NO_MEMORY), _NO_MEMORY.exit_code, debug)
    except KeyboardInterrupt:
        return _stopped(signal.SIGINT)
    except _Terminated:
        return _stopped(signal.SIGTERM)


_NO_MEMORY = UserError(
    "memory ran out", hint="take a smaller model, batch (--batch-tokens, train.batch_tokens) or beam, or free memory"
)


class _Terminated(SystemExit):
    """SIGTERM arrived; what leaves by a plain ``SystemExit`` has said what there is to say."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def _in_our_form(error: typer.TyperException) -> UserError:
    """Return what the parser has to say: of a number which are allowed, of all else where more is told."""
    param: Any = getattr(error, "param", None)
    problems: list[Any] = getattr(error.__cause__, "errors", list)()  # pydantic's
    if problems and (kind := param.type_descriptor.annotation) in (int, float):
        expected = numbers(whole=kind is int, least=param.min, most=param.max)
        if problems[0]["type"] == "int_parsing_size":
            expected = "a whole number of fewer digits"
        return UserError(f"{param.opts[0]} is not valid", got=problems[0]["input"], expected=expected)
    error.message = error.message.removeprefix("Value error, ")  # by which pydantic, inside, means: not one of these
    what = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return UserError(what[:1].lower() + what[1:], hint=context and f"{context.command_path} --help tells what it takes")


@contextmanager
def quiet_if_reader_left() -> Iterator[None]:
    """Stop writing, without an error, when the reader of stdout went away (``| head -1``).

    Inside a command, because typer would turn the exception into exit code 1 before ``run_guarded`` sees it.
    """
    try:
        yield
    except BrokenPipeError:
        _abandon_stdout()


def _abandon_stdout() -> None:
    """Drop what cannot be written to stdout, or the interpreter's last flush would complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(message: str, code: int, debug: bool, kind: str = "error: ") -> int:
    with suppress(OSError):  # stderr may be closed or full; the exit code still tells
        if debug:
            traceback.print_exc()
        print(f"{kind}{printable(message)}", file=sys.stderr)
    return code


def _stopped(number: signal.Signals) -> int:
    """Say what ended the command; it was wished, so it is no error."""
    return _tell(f"stopped by {number.name}", 128 + number, debug=False, kind="")


@contextmanager
def _sigterm_as_exception() -> Iterator[None]:
    """Leave by an exception on SIGTERM, so that half-written files are cleaned away."""

    def leave(_number: int, _frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _prepare_streams() -> None:
    """Speak UTF-8 whatever the locale says; a stream that was closed becomes an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
        elif isinstance(stream, io.TextIOWrapper) and mode == "w":
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
