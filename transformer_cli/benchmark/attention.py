"""What is measured: one attention kernel at one length, forward or forward and backward.

A kernel that cannot run here is an answer, not a crash: ``attempt`` turns torch's refusals and a lack of memory into
``Unsupported`` with the reason. Clocks are in ``timing.py``, memory in ``memory.py``, exactness in ``accuracy.py``.

Legend: B batch, H heads, S length of queries and keys, K head width.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_cli.errors import UserError
from transformer_cli.model.kernels import naive_attention, sdpa_attention

Kernel = Literal["naive", "sdpa", "flash"]
Pass = Literal["forward", "forward+backward"]
PASSES: tuple[Pass, ...] = ("forward", "forward+backward")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Result = TypeVar("Result")


class Unsupported(Exception):
    """A kernel refuses a case here, or the case does not fit into memory; the message is the reason."""


@dataclass(frozen=True)
class Shape:
    """The part of a case that all kernels and lengths of one benchmark share."""

    heads: int = 8
    head_dim: int = 64
    batch: int = 1
    dtype: str = "float32"
    causal: bool = False
    dropout: float = 0.0
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        _check(self.dtype in DTYPES, "dtype", self.dtype, " or ".join(DTYPES))
        _check(0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        for name in ("heads", "head_dim", "batch"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")


@dataclass(frozen=True)
class Case:
    """One row of the report."""

    kernel: Kernel
    direction: Pass
    seq_len: int
    shape: Shape


@dataclass(frozen=True)
class Inputs:
    """Query, key, value and the gradient that arrives from above, each ``[B, H, S, K]``."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor


def make_inputs(shape: Shape, seq_len: int) -> Inputs:
    """Draw standard normal inputs from a fixed seed: the same numbers on every device and in every process."""
    generator = torch.Generator().manual_seed(seq_len)
    size = (shape.batch, shape.heads, seq_len, shape.head_dim)
    draws = [torch.randn(size, generator=generator).to(shape.device, DTYPES[shape.dtype]) for _ in range(4)]
    query, key, value = (tensor.requires_grad_() for tensor in draws[:3])
    return Inputs(query, key, value, draws[3])


def prepare(case: Case, inputs: Inputs) -> Callable[[], tuple[Tensor, ...]]:
    """Return the call to measure: it gives the output, and with a backward pass the gradients of query, key, value.

    The forward pass runs without a graph, as in translation. Run it inside ``backend(case.kernel)``.
    """
    attention = naive_attention if case.kernel == "naive" else sdpa_attention
    leaves = (inputs.query, inputs.key, inputs.value)

    def forward() -> tuple[Tensor, ...]:
        with torch.no_grad():
            return (attention(*leaves, causal=case.shape.causal, dropout=case.shape.dropout)[0],)

    def forward_backward() -> tuple[Tensor, ...]:
        out = attention(*leaves, causal=case.shape.causal, dropout=case.shape.dropout)[0]
        return (out.detach(), *torch.autograd.grad(out, leaves, inputs.grad_out))

    return forward if case.direction == "forward" else forward_backward


def backend(kernel: Kernel) -> AbstractContextManager[object]:
    """Allow torch only the flash kernel for ``flash``, so that it refuses instead of falling back silently."""
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if kernel == "flash" else nullcontext()


def chosen_backend(case: Case, inputs: Inputs) -> str:
    """Return what computes the case: for ``sdpa`` torch's own choice (flash, efficient, cudnn or math)."""
    if case.kernel != "sdpa":
        return case.kernel
    choose = getattr(torch, "_fused_sdp_choice", None)  # torch has no public name for this question
    if choose is None:
        return "unknown"
    with torch.set_grad_enabled(case.direction != "forward"):
        choice = choose(inputs.query, inputs.key, inputs.value, None, case.shape.dropout, case.shape.causal)
    return SDPBackend(choice).name.removesuffix("_ATTENTION").lower()


def attempt(action: Callable[[], Result]) -> Result:
    """Call ``action``; raise ``Unsupported`` with torch's own reasons where it refuses or memory runs out.

    Torch gives its reasons as warnings before the error, so warnings are collected here.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return action()
        except (RuntimeError, MemoryError) as error:
            reason = _reason(error, [str(warning.message) for warning in caught])
            if reason is None:
                raise
            raise Unsupported(reason) from None


def _reason(error: Exception, remarks: list[str]) -> str | None:
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in text:
        return "out of memory"
    if isinstance(error, NotImplementedError):
        return text.splitlines()[0]
    if "No available kernel" in text or "No viable backend" in text:
        told = [remark.partition(" (Triggered")[0].strip() for remark in remarks]
        return " ".join(dict.fromkeys(part for part in told if not part.endswith("because:"))) or text.splitlines()[0]
    return None


def _check(holds: bool, name: str, got: object, expected: str) -> None:
    if not holds:
        raise UserError(f"{name} is out of range", got=got, expected=expected)
