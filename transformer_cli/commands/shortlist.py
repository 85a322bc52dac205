"""``tfm shortlist``: learn a run's shortlist from its training pairs, or from files, and say what it leaves out."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.eval.text import read_file
from transformer_cli.commands.shared.notes import Note, written
from transformer_cli.commands.shared.run_choice import chosen_run, folder_of
from transformer_cli.data.batching import TokenizedPairs, tokenize_pairs
from transformer_cli.data.corpus import load_split
from transformer_cli.data.pairs import ParallelText
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.errors import DataError, UserError
from transformer_cli.evaluation import check_counts
from transformer_cli.wording import counted


@dataclass(frozen=True)
class ShortlistRequest:
    """What the command line asked for."""

    run: Path | None  # None: the newest run
    src: Path | None  # None: the run's training pairs
    tgt: Path | None
    to: str | None  # language of ``tgt``; None: the run's main one
    per_piece: int
    frequent: int

    def check(self) -> None:
        """Refuse what cannot take effect.

        Raises:
            UserError: one file without the other, or a language without files.
        """
        if (self.src is None) != (self.tgt is None):
            raise UserError("--src and --tgt belong together", hint="give both, or none for the training pairs")
        if self.to is not None and self.src is None:
            raise UserError(
                "the training pairs of all languages are read, so --to has no effect", hint="--to is about --src, --tgt"
            )


@dataclass(frozen=True)
class ShortlistReport:
    """What was learned, and how much of the dev set it leaves out."""

    file: str
    pairs: int  # learned from
    per_piece: int
    frequent: int
    vocabulary: int  # target pieces
    dev_lines: int  # 0: they cannot be read
    mean_size: float | None  # of the lists of the dev lines
    recall: float | None  # share of the pieces of their references that stand in their list


def run_shortlist(request: ShortlistRequest, note: Note) -> ShortlistReport:
    """Write ``shortlist.safetensors`` into a run, in place of an older one.

    Raises:
        UserError: the options do not fit each other.
        RunError: there is no run, or it cannot be written.
        DataError: the text cannot be read, or holds no pair that is short enough.
    """
    request.check()
    run = RunFolder.open(folder_of(chosen_run(request.run, note)))
    pairs = _pairs(request, run, note)
    if not len(pairs):
        raise DataError(
            "no pair is short enough to learn from", expected=f"at most {run.config.data.max_length} tokens"
        )
    made = Shortlist.fitted(pairs, run.tokenizer, request.per_piece, request.frequent)
    lines, size, recall = _on_dev(made, run, note)
    path, vocabulary = made.save(run.path, run.tokenizer), run.tokenizer.tgt_vocab_size
    return ShortlistReport(str(path), len(pairs), request.per_piece, request.frequent, vocabulary, lines, size, recall)


def print_report(report: ShortlistReport, as_json: bool) -> None:
    """Print what was learned, or one JSON document."""
    if as_json:
        print(json.dumps(asdict(report), ensure_ascii=False, indent=1))
        return
    content = f"{report.per_piece} target pieces for each source piece, of {counted(report.pairs, 'pair')}"
    print(written(report.file, content))
    if report.mean_size is not None and report.recall is not None:
        print(
            f"dev: lists of {report.mean_size:,.0f} of {report.vocabulary:,} pieces (mean of "
            f"{counted(report.dev_lines, 'line')}), with {report.recall:.1%} of the pieces of their references"
        )
    print("use it: tfm translate --shortlist, or decode.shortlist: true in a recipe")


def _pairs(request: ShortlistRequest, run: RunFolder, note: Note) -> TokenizedPairs:
    data = run.config.data
    if request.src is not None and request.tgt is not None:
        sides = {str(path): read_file(path, note) for path in (request.src, request.tgt)}
        check_counts({name: len(lines) for name, lines in sides.items()})
        return _tokenized(ParallelText(*sides.values()), run, data.target(request.to))
    found = TokenizedPairs([], [])
    for language in data.targets:
        found += _tokenized(load_split(data, "train", run.config.train.seed, note, language), run, language)
    return found


def _tokenized(text: ParallelText, run: RunFolder, language: str) -> TokenizedPairs:
    data, tokenizer = run.config.data, run.tokenizer
    tag = tokenizer.tag(language) if data.more_targets else None
    return tokenize_pairs(text, tokenizer, data.max_length, tag)[0]


def _on_dev(made: Shortlist, run: RunFolder, note: Note) -> tuple[int, float | None, float | None]:
    """Return the number of dev lines, the mean size of their lists, and the share of reference pieces in them."""
    data = run.config.data
    try:
        text = load_split(data, "dev", run.config.train.seed, note)
    except DataError as error:
        note(f"the run's dev lines cannot be read, so nothing is said of them: {error}")
        return 0, None, None
    pairs = _tokenized(text, run, data.tgt_lang)
    lists = [made.of(src.tolist()) for src in pairs.src]
    found = sum(int(np.isin(tgt, listed).sum()) for tgt, listed in zip(pairs.tgt, lists, strict=True))
    return len(lists), float(np.mean([len(listed) for listed in lists])), found / int(pairs.tgt_lengths.sum())
