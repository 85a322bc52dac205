"""What a sentence pair is, and how strictly its text is taken.

Training data with a broken character is an error, so that it is mended; in text to be scored the character becomes
U+FFFD and the line is named, because a score needs every line. Not here: where pairs come from (``readers.py``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from transformer_cli.data.lines import iter_lines, open_input, stream_lines
from transformer_cli.errors import DataError
from transformer_cli.wording import counted


@dataclass(frozen=True)
class ParallelText:
    """Aligned sentences: ``tgt[i]`` is the translation of ``src[i]``."""

    src: list[str]
    tgt: list[str]

    def __post_init__(self) -> None:
        """Check that the sides are aligned.

        Raises:
            ValueError: they have different numbers of lines.
        """
        if len(self.src) != len(self.tgt):
            raise ValueError(f"sides of {len(self.src)} and {counted(len(self.tgt), 'line')}")

    def __len__(self) -> int:
        return len(self.src)

    def __add__(self, other: "ParallelText") -> "ParallelText":
        return ParallelText(self.src + other.src, self.tgt + other.tgt)

    def select(self, indices: Sequence[int]) -> "ParallelText":
        """Return the pairs at these places, in this order."""
        return ParallelText([self.src[i] for i in indices], [self.tgt[i] for i in indices])

    def reversed(self) -> "ParallelText":
        """Return the pairs read from target to source."""
        return ParallelText(self.tgt, self.src)


class SentencePairs(Protocol):
    """Aligned sentences, wherever they lie: in memory or in a mapped file."""

    @property
    def src(self) -> Sequence[str]:
        """The sources."""

    @property
    def tgt(self) -> Sequence[str]:
        """The targets."""

    def __len__(self) -> int: ...


class Policy(Protocol):
    """What becomes of text that is no text: invalid UTF-8, NUL, half a surrogate pair."""

    def lines(self, path: Path) -> Iterable[str]:
        """Return the lines of a file, or read them as they are asked for."""

    def text(self, value: str, where: str) -> str:
        """Return a string that came from JSON or a table, where broken characters are spelled as escapes."""


class Strict:
    """Broken text is an error that names its place."""

    def lines(self, path: Path) -> Iterable[str]:
        """Read the lines of a file; see ``stream_lines``, also for its errors."""
        return stream_lines(path)

    def text(self, value: str, where: str) -> str:
        """Return the string as it is.

        Raises:
            DataError: it holds NUL or half a surrogate pair.
        """
        if _mended(value) != value:
            raise DataError("holds NUL or half a surrogate pair", where=where, got=ascii(value)[:80])
        return value


@dataclass
class Lenient:
    """Broken text becomes U+FFFD, and its places are remembered."""

    repaired: list[str] = field(default_factory=list)

    def lines(self, path: Path) -> list[str]:
        """Return the lines of a file; see ``iter_lines``."""
        with open_input(str(path.absolute())) as stream:
            return list(iter_lines(stream, lambda number: self.repaired.append(f"{path}:{number}")))

    def text(self, value: str, where: str) -> str:
        """Return the string with its broken characters replaced."""
        mended = _mended(value)
        if mended != value:
            self.repaired.append(where)
        return mended

    def notes(self) -> list[str]:
        """Return the warning that counts and names the repaired lines, if there are any."""
        if not self.repaired:
            return []
        named = ", ".join(self.repaired[:5]) + (", ..." if len(self.repaired) > 5 else "")
        return [f"invalid UTF-8 or NUL became U+FFFD in {counted(len(self.repaired), 'line')}: {named}"]


def _mended(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:  # halves that belong together become their character, others U+FFFD
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
