"""What can go wrong, as a small tree of exceptions.

A ``TfmError`` is a message for a person: the command line prints it without a traceback and exits with
``exit_code``. Everything else is a bug of ours and keeps its traceback.
"""

import errno

from transformer_cli.wording import shortened, spelled

#: Numbers of the system's errors that say: there is no room.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_NO_MEMORY = ("not enough memory", "can't allocate memory", "Cannot allocate memory", "out of memory")
_LONGEST = 1000  # characters of what is told; a value may be a whole file


class TfmError(Exception):
    """A message for the user: what happened, where, what was found and expected, how to mend it."""

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> None:
        self.what, self.where, self.got, self.expected, self.hint = what, where, got, expected, hint
        super().__init__(self.render())

    def render(self) -> str:
        """Return the message, one aspect a line; without those that say nothing; long ones are shortened."""
        what = shortened(self.what, _LONGEST)
        head = f"{self.where}: {what}" if self.where else what
        got = None if self.got is None else shortened(spelled(self.got), _LONGEST)
        aspects = {"got": got, "expected": self.expected, "hint": self.hint}
        told = [f"  {name}: {spelled(value)}" for name, value in aspects.items() if value is not None]
        return "\n".join([head, *told])


class UserError(TfmError):
    """The user can mend it: bad input, a bad setting, a missing file."""

    exit_code = 2


class ConfigError(UserError):
    """A recipe or an override does not describe a valid experiment."""


class DataError(UserError):
    """A corpus, a tokenizer or an input file cannot be used."""

    @classmethod
    def at(cls, where: str, error: TfmError) -> "DataError":
        """Return an error of a value that came from a file, with the place that only the reader of the file knows."""
        return cls(error.what, where=where, got=error.got, expected=error.expected, hint=error.hint)


class RunError(UserError):
    """A run folder is missing, damaged, in the way, or does not fit the configuration."""


class DiskFull(UserError):
    """There is no room to write; whatever is written, what was there before is intact."""

    def __init__(self, where: str, hint: str) -> None:
        super().__init__("the disk is full", where=where, hint=hint)


class WorkerKilled(UserError):
    """A process that worked for this one was killed, perhaps because memory ran out."""


class TrainingFailed(TfmError):
    """The run stopped by itself: the numbers diverged, or memory ran out."""


class Interrupted(TfmError):
    """A signal stopped the run after its state was saved; the exit code is 128 + the signal's number."""

    def __init__(self, what: str, signal_number: int, *, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, by what Python, the system, torch or one of its libraries says of it."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY)
