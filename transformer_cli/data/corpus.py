"""From the configuration to train, dev and test pairs: what is dropped, what is split off, what overlaps.

A corpus is a pure function of the files' content and the seed. What is cached (of large corpora only) is found by its
content, so an edited file is always noticed.
Not here: reading the kinds of source (``readers.py``) and what depends on subword tokens (``batching.py``).
"""

import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from transformer_cli.config import DataConfig, MoreTarget
from transformer_cli.data.filters import filter_pairs
from transformer_cli.data.left_out import dev_place, makes_dev, nothing_left
from transformer_cli.data.mapped_text import EMPTY, MappedText, map_text
from transformer_cli.data.pairs import Lenient, ParallelText, Policy, SentencePairs, Strict
from transformer_cli.data.readers import read_pairs, read_tsv, source_files
from transformer_cli.errors import DataError
from transformer_cli.shipped import shipped
from transformer_cli.wording import counted

__all__ = ["Corpus", "ParallelText", "available_splits", "load_corpus", "load_split"]

_LARGE = 200_000_000  # bytes of text; in memory they would be about four times as many, and ids besides
_PART = 100_000  # lines hashed at a time
_PACKED = 3  # times that gzip makes text smaller, about
_NO_DEV = "give data.dev pairs, or set it to null: then data.dev_size of the training pairs become the dev split"
_PHRASEBOOK_COLUMNS = {"en": 0, "de": 1, "zh": 2}
_PHRASEBOOK_FILES = {
    "train": "train.tsv.gz",
    "dev": "dev.tsv.gz",
    "test": "test.tsv.gz",
    "handwritten": "handwritten.test.tsv.gz",
}


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs for a run."""

    train: ParallelText | MappedText
    dev: ParallelText
    test: ParallelText  # empty if none is configured
    dropped: dict[str, int]  # reason -> pairs of the training data that were left out, in order
    notes: list[str]  # warnings for the user
    fingerprint: str  # SHA-256 of the content of train and dev, and of more
    more: dict[str, ParallelText] = field(default_factory=dict)  # language -> training pairs of data.more_targets

    @property
    def all_train(self) -> ParallelText | MappedText:
        """The training pairs of all target languages, the main one first; on disk there is only one."""
        return self.train if isinstance(self.train, MappedText) else sum(self.more.values(), self.train)


def load_corpus(config: DataConfig, seed: int, needs_ram: Sequence[str] = ()) -> Corpus:
    """Read, filter and split everything that training needs.

    Args:
        config: which pairs.
        seed: decides which pairs become the dev set if none is given.
        needs_ram: keys outside ``data`` that need the training text in memory.

    Raises:
        DataError: a source cannot be read, or no training or dev pair is left.
        DiskFull: a large corpus has no room in the cache.
    """
    train: ParallelText | MappedText
    notes: list[str] = []
    if (large := _large_train(config, [*config.needs_ram, *needs_ram], notes.append)) is not None:
        train, dev, dropped = large, _read(config, "dev", Strict()), large.dropped
    else:
        train, dev, dropped = _train_and_dev(config, seed, Strict())
    lenient = Lenient()
    test = _read(config, "test", lenient) if "test" in available_splits(config) else ParallelText([], [])
    if not len(train):
        raise nothing_left(config, dropped, len(dev))
    if not len(dev):
        raise DataError("the dev set has no pairs", where=dev_place(config), hint=_NO_DEV)
    more = {target.lang: _more(config, target, dev, dropped) for target in config.more_targets}
    notes += lenient.notes()
    notes += _overlaps({"train": train, "dev": dev, "test": test, **{f"train ({lang})": more[lang] for lang in more}})
    return Corpus(train, dev, test, dropped, notes, _fingerprint(train, dev, *more.values()), more)


def load_split(
    config: DataConfig,
    split: str,
    seed: int,
    note: Callable[[str], None] = lambda text: None,
    to: str | None = None,
) -> ParallelText:
    """Read one split for scoring: references stay the file's text, undecodable bytes become U+FFFD.

    Args:
        config: which pairs.
        split: ``train`` (the pairs that training sees), ``dev``, ``test``, or ``handwritten`` of the phrasebook.
        seed: the run's seed; decides the dev set if it was split from the training pairs.
        note: takes the warning that names repaired lines.
        to: language of the target side; None: the main one. The others have training pairs only.

    Raises:
        DataError: there is no such split, it is empty, or it cannot be read.
        UserError: there is no such target language.
    """
    available = available_splits(config)
    if split not in available:
        hint = f"--split {available[-1]}, or score files with --src and --ref"
        raise DataError(f"there is no split {split!r}", expected=", ".join(available), hint=hint)
    policy = Lenient()
    if config.target(to) != config.tgt_lang:
        pairs = _more_split(config, split, seed, str(to))
    elif split == "train" or (split == "dev" and makes_dev(config)):
        train, dev, _ = _train_and_dev(config, seed, policy)
        pairs = train if split == "train" else dev
    else:
        pairs = _read(config, split, policy)
    if not len(pairs):
        raise DataError(f"split {split!r} has no pairs")
    for text in policy.notes():
        note(text)
    return pairs


def available_splits(config: DataConfig) -> list[str]:
    """Return the splits that ``load_split`` can read."""
    if config.corpus is not None:
        return list(_PHRASEBOOK_FILES)
    return ["train", "dev", "test"] if config.test is not None else ["train", "dev"]


def _read(config: DataConfig, split: str, policy: Policy) -> ParallelText:
    if config.corpus is not None:
        columns = _PHRASEBOOK_COLUMNS[config.src_lang], _PHRASEBOOK_COLUMNS[config.tgt_lang]
        return read_tsv([shipped("data") / config.corpus / _PHRASEBOOK_FILES[split]], columns, policy)
    source = {"train": config.train, "dev": config.dev, "test": config.test}[split]
    assert source is not None, "callers ask only for splits that the configuration has"
    return read_pairs(source, config, split, policy)


def _large_train(config: DataConfig, needs_ram: Sequence[str], note: Callable[[str], None]) -> MappedText | None:
    """Return the training pairs on disk if they shall be or should be there, else nothing."""
    source = config.train
    if source is None or source.kind == "hub" or config.memory == "ram":
        return None
    if config.memory == "auto":
        size = _text_bytes(source_files(source))
        if size > _LARGE and needs_ram:
            note(f"about {size / 1e6:,.0f} MB of training text stay in memory because of {', '.join(needs_ram)}")
        if size <= _LARGE or needs_ram:
            return None
    return map_text(config, note)


def _text_bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size * (_PACKED if file.suffix == ".gz" else 1) for file in files)


def _train_and_dev(config: DataConfig, seed: int, policy: Policy) -> tuple[ParallelText, ParallelText, dict[str, int]]:
    pairs = _read(config, "train", policy)
    full = [i for i, (src, tgt) in enumerate(zip(pairs.src, pairs.tgt, strict=True)) if src.strip() and tgt.strip()]
    dropped = {EMPTY: len(pairs) - len(full)}
    if makes_dev(config):  # before any filter, so that filters do not change what is scored
        train, dev = _split_off_dev(pairs.select(full), config.dev_size, seed)
        dropped["source line is in the dev split"] = len(full) - len(train) - len(dev)
    else:
        train, dev = pairs.select(full), _read(config, "dev", policy)
    train, noise = filter_pairs(train, config, config.tgt_lang)
    return train, dev, dropped | noise


def _more(config: DataConfig, target: MoreTarget, dev: ParallelText, dropped: dict[str, int]) -> ParallelText:
    """Return the training pairs of another target language; what leaves them is added to ``dropped``."""
    of_target = config.model_copy(update={"tgt_lang": target.lang})
    pairs = read_pairs(target.train, of_target, "train", Strict())
    unseen = set(dev.src) if makes_dev(config) else set()
    full = [i for i in range(len(pairs)) if pairs.src[i].strip() and pairs.tgt[i].strip()]
    kept = [i for i in full if pairs.src[i] not in unseen]
    counts = {EMPTY: len(pairs) - len(full)}
    if unseen:
        counts["source line is in the dev split"] = len(full) - len(kept)
    left, noise = filter_pairs(pairs.select(kept), config, target.lang)
    dropped.update({f"{target.lang}: {reason}": count for reason, count in (counts | noise).items()})
    if not len(left):
        raise DataError(
            f"no training pair is left for target language {target.lang}", got=f"{counted(len(pairs), 'pair')} read"
        )
    return left


def _more_split(config: DataConfig, split: str, seed: int, lang: str) -> ParallelText:
    if split != "train":
        raise DataError(
            f"the {split} split is in {config.tgt_lang} only: data.more_targets gives {lang} training pairs",
            hint=f"give its lines in {lang} with --ref FILE, and with --src FILE those of another text",
        )
    target = next(target for target in config.more_targets if target.lang == lang)
    dev = _train_and_dev(config, seed, Lenient())[1] if makes_dev(config) else ParallelText([], [])
    return _more(config, target, dev, {})


def _split_off_dev(pairs: ParallelText, dev_size: int, seed: int) -> tuple[ParallelText, ParallelText]:
    """Make a dev set of distinct source lines, chosen by a seeded hash; all pairs with these sources leave train.

    At least one and at most a tenth of the distinct source lines is taken. The hash sees only the line, so adding or
    reordering training data moves few of them.
    """
    first: dict[str, int] = {}
    for i, line in enumerate(pairs.src):
        first.setdefault(line, i)
    size = min(dev_size, max(1, len(first) // 10))
    chosen = set(heapq.nsmallest(size, first, key=_seeded_hash(seed)))
    dev = sorted(first[line] for line in chosen)
    train = [i for i, line in enumerate(pairs.src) if line not in chosen]
    return pairs.select(train), pairs.select(dev)


def _seeded_hash(seed: int) -> Callable[[str], bytes]:
    key = seed.to_bytes(8, "little")
    return lambda line: hashlib.blake2b(line.encode(), key=key, digest_size=16).digest()


def _overlaps(splits: Mapping[str, SentencePairs]) -> list[str]:
    """Return a warning for each two splits that share source lines; blank lines do not count."""
    notes = []
    trains = [name for name in splits if name.startswith("train")]
    for name, other in [(name, train) for train in trains for name in ("dev", "test")] + [("test", "dev")]:
        lines = [pair for pair in _pairs(splits[name]) if pair[0].strip()]
        sources = {src for src, _ in lines}.intersection(splits[other].src)
        pairs = set(lines).intersection(_pairs(splits[other]))
        if sources:
            same_source, same_pair = sum(src in sources for src, _ in lines), sum(pair in pairs for pair in lines)
            of_all = f"{same_source:,} of {counted(len(splits[name]), f'{name} source line')}"
            also = f"{'is' if same_source == 1 else 'are'} also in {other}"
            notes.append(f"{of_all} {also} ({same_pair:,} as the same pair)")
    return notes


def _pairs(text: SentencePairs) -> Iterator[tuple[str, str]]:
    return zip(text.src, text.tgt, strict=True)


def _fingerprint(*splits: SentencePairs) -> str:
    digest = hashlib.sha256()
    for text in splits:
        for side in (text.src, text.tgt):
            digest.update(f"{len(side)}\0".encode())
            lines, joint = iter(side), ""
            while part := list(islice(lines, _PART)):  # no line holds a NUL, so no two corpora look alike
                digest.update((joint + "\0".join(part)).encode())
                joint = "\0"
    return digest.hexdigest()
