"""What ``tfm eval`` scores: sources and references, of a run's split or of the user's files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.commands.eval.request import EvalRequest
from transformer_cli.config import Config
from transformer_cli.data.corpus import load_split
from transformer_cli.data.pairs import Lenient
from transformer_cli.evaluation import bleu_tokenizer, check_counts

Note = Callable[[str], None]
DEFAULT_SPLIT = "test"


@dataclass(frozen=True)
class Text:
    """Aligned lines, and where they come from."""

    src: list[str] | None  # None: a hypothesis file is scored against references alone
    refs: list[list[str]]
    split: str | None  # None: all from files
    counts: dict[str, int]  # file or split -> its number of lines

    @property
    def name(self) -> str:
        """What the text is, in words."""
        return f"split {self.split}" if self.split else ", ".join(self.counts)


def read_text(request: EvalRequest, config: Config | None, note: Note) -> Text:
    """Read sources and references; a file takes the place of the split's side.

    Args:
        request: which split, or which files.
        config: of the run; None if files say everything.
        note: told about repaired lines.

    Raises:
        DataError: a file cannot be read, there is no such split, or the numbers of lines differ.
    """
    src, split = request.src, request.split
    source = read_file(src, note) if src is not None else None
    references = [read_file(path, note) for path in request.refs]
    counts = {str(path): len(lines) for path, lines in zip(request.refs, references, strict=True)}
    if src is not None and source is not None:
        text = Text(source, references, None, {str(src): len(source), **counts})
    elif references and split is None and not request.needs_sources:
        text = Text(None, references, None, counts)
    else:
        assert config is not None, "a split belongs to a run"
        split = split or DEFAULT_SPLIT
        to = None if references else request.to  # the sources are those of the main language
        pairs = load_split(config.data, split, config.train.seed, note, to)
        text = Text(pairs.src, references or [pairs.tgt], split, {f"split {split}": len(pairs), **counts})
    check_counts(text.counts)
    return text


def read_file(path: Path, note: Note) -> list[str]:
    """Read the lines of a file, untouched but for broken characters, which are named.

    Raises:
        DataError: the file cannot be read.
    """
    policy = Lenient()
    lines = policy.lines(path)
    for told in policy.notes():
        note(f"warning: {told}")
    return lines


def target_language(request: EvalRequest, config: Config | None) -> str:
    """Return the language that chooses the tokenizer: as given, the run's, or the ending of the reference file.

    Raises:
        UserError: the run does not translate into the language that was asked for.
    """
    of_run = request.to if config is None else config.data.target(request.to)
    of_file = Path(str(request.refs[0]).removesuffix(".gz")).suffix[1:] if request.refs else ""
    return next(lang for lang in (request.tgt_lang, of_run, of_file) if lang is not None)


def warn_of_tokenizer(text: Text, tgt_lang: str, tokenize: str | None, note: Note) -> None:
    """Say that BLEU's default tokenizer takes a whole Chinese or Japanese sentence for one word."""
    start = "".join(text.refs[0][:100])
    cjk = sum("\u3040" <= character <= "\u9fff" for character in start)
    if tokenize is None and bleu_tokenizer(tgt_lang) == "13a" and 2 * cjk > len(start):
        note("warning: the references look Chinese or Japanese, but BLEU's tokenizer is 13a: give --tokenize zh")
