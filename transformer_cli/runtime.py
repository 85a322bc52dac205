"""Device, precision, threads, ranks and random streams: resolved once, passed down."""

import ctypes
import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

from transformer_cli.errors import UserError
from transformer_cli.wording import counted

Amp = Literal["auto", "off", "bf16", "fp16"]


@dataclass(frozen=True)
class RankPlace:
    """Which of the processes of one training this is."""

    rank: int = 0  # among all
    world_size: int = 1
    local_rank: int = 0  # among those on this machine: the number of its GPU

    @classmethod
    def from_environment(cls) -> "RankPlace":
        """Read what ``torchrun`` sets: ``RANK``, ``WORLD_SIZE`` and ``LOCAL_RANK``; without them a process is alone.

        Raises:
            UserError: the variables are no numbers, or contradict each other.
        """
        names = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
        given = {name: os.environ[name] for name in names if os.environ.get(name)}
        try:
            world_size = int(given.get("WORLD_SIZE", "1"))
            if world_size == 1:
                return cls()
            rank = int(given["RANK"])
            local_rank = int(given.get("LOCAL_RANK", rank))
        except (ValueError, KeyError):
            world_size, rank, local_rank = 0, 0, 0
        if not (0 <= rank < world_size and local_rank >= 0):
            raise UserError(
                "the environment does not say which process this is",
                got=" ".join(f"{name}={value}" for name, value in given.items()),
                expected="WORLD_SIZE, 0 <= RANK < WORLD_SIZE and LOCAL_RANK, as torchrun sets them",
                hint="for a single process unset them",
            )
        return cls(rank, world_size, local_rank)


@dataclass(frozen=True)
class Runtime:
    """Where and in which precision a computation runs."""

    device: torch.device
    amp_dtype: torch.dtype | None  # None: everything in float32
    threads: int
    rank: int = 0  # among the processes that train together
    world_size: int = 1

    @classmethod
    def resolve(cls, device: str = "auto", amp: Amp = "off", place: RankPlace | None = None) -> "Runtime":
        """Choose device and precision.

        Args:
            device: ``auto`` (CUDA if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
            amp: ``bf16``, ``fp16``, ``off``; ``auto`` is bf16 on a GPU that has it natively, else off.
            place: of a process that trains with others: each has the GPU of its local rank; None: alone.

        Raises:
            UserError: the device does not exist here.
        """
        place = place or RankPlace()
        chosen = _device(device)
        if chosen.type == "cuda" and place.world_size > 1:
            if chosen.index is not None:
                raise UserError(f"{place.world_size} processes cannot share {device}", hint="use --device cuda")
            chosen = _device(f"cuda:{place.local_rank}")
        return cls(chosen, _amp_dtype(chosen, amp), torch.get_num_threads(), place.rank, place.world_size)

    def autocast(self) -> torch.autocast:
        """Return the context of the forward pass; does nothing when precision is float32."""
        enabled = self.amp_dtype is not None
        return torch.autocast(self.device.type, dtype=self.amp_dtype if enabled else torch.bfloat16, enabled=enabled)

    def describe(self) -> dict[str, object]:
        """Return what a figure must be read with: device, precision, threads and versions."""
        on_gpu = self.device.type == "cuda"
        return {
            "device": torch.cuda.get_device_name(self.device) if on_gpu else _cpu_name(),
            "amp": str(self.amp_dtype).removeprefix("torch.") if self.amp_dtype else "off",
            "threads": self.threads,
            "world_size": self.world_size,
            "torch": torch.__version__,
            "python": platform.python_version(),
        }


def keep_freed_memory() -> None:
    """Let the C library keep what is freed instead of giving it back to the kernel; other libraries stay as they are.

    A training step frees and takes the same megabytes again and again. By default glibc unmaps large blocks, and each
    of their pages is cleared by the kernel when it comes back: 29,000 page faults a step, a tenth of its time on a CPU
    (4+4 layers of width 128, 2,048 tokens).
    """
    _malloc_thresholds(trim=2**30, unmap=2**30)


def give_back_freed_memory() -> None:
    """Undo ``keep_freed_memory``, so that what is timed next has the memory of a program that has never called it.

    glibc's thresholds grow with the blocks that a program frees, to these at the most (mallopt(3)).
    """
    _malloc_thresholds(trim=2**26, unmap=2**25)


def _malloc_thresholds(trim: int, unmap: int) -> None:
    """Set from how many bytes on glibc gives memory back, and from how many a block has pages of its own."""
    if not _has_glibc():
        return
    trim_threshold, mmap_threshold = -1, -3  # the parameters' numbers are those of malloc.h
    libc = ctypes.CDLL(None)
    libc.mallopt(trim_threshold, trim)
    if not libc.mallopt(mmap_threshold, unmap):
        libc.mallopt(mmap_threshold, 2**25)  # the most that glibc before 2.35 takes


@cache
def _has_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"  # reads the interpreter's file


def stream_seed(*key: int | str) -> int:
    """Return the seed of a stream that is named by a key such as ``(seed, "dropout", epoch, batch)``.

    A stream that is a function of its key needs no generator state in a checkpoint, and whatever else draws random
    numbers in between (validation, logging) cannot move it.
    """
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "little") >> 1


def seed_stream(*key: int | str) -> None:
    """Set torch's generators to the stream of a key."""
    torch.manual_seed(stream_seed(*key))


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device {name!r}", expected="auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"unsupported device {name!r}", expected="auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"device {name} is not there",
            got=counted(torch.cuda.device_count(), "CUDA device"),
            hint="use --device cpu",
        )
    return device


def _amp_dtype(device: torch.device, amp: Amp) -> torch.dtype | None:
    if amp == "auto":
        return torch.bfloat16 if _has_bf16(device) else None
    return {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}[amp]


def _has_bf16(device: torch.device) -> bool:
    """Return whether products in bf16 are native; on a CPU they pay with tiles (AMX) only."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_amx_tile_supported())


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        model = ""
    return f"{model or platform.processor() or platform.machine()} ({counted(os.cpu_count() or 1, 'core')})"


def available_cores() -> int:
    """Return how many cores this process may use; only Linux knows of fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
