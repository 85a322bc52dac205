"""How much memory a case needs at its peak, beyond its inputs: measured, not computed.

On a GPU torch's allocator counts. On a CPU the operating system counts, in a process of its own for each case
(``python -m transformer_cli.benchmark.memory`` imports torch once and forks for every case), because an allocator that
keeps freed memory would hide the next case's need. There a small case first loads all code; then the peak of the
resident set is reset (``/proc/self/clear_refs``) and read again after the one run (``VmHWM``). Where ``/proc`` is
missing the growth of ``ru_maxrss`` stands in, which misses what fits below an earlier peak. Both see pages: expect
noise of some 100 kB.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from transformer_cli.benchmark.attention import Case, Shape, Unsupported, attempt, backend, make_inputs, prepare

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_M_MMAP_THRESHOLD = -3  # glibc's number of the setting, for mallopt()
_PR_SET_PDEATHSIG = 1  # Linux' number of the setting, for prctl()


def peak_bytes(cases: Sequence[Case]) -> list[int | str]:
    """Return for each case the most bytes beyond its inputs that one run holds, or the reason why it cannot run.

    Raises:
        RuntimeError: the measuring process failed for a reason that is neither memory nor a refusal.
    """
    if cases and torch.device(cases[0].shape.device).type == "cuda":
        return [_answer(_on_gpu, case) for case in cases]
    return _in_other_processes(cases)


def method(device: str) -> str:
    """Return how ``peak_bytes`` counts, in words."""
    if torch.device(device).type == "cuda":
        return "torch's CUDA allocator: peak minus what the inputs hold"
    name = "VmHWM" if _RESET.exists() else "ru_maxrss"
    return f"the most memory that a process of its own held during the run, less what it held before: {name}"


def _answer(measure: Callable[[Case], int], case: Case) -> int | str:
    try:
        return attempt(lambda: measure(case))
    except Unsupported as reason:
        return str(reason)


def _on_gpu(case: Case) -> int:
    run = prepare(case, make_inputs(case.shape, case.seq_len))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with backend(case.kernel):
        run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def asked(module: str, question: object) -> subprocess.CompletedProcess[str]:
    """Run a module of this package in a process of its own, with a question as JSON on its standard input."""
    root = str(Path(__file__).parents[2])  # so that it also works without an installed package
    paths = os.pathsep.join(path for path in (root, os.environ.get("PYTHONPATH")) if path)
    return subprocess.run(
        [sys.executable, "-P", "-m", module],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
    )


def _in_other_processes(cases: Sequence[Case]) -> list[int | str]:
    done = asked("transformer_cli.benchmark.memory", [asdict(case) for case in cases])
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(cases):
        raise RuntimeError(f"the measuring process failed:\n{done.stderr}")
    return answers


def _serve() -> None:
    """Answer the cases on stdin, a JSON line each; nothing is computed in this process itself."""
    for told in json.load(sys.stdin):
        case = Case(**{**told, "shape": Shape(**told["shape"])})
        child = os.fork() if hasattr(os, "fork") else 0
        if child == 0:
            print(json.dumps(_answer(_in_this_process, case)), flush=True)
            if hasattr(os, "fork"):
                os._exit(0)
            continue
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):  # the system's way of saying that memory ran out
            reason = f"out of memory (the measuring process was stopped by signal {os.WTERMSIG(status)})"
            print(json.dumps(reason), flush=True)


def _in_this_process(case: Case) -> int:
    torch.set_num_threads(case.shape.threads)
    set_up_system()
    stay_within_memory()
    with backend(case.kernel):
        prepare(replace(case, seq_len=16), make_inputs(case.shape, 16))()  # torch loads what it needs
        run = prepare(case, make_inputs(case.shape, case.seq_len))
        before = forget_peak()
        run()
    return max(0, peak() - before)


def forget_peak() -> int:
    """Forget the peak so far; return the resident bytes from which growth counts."""
    try:
        _RESET.write_text("5")
    except OSError:
        return peak()
    return _status("VmRSS")


def peak() -> int:
    """Return the most resident bytes since ``forget_peak``."""
    if _RESET.exists():
        return _status("VmHWM")
    import resource  # not on every system

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(key: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def set_up_system() -> None:
    """Return freed blocks to the system, and end with the process that asks.

    glibc keeps freed blocks below a threshold that grows with use, unless it is set.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if hasattr(library, "mallopt"):  # musl has none
            library.mallopt(_M_MMAP_THRESHOLD, 64 * 1024)


def stay_within_memory() -> None:
    """Let an allocation beyond the free memory fail in torch, before the system starts to kill processes."""
    if sys.platform != "linux":
        return
    import resource

    text = Path("/proc/meminfo").read_text()
    free = next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("MemAvailable:"))
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + free * 9 // 10,) * 2)


if __name__ == "__main__":
    _serve()
