"""Several processes that train one model: sums over all of them, and errors that end all of them.

A rank is one of the processes that ``torchrun`` or ``srun`` starts. Every rank computes the gradients of its own
batches; the sum of them all is the gradient of the step, so that all make the same step and stay equal to the bit.
Rank 0, the main one, alone validates, decides by the clock and writes.

``DistributedDataParallel`` is not used: it reduces during the last backward pass of a window, which hides the network
behind the arithmetic, but it takes means over ranks where sums are needed and ties the gradients to one replica of the
model. One flat bucket at the end of the window is exact and simple; what it costs is in ``docs/training.md``.

Not here: which batches a rank reads (``trainer.py``) and which device it computes on (``runtime.py``).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import NoReturn, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from transformer_cli.errors import TfmError, TrainingFailed
from transformer_cli.runtime import RankPlace

T = TypeVar("T")

#: How long a rank waits for another that is alive but silent; a dead one is noticed at once. The main rank may
#: validate or prepare for minutes while the others wait.
_PATIENCE = timedelta(hours=1)


@contextmanager
def joined(place: RankPlace) -> Iterator["Ranks"]:
    """Meet the other ranks for the length of the ``with`` block; a lone process has nobody to meet.

    Gloo carries what lies on the CPU (control messages too), NCCL what lies on GPUs.

    Raises:
        TrainingFailed: the others do not come.
    """
    if place.world_size == 1:
        yield Ranks()
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    with _contact():
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            rank=place.rank,
            world_size=place.world_size,
            timeout=_PATIENCE,
        )
    try:
        yield Ranks(place.rank, place.world_size)
    finally:  # Gloo's threads abort a process that leaves without it
        dist.destroy_process_group()


class Ranks:
    """What the ranks do together; each method is called by all of them, in the same order.

    For a lone process every method does the obvious thing without ``torch.distributed``.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank, self.world_size = rank, world_size

    @property
    def is_main(self) -> bool:
        """Whether this rank validates, decides and writes."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """Return which of ``count`` batches this rank computes: dealt in turn, so that shares differ by one at most."""
        return range(self.rank, count, self.world_size)

    def all_reduce_sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks: one message per dtype, of equal bits on every rank."""
        if self.world_size == 1:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            same = [tensor for tensor in tensors if tensor.dtype == dtype]
            bucket = torch.cat([tensor.detach().reshape(-1) for tensor in same])
            with _contact():
                dist.all_reduce(bucket)
            parts = torch.split(bucket, [tensor.numel() for tensor in same])
            for tensor, part in zip(same, parts, strict=True):
                tensor.detach().copy_(part.view_as(tensor))

    def spread(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by the main rank's: drawn from one seed, but processors of another kind may round."""
        if self.world_size > 1:
            with _contact():
                for tensor in tensors:
                    dist.broadcast(tensor.detach(), src=0)

    def largest(self, number: int) -> int:
        """Return the largest of every rank's number."""
        if self.world_size == 1:
            return number
        tensor = torch.tensor(number)
        with _contact():
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        return int(tensor)

    def broadcast(self, value: T) -> T:
        """Return the main rank's value, of whatever kind; the others' is not looked at."""
        if self.world_size == 1:
            return value
        box = [value if self.is_main else None]
        with _contact():
            dist.broadcast_object_list(box, src=0)
        return cast(T, box[0])

    def from_main(self, work: Callable[[], T]) -> T:
        """Let the main rank do something; return what it found, or end all ranks by the error that it met.

        Raises:
            TfmError: on the main rank, the work's own.
            SystemExit: on the others, with the same exit code: one message is enough.
        """
        if self.world_size == 1:
            return work()
        result, error = _attempt(work) if self.is_main else (None, None)
        result, code = self.broadcast((result, 0 if error is None else error.exit_code))
        if error is not None:
            raise error
        if code:
            self._leave(code)
        return cast(T, result)

    def together(self, work: Callable[[], T]) -> T:
        """Do something on every rank; if it fails on any, end all by the error of the first.

        Raises:
            TfmError: on the lowest rank that failed.
            SystemExit: on the others, with the same exit code.
        """
        if self.world_size == 1:
            return work()
        result, error = _attempt(work)
        codes = self._gather(0 if error is None else error.exit_code)
        failed = [rank for rank, code in enumerate(codes) if code]
        if not failed:
            return cast(T, result)
        if error is not None and failed[0] == self.rank:
            raise error
        self._leave(codes[failed[0]])

    def refuse_difference(self, what: str, value: str) -> None:
        """Check that every rank has the same.

        Raises:
            TrainingFailed: they differ.
        """
        if self.world_size > 1 and len(values := set(self._gather(value))) > 1:
            self.fail(TrainingFailed(f"the processes of this run have different {what}", got=sorted(values)))

    def fail(self, error: TfmError) -> NoReturn:
        """End all ranks by an error that all of them have met; the main one, which may still have to write, tells it.

        Raises:
            TfmError: on the main rank, the error.
            SystemExit: on the others.
        """
        if self.is_main:
            raise error
        self._leave(error.exit_code)

    def _leave(self, code: int) -> NoReturn:
        """End in silence, but not before a rank that has more to say: the launcher stops all when the first is gone."""
        with suppress(RuntimeError):
            dist.barrier()  # nobody else comes: it ends when the connection does
        raise SystemExit(code)

    def _gather(self, value: T) -> list[T]:
        values = cast(list[T], [None] * self.world_size)
        with _contact():
            dist.all_gather_object(values, value)
        return values


def _attempt(work: Callable[[], T]) -> tuple[T | None, TfmError | None]:
    try:
        return work(), None
    except TfmError as error:
        return None, error


@contextmanager
def _contact() -> Iterator[None]:
    """Say in plain words that a connection broke."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingFailed(
            "lost contact with the other processes of this run",
            got=str(error).strip().splitlines()[0],
            hint="the first of them that failed says why; continue from the last checkpoint with --resume",
        ) from error
