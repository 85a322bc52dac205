"""The run folder as seen by the ranks that write nothing: what the main rank knows, and no way to change it."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.snapshot import CheckpointState
from transformer_cli.config import Config


class FollowedRun(RunFolder):
    """A run that another process writes; its folder need not even exist on this machine."""

    @classmethod
    def of(cls, run: RunFolder) -> "FollowedRun":
        """Return a run as one that is only followed."""
        return cls(run.path, run.config, run.tokenizer, run.info)

    def update_info(self, changes: Mapping[str, object]) -> None:
        """Note the changes in memory."""
        self.info.update(changes)

    def replace_config(self, config: Config) -> None:
        """Note the configuration in memory."""
        self.config = config

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Leave locking to the process that writes."""
        yield

    def clean(self) -> None:
        """Leave everything as it is."""

    def steps(self, last: float = math.inf) -> list[int]:
        """Return nothing: the main rank tells what there is."""
        return []

    def newest_intact(self, note: Callable[[str], None]) -> CheckpointState | None:
        """Return nothing: the main rank sends its own."""
        return None

    def save_checkpoint(self, state: CheckpointState) -> None:
        """Write nothing."""

    def prune(self, now: int, keep_last: int, keep_best: int, metric: str, needed: Collection[int] = ()) -> None:
        """Remove nothing."""

    def save_model(self, weights: Mapping[str, Tensor]) -> None:
        """Write nothing."""

    def save_average(self, weights: Mapping[str, Tensor]) -> None:
        """Write nothing."""

    def forget_average(self) -> None:
        """Leave everything as it is."""

    def append_metrics(self, record: Mapping[str, object]) -> None:
        """Write nothing."""

    def append_samples(self, record: Mapping[str, object]) -> None:
        """Write nothing."""

    def append_log(self, line: str) -> None:
        """Write nothing."""

    def truncate_records(self, step: int, owed: Collection[str] = ()) -> None:
        """Write nothing."""
