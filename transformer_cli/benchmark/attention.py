"""What is measured: one attention kernel at one length, forward or forward and backward.

A kernel that cannot run here is an answer, not a crash: ``attempt`` turns torch's refusals and a lack of memory into
``Unsupported`` with the reason. Clocks are in ``timing.py``, memory in ``memory.py``, exactness in ``accuracy.py``.

Legend: B batch, H heads, S length of queries and keys, K head width.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_cli.benchmark.sparse import PATTERNS, pattern_named, visible_pairs
from transformer_cli.errors import UserError, is_out_of_memory
from transformer_cli.model.kernels import Linformer, SparseAttention, naive_attention, sdpa_attention

Dense = Literal["naive", "sdpa", "flash", "efficient", "cudnn", "math"]
Kernel = Dense | Literal["window", "dilated", "bigbird", "blocks", "linformer"]
#: ``sdpa`` is torch's own choice among its backends flash to math, of which each stands alone, or refuses.
KERNELS: tuple[Kernel, ...] = (*get_args(Dense), *PATTERNS, "linformer")
Pass = Literal["forward", "forward+backward"]
PASSES: tuple[Pass, ...] = ("forward", "forward+backward")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
#: Kernels of torch that are asked for by name.
BACKENDS: dict[Kernel, SDPBackend] = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
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
    padding: float = 0.0  # share of hidden keys at the end of each sequence
    device: str = "cpu"
    threads: int = 1
    window: int = 256  # of the sparse kernels: keys on each side, or of a block
    rank: int = 64  # of linformer

    def __post_init__(self) -> None:
        _check(self.dtype in DTYPES, "dtype", self.dtype, " or ".join(DTYPES))
        _check(0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        _check(0 <= self.padding < 1, "padding", self.padding, "at least 0 and below 1")
        for name in ("heads", "head_dim", "batch", "window", "rank"):
            _check(1 <= getattr(self, name) <= 65_536, name, getattr(self, name), "a number from 1 to 65,536")


@dataclass(frozen=True)
class Case:
    """One row of the report."""

    kernel: Kernel
    direction: Pass
    seq_len: int
    shape: Shape


@dataclass(frozen=True)
class Inputs:
    """Query, key, value and the gradient that arrives from above, each ``[B, H, S, K]``; the mask of the padding."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    mask: Tensor | None = None  # [B, 1, 1, S]


def make_inputs(shape: Shape, seq_len: int) -> Inputs:
    """Draw standard normal inputs from a fixed seed: the same numbers on every device and in every process."""
    generator = torch.Generator().manual_seed(seq_len)
    size = (shape.batch, shape.heads, seq_len, shape.head_dim)
    draws = [torch.randn(size, generator=generator).to(shape.device, DTYPES[shape.dtype]) for _ in range(4)]
    query, key, value = (tensor.requires_grad_() for tensor in draws[:3])
    return Inputs(query, key, value, draws[3], padding(shape, seq_len))


def padding(shape: Shape, seq_len: int) -> Tensor | None:
    """Return the mask ``[B, 1, 1, S]`` that hides the padding (True = may attend), or None; one key always stays."""
    if not shape.padding:
        return None
    real = max(1, round(seq_len * (1 - shape.padding)))
    return (torch.arange(seq_len, device=shape.device) < real).expand(shape.batch, 1, 1, seq_len)


def useful_flops(case: Case) -> int:
    """Return the floating-point operations of the products that the case asks for.

    Two products in the forward pass, Q Kᵀ and P V, and four of their size in the backward pass (the gradients of each
    one's factors); of hidden pairs of a query and a key none. What a kernel computes twice counts once.
    """
    shape, seq_len = case.shape, case.seq_len
    hidden = padding(replace(shape, device="cpu", batch=1), seq_len)
    real = seq_len if hidden is None else int(hidden.sum())
    products = 2 if case.direction == "forward" else 6
    return products * 2 * shape.batch * _pairs(case, real) * shape.head_dim


def _pairs(case: Case, real: int) -> int:
    """Count the pairs of a query and a key that meet, of all heads; of linformer also those that its mixing takes."""
    shape, seq_len = case.shape, case.seq_len
    pattern = pattern_named(case.kernel, shape.window)
    if pattern is not None:
        return visible_pairs(pattern, seq_len, real, causal=shape.causal, heads=shape.heads)
    if case.kernel == "linformer":  # E K and F V are as large as the two products that follow
        return shape.heads * 2 * seq_len * shape.rank
    return shape.heads * (sum(range(real + 1)) + (seq_len - real) * real if shape.causal else seq_len * real)


def prepare(case: Case, inputs: Inputs) -> Callable[[], tuple[Tensor, ...]]:
    """Return the call to measure: it gives the output, and with a backward pass the gradients of query, key, value.

    All are ``[B, H, S, K]``; the gradients of Linformer's mixtures follow them. The forward pass runs without a graph,
    as in translation. Run it inside ``backend(case.kernel)``.

    Raises:
        Unsupported: the kernel cannot compute such a case by its design.
    """
    attention = _implementation(case, inputs)
    learned = tuple(attention.parameters()) if isinstance(attention, Linformer) else ()
    leaves = (inputs.query, inputs.key, inputs.value)
    causal, dropout = case.shape.causal, case.shape.dropout

    def forward() -> tuple[Tensor, ...]:
        with torch.no_grad():
            return (attention(*leaves, inputs.mask, causal=causal, dropout=dropout)[0],)

    def forward_backward() -> tuple[Tensor, ...]:
        out = attention(*leaves, inputs.mask, causal=causal, dropout=dropout)[0]
        return (out.detach(), *torch.autograd.grad(out, (*leaves, *learned), inputs.grad_out))

    return forward if case.direction == "forward" else forward_backward


def _implementation(case: Case, inputs: Inputs) -> Callable[..., tuple[Tensor, Tensor | None]]:
    pattern = pattern_named(case.kernel, case.shape.window)
    if pattern is not None:
        return SparseAttention(pattern)
    if case.kernel == "linformer":
        if case.shape.causal:
            raise Unsupported("each of its keys is a mixture of all positions: it would see the future")
        torch.manual_seed(case.seq_len)
        return Linformer(case.shape.rank, case.seq_len).to(inputs.query)
    return naive_attention if case.kernel == "naive" else sdpa_attention


def backend(kernel: Kernel) -> AbstractContextManager[object]:
    """Allow torch only the backend that is named, so that it refuses instead of falling back silently."""
    chosen = BACKENDS.get(kernel)
    return nullcontext() if chosen is None else sdpa_kernel(chosen)


def chosen_backend(case: Case, inputs: Inputs) -> str:
    """Return what computes the case: for ``sdpa`` torch's own choice (flash, efficient, cudnn or math)."""
    if case.kernel != "sdpa":
        return case.kernel
    choose = getattr(torch, "_fused_sdp_choice", None)  # torch has no public name for this question
    if choose is None:
        return "unknown"
    with torch.set_grad_enabled(case.direction != "forward"):
        mask = inputs.mask  # as ``sdpa_attention`` gives it to torch: beside a mask, causality is written into it
        if mask is not None and case.shape.causal:
            mask = mask.expand(-1, 1, case.seq_len, -1)
        causal = case.shape.causal and mask is None
        choice = choose(inputs.query, inputs.key, inputs.value, mask, case.shape.dropout, causal)
    return SDPBackend(choice).name.removesuffix("_ATTENTION").lower()


def attempt(action: Callable[[], Result]) -> Result:
    """Call ``action``; torch gives its reasons as warnings before the error, so warnings are collected here.

    Raises:
        Unsupported: torch refuses, for the reasons that are told, or memory ran out.
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
    if is_out_of_memory(error):
        return "out of memory"
    if isinstance(error, NotImplementedError):
        return text.splitlines()[0]
    if "No available kernel" in text or "No viable backend" in text:
        told = [remark.partition(" (Triggered")[0].strip() for remark in remarks]
        own = " ".join(dict.fromkeys(part for part in told if not part.endswith("because:")))
        return own or "torch has no such kernel for this device"
    return None


def _check(holds: bool, name: str, got: object, expected: str) -> None:
    if not holds:
        raise UserError(f"{name} is out of range", got=got, expected=expected)
