"""One run folder: self-contained, movable, and whole at every instant.

    run.json             format, created, recipe, versions, status, steps, best
    config.yaml          the resolved recipe
    tokenizer*.model
    model.safetensors    the best weights so far, or the average that beat them
    single.safetensors   the best weights, if an average has taken their place
    checkpoints/step-N/  see snapshot.py
    metrics.jsonl        a record per log interval and validation
    samples.jsonl        sample translations of every validation
    train.log            what was printed

Beside them ``scores.jsonl`` and ``confidence.json`` (``tfm eval``), ``shortlist.safetensors`` and ``ctranslate2/``.

Not here: when to save (``training/trainer.py``), how to write durably (``durable.py``), loading (``loading.py``).
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer_cli.checkpoint import durable
from transformer_cli.checkpoint.json_lines import keep_records, read_records
from transformer_cli.checkpoint.own_files import foreign_files, refuse_foreign
from transformer_cli.checkpoint.run_info import FORMAT, INFO, read_info
from transformer_cli.checkpoint.snapshot import WEIGHTS, CheckpointState, read_snapshot, read_state, write_snapshot
from transformer_cli.checkpoint.tensor_files import to_bytes
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import ConfigError, RunError
from transformer_cli.recipe import load_recipe, to_yaml

_LOCK, _SINGLE = ".lock", "single.safetensors"
_CONFIG, _METRICS, _SAMPLES, _LOG = "config.yaml", "metrics.jsonl", "samples.jsonl", "train.log"


class RunFolder:
    """Everything about one run on disk."""

    def __init__(self, path: Path, config: Config, tokenizer: Tokenizer, info: dict[str, Any]) -> None:
        self.path, self.config, self.tokenizer, self.info = path, config, tokenizer, info

    @classmethod
    def create(
        cls, path: Path, config: Config, tokenizer: Tokenizer, info: Mapping[str, object], *, overwrite: bool = False
    ) -> "RunFolder":
        """Make a new run folder; it appears whole or not at all.

        Args:
            path: where; the parents are made.
            config: the resolved recipe.
            tokenizer: saved with the run.
            info: what else ``run.json`` shall say.
            overwrite: replace an existing *run*, if it holds nothing else; another kind of folder is never replaced.

        Raises:
            RunError: something is in the way, or the place cannot be written.
        """
        cls.refuse_existing(path, overwrite)
        refuse_foreign(path)
        own = {"format": FORMAT, "created": datetime.now(UTC).isoformat(timespec="microseconds")}
        own |= {"tokenizer_sha256": tokenizer.sha256, "model_section_sha256": config.model_fingerprint()}
        own |= {"status": "new", "step": 0, "total_steps": None, "best": None}
        if (path / INFO).is_file():
            with cls(path, config, tokenizer, {}).lock():
                pass  # raises if somebody trains there
        with durable.new_folder(path) as temporary:
            (temporary / "checkpoints").mkdir(parents=True)
            tokenizer.save(temporary)
            made = cls(temporary, config, tokenizer, {**info, **own})
            made.replace_config(config)
            made.update_info({})
        made.path = path
        return made

    @staticmethod
    def refuse_existing(path: Path, overwrite: bool) -> None:
        """Check that a run may be made at a place.

        Raises:
            RunError: a run is there and shall not be replaced, or something that is not a run.
        """
        if path.resolve() == Path.cwd():
            raise RunError("is the folder you are in", where=str(path), hint="choose another folder with --run")
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return
        if not (path / INFO).is_file():
            raise RunError("is in the way and is not a run", where=str(path), hint="choose another folder with --run")
        if not overwrite:
            hint = "continue it with --resume, or replace it with --overwrite"
            raise RunError("the run folder exists", where=str(path), hint=hint)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open an existing run; nothing is written, so a read-only folder will do.

        Raises:
            RunError: there is no run, it is damaged or of a newer format.
            DataError: its tokenizer is missing or damaged.
        """
        path = Path(path)
        info = read_info(path)
        try:
            config = load_recipe(str(path / _CONFIG))
        except ConfigError as error:
            hint = "put config.yaml back as it was: only the recipe of its training describes this model"
            got = error.render().splitlines()[0] if (path / _CONFIG).exists() else "no config.yaml"
            raise RunError("has no usable config.yaml", where=str(path), got=got, hint=hint) from None
        return cls(path, config, Tokenizer.load(path), info)

    def identity(self) -> dict[str, str | None]:
        """Return what a score must be read with: hashes of configuration and data, and the commit of the code."""
        known = {name: self.info.get(name) for name in ("corpus_sha256", "git")}
        return {"config_sha256": self.config.fingerprint(), **known}

    def refuse_edited_model(self) -> None:
        """Check that the model section of config.yaml is that of the training: weights fit many that compute otherwise.

        Raises:
            RunError: it is another one.
        """
        if self.info.get("model_section_sha256") not in (None, self.config.model_fingerprint()):
            hint = "put it back as it was: what a model computes cannot be changed after its training"
            raise RunError("was edited in its section model", where=str(self.path / _CONFIG), hint=hint)

    def update_info(self, changes: Mapping[str, object]) -> None:
        """Change entries of ``run.json``."""
        self.info.update(changes)
        durable.write_file(self.path / INFO, json.dumps(self.info, indent=1, ensure_ascii=False).encode() + b"\n")

    def replace_config(self, config: Config) -> None:
        """Store another configuration: that of a continued run, with its new limits."""
        self.config = config
        durable.write_file(self.path / _CONFIG, to_yaml(config).encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training here; the system takes the lock away when this one ends, however.

        Raises:
            RunError: another process holds it, or the folder cannot be written.
        """
        with durable.explained(self.path):
            file = (self.path / _LOCK).open("w")
        with file:
            try:
                import fcntl  # only POSIX systems have it; elsewhere a run folder is not locked
            except ImportError:
                yield
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hint = "wait for it, or stop it"
                raise RunError("another process trains in this run folder", where=str(self.path), hint=hint) from None
            yield

    def clean(self) -> None:
        """Remove what an interrupted write has left, and nothing of the user's. Only for the one who trains here."""
        for folder in (self.path, self.path / "checkpoints"):
            durable.remove_temporaries(folder, lambda path: not foreign_files(self.path, path))

    # Checkpoints

    def steps(self, last: float = math.inf) -> list[int]:
        """Return the steps that have a checkpoint, up to ``last``, ascending."""
        folders = [path for path in (self.path / "checkpoints").glob("step-*") if path.is_dir()]
        found = [int(path.name[5:]) for path in folders if re.fullmatch(r"step-[0-9]{1,18}", path.name)]
        return sorted(step for step in found if step <= last)

    def checkpoint(self, step: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.path / "checkpoints" / f"step-{step}"

    def save_checkpoint(self, state: CheckpointState) -> None:
        """Write a checkpoint durably.

        Raises:
            DiskFull: there is no room; what was there before is intact.
            RunError: the folder cannot be written.
        """
        write_snapshot(self.checkpoint(state.step), state, self.tokenizer.sha256)

    def load_checkpoint(self, step: int) -> CheckpointState:
        """Read and verify a checkpoint.

        Raises:
            RunError: it is missing or damaged.
        """
        return read_snapshot(self.checkpoint(step))

    def newest_intact(self, note: Callable[[str], None]) -> CheckpointState | None:
        """Return the newest checkpoint that is whole; damaged ones are named and passed over."""
        for step in reversed(self.steps()):
            try:
                return self.load_checkpoint(step)
            except RunError as error:
                note(f"checkpoint step-{step} cannot be used, trying the one before: {error.render()}")
        return None

    def prune(self, now: int, keep_last: int, keep_best: int, metric: str, needed: Collection[int] = ()) -> None:
        """Remove checkpoints except the newest ones, those with the best validations and those that are needed.

        Those beyond step ``now`` are neither counted nor removed: they could not be read when the run was continued,
        which may have been the disk's fault, and they are written again when the run comes there.
        """
        steps = self.steps(now)
        for step in set(steps) - {*steps[-keep_last:], *self.best_steps(now, keep_best, metric), *needed}:
            durable.remove_folder(self.checkpoint(step))

    def best_steps(self, now: int, count: int, metric: str) -> list[int]:
        """Return the steps, up to ``now``, of the checkpoints with the best validations, the best one first."""
        scores = {step: score for step in self.steps(now) if (score := self._score(step, metric)) is not None}
        sign = 1 if metric == "loss" else -1
        return sorted(scores, key=lambda step: (sign * scores[step], step))[:count]

    def _score(self, step: int, metric: str) -> float | None:
        try:
            validation = read_state(self.checkpoint(step))["counters"].get("validation")
        except RunError:
            return None
        return None if validation is None else float(validation[metric])

    # The best model

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        """Write ``model.safetensors``; equal weights give equal bytes."""
        durable.write_file(self.path / WEIGHTS, to_bytes(weights, self.tokenizer.sha256))

    def save_average(self, weights: Mapping[str, Tensor]) -> None:
        """Make averaged weights the run's model; the best single ones stay beside it."""
        durable.write_file(self.path / _SINGLE, (self.path / WEIGHTS).read_bytes())
        self.save_model(weights)

    def forget_average(self) -> None:
        """Go back to the best single model: a run that goes on has not been averaged yet."""
        if (self.path / _SINGLE).exists():
            durable.write_file(self.path / WEIGHTS, (self.path / _SINGLE).read_bytes())
            (self.path / _SINGLE).unlink()
        self._keep_records(lambda record: "average" not in record)

    def refuse_without_model(self) -> None:
        """Raise a ``RunError`` if there are no best weights yet; they are not read."""
        if not (self.path / WEIGHTS).exists():
            steps = self.steps()
            hint = f"use a checkpoint: {self.checkpoint(steps[-1])}" if steps else "continue it: tfm train --resume"
            raise RunError("the run has no validated model yet", where=str(self.path), expected=WEIGHTS, hint=hint)

    # Records

    def append_metrics(self, record: Mapping[str, object]) -> None:
        """Append a record; it has at least ``kind`` and ``step``."""
        durable.append_line(self.path / _METRICS, json.dumps(record, ensure_ascii=False))

    def append_samples(self, record: Mapping[str, object]) -> None:
        """Append the sample translations of a validation."""
        durable.append_line(self.path / _SAMPLES, json.dumps(record, ensure_ascii=False))

    def append_log(self, line: str) -> None:
        """Append a line to ``train.log``."""
        durable.append_line(self.path / _LOG, line)

    def truncate_records(self, step: int, owed: Collection[str] = ()) -> None:
        """Forget the records after a step, and a last line that was cut off.

        Args:
            step: that of a checkpoint; 0 is the beginning.
            owed: kinds of records that were written after the checkpoint of this very step, and will be again.
        """
        self._keep_records(lambda record: record["step"] < step + (record.get("kind", "validation") not in owed))

    def _keep_records(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        for name in (_METRICS, _SAMPLES):
            keep_records(self.path / name, wanted)

    def metrics(self, on_damage: Callable[[str], object] = lambda _: None) -> list[dict[str, Any]]:
        """Return all records that are whole; ``on_damage`` is told where others are."""
        return read_records(self.path / _METRICS, on_damage)
