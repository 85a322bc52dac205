"""The sides of a decoding benchmark, each in a process of its own: our engine, and CTranslate2.

Both get lines and give lines, with the same SentencePiece. CTranslate2 cuts a job into batches and shares them among
its workers by itself. Which number of workers and threads is best, how many sentences side by side, and for CTranslate2
whether with MKL, is tried for both.
"""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_cli.data.tokenizer import EOS
from transformer_cli.decoding.child_pool import ChildPool
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import WorkerKilled
from transformer_cli.export.extra import ctranslate2
from transformer_cli.export.folder import ExportFolder
from transformer_cli.runtime import available_cores
from transformer_cli.wording import counted

_KILLED_HINT = "free memory, or let it try fewer workers by giving it fewer cores: taskset -c 0 tfm bench --decode ..."
_SENTENCES = (64, 32, 128, 256)  # side by side

T = TypeVar("T")
Translate = Callable[[Sequence[str]], tuple[list[str], int]]  # to translations and the number of their tokens


@dataclass(frozen=True)
class Tuning:
    """How a side shares its work; it changes the speed only."""

    place: Path  # the run, or its export
    n_workers: int
    threads: int  # of each worker
    sentences: int  # side by side
    compute_type: str | None = None  # of CTranslate2; None: our engine
    mkl: bool = False  # of CTranslate2
    shortlist: bool = False  # the run's; our engine's alone

    @property
    def engine(self) -> str:
        """Whose engine."""
        return "tfm" if self.compute_type is None else "ctranslate2"

    @property
    def name(self) -> str:
        """The engine, and what its translations depend on."""
        return " ".join([self.engine, *filter(None, [self.compute_type]), *["shortlist"] * self.shortlist])

    def __str__(self) -> str:
        shared = f"{counted(self.n_workers, 'worker')} of {counted(self.threads, 'thread')}"
        common = f"{shared}, {counted(self.sentences, 'sentence')} side by side"
        if self.compute_type is not None:
            common = f"{self.compute_type}, {common}, CT2_USE_MKL={int(self.mkl)}"
        return f"{common}, shortlist" if self.shortlist else common


class Side:
    """An engine that is loaded, with one way of searching."""

    def __init__(self, tuning: Tuning, settings: DecodeSettings) -> None:
        """Start its process and wait until it has loaded the model.

        Raises:
            WorkerKilled: one of its processes was killed; as when it translates.
        """
        start = time.perf_counter()
        self.engine, self.name, self.setting = tuning.engine, tuning.name, str(tuning)
        with _environment(CT2_USE_MKL=str(int(tuning.mkl))):  # read when the library is loaded
            self._pool = ChildPool(1, _load, (tuning, settings), _leave)
        try:
            self._asked(os.getpid)
        except BaseException:  # Ctrl-C too
            self._pool.close()
            raise
        self.load_seconds = time.perf_counter() - start

    def translate(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Return the translations of lines, and the number of their tokens."""
        return self._asked(_translate, list(lines))

    def peak_bytes(self) -> int:
        """Return the greatest resident sets of its processes, added up; 0 where the system does not tell."""
        return self._asked(_peaks)

    def _asked(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            return self._pool.results(work, [arguments])[0]
        except WorkerKilled as killed:  # its own process, or a worker of that
            where = f"{self.engine}: {self.setting}"
            raise WorkerKilled(killed.what, where=where, hint=_KILLED_HINT) from killed

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        """End its processes, whatever they are doing."""
        self._pool.close()


def best_tuning(start: Tuning, settings: DecodeSettings, lines: Sequence[str], note: Callable[[str], None]) -> Tuning:
    """Return the fastest of a few tunings: first workers, threads and MKL, then how many sentences side by side."""
    tried = dict[Tuning, float]()

    def attempt(tuning: Tuning) -> None:
        with Side(tuning, settings) as side:
            side.translate(lines[:50])
            tried[tuning] = min(_seconds(side, lines) for _ in range(2))  # in the first a worker may still be loading
        note(f"tried {tuning.engine}: {tuning}: {len(lines) / tried[tuning]:,.0f} sentences/s")

    for tuning in _tried_first(start):
        attempt(tuning)
    first = min(tried, key=lambda tuning: tried[tuning])
    for sentences in _SENTENCES[1:]:
        attempt(replace(first, sentences=sentences))
    return min(tried, key=lambda tuning: tried[tuning])


def n_tried(start: Tuning) -> int:
    """Return how many tunings ``best_tuning`` tries."""
    return len(_tried_first(start)) + len(_SENTENCES[1:])


def _tried_first(start: Tuning) -> list[Tuning]:
    cores, libraries = available_cores(), (False,) if start.compute_type is None else (False, True)
    shares = sorted({(1, cores), (cores, 1)})
    return [replace(start, n_workers=n, threads=threads, mkl=mkl) for (n, threads), mkl in product(shares, libraries)]


def _seconds(side: Side, lines: Sequence[str]) -> float:
    begin = time.perf_counter()
    side.translate(lines)
    return time.perf_counter() - begin


def first_tuning(place: Path, compute_type: str | None = None, *, shortlist: bool = False) -> Tuning:
    """Return the tuning from which ``best_tuning`` starts."""
    return Tuning(place, 1, 1, _SENTENCES[0], compute_type, shortlist=shortlist)


# What follows runs in the process of a side.

_state: dict[str, Any] = {}


def _load(tuning: Tuning, settings: DecodeSettings) -> None:
    torch.set_num_threads(tuning.threads)
    _state["translate"] = _ours(tuning, settings) if tuning.compute_type is None else _theirs(tuning, settings)


def _ours(tuning: Tuning, settings: DecodeSettings) -> Translate:
    translator = Translator.from_run(tuning.place, "cpu", workers=tuning.n_workers)
    settings = settings.but({"batch_size": tuning.sentences, "batch_tokens": 10**6, "shortlist": tuning.shortlist})
    _state["end"] = translator.close
    translator.translate_window(["."] * tuning.n_workers, settings)  # waits for one worker's model; the others load on

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        found = translator.translate_window(lines, settings)
        return [one.text for one in found], sum(len(one.hypotheses[0].tokens) for one in found)

    return translate


def _theirs(tuning: Tuning, settings: DecodeSettings) -> Translate:
    tokenizer = ExportFolder.open(tuning.place).tokenizer
    engine = ctranslate2().Translator(
        str(tuning.place),
        device="cpu",
        compute_type=tuning.compute_type,
        inter_threads=tuning.n_workers,
        intra_threads=tuning.threads,
    )
    names = tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size))
    ids = {piece: number for number, piece in enumerate(names)}

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        pieces = [tokenizer.src_pieces([*source, EOS]) for source in tokenizer.encode_src(lines)]
        results = engine.translate_batch(
            pieces,
            beam_size=settings.beam_size,
            length_penalty=settings.length_penalty,
            max_batch_size=tuning.sentences,
            max_decoding_length=settings.max_length(max(map(len, pieces))),
            max_input_length=0,
            disable_unk=True,
        )
        best = [result.hypotheses[0] for result in results]
        return [tokenizer.decode([ids[piece] for piece in found]) for found in best], sum(map(len, best))

    return translate


def _translate(lines: list[str]) -> tuple[list[str], int]:
    translate: Translate = _state["translate"]
    return translate(lines)


def _leave() -> None:
    """End the workers; their queues are then forgotten, or the first process would tell of semaphores left behind."""
    if "end" in _state:
        _state.pop("end")()
        _state.clear()
        gc.collect()


def _peaks() -> int:
    return sum(map(_peak, [os.getpid(), *(child.pid for child in multiprocessing.active_children())]))


def _peak(pid: int | None) -> int:
    """Return the greatest resident set that a process had, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
