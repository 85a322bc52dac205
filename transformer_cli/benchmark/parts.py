"""Where the time of a training step goes: torch's profiler, its events sorted into seven parts.

An event counts with the time that none of its own events explains, so the shares add up to one. It belongs to the part
that its name says, or the name of what it happened in; the backward pass of an operation belongs to the part of its
forward pass. Python time inside a part is the part's, elsewhere it is ``other``.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.autograd.profiler import profile, record_function

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.norms import LayerNorm, RMSNorm

#: The first part of which a word occurs in a name, in lower case, is the name's. The order matters: ``log_softmax`` is
#: the loss, other softmaxes are attention; a loss that multiplies matrices is the loss, but its products are products.
_WORDS = {
    "optimizer": ("optimizer",),
    "loss": (
        "cross_entropy",
        "crossentropy",
        "log_softmax",
        "logsoftmax",
        "logsumexp",
        "nll_loss",
        "nllloss",
        "chunkedloss",
    ),
    "dropout": ("dropout",),
    "normalisation": ("layer_norm", "layernorm"),
    "attention": ("scaled_dot_product", "scaleddotproduct", "attention", "softmax"),
    "products": ("mm", "linear", "matmul"),
}
PARTS = ("products", "attention", "loss", "dropout", "normalisation", "optimizer", "other")
_MARK = "part:"  # begins the names that ``part`` gives
_MODULES: dict[type[nn.Module], str] = {
    Dropout: "dropout",
    LayerNorm: "normalisation",
    RMSNorm: "normalisation",
    MultiHeadAttention: "attention",
}


def time_by_part(model: nn.Module, step: Callable[[], object], repeats: int) -> dict[str, float]:
    """Return the share of each part in the time of some steps on a CPU; the shares add up to 1.

    The profiler itself takes time, in proportion to the number of operations, so that parts of many small ones look
    somewhat larger than they are.

    Args:
        model: its modules mark what happens in them.
        step: does one step in this thread, and marks the update of the weights with ``part("optimizer")``.
        repeats: steps to watch.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's library tells stderr when it starts and stops
    with _marked(model), profile(use_kineto=False) as watched:
        for _ in range(repeats):
            with part("step"):
                step()
    return shares(watched.function_events or [])


def part(name: str) -> record_function:
    """Mark what happens in the context as belonging to a part."""
    return record_function(_MARK + name)


def shares(events: Any) -> dict[str, float]:
    """Sort the profiler's events into parts; return each part's share of the time, from 0 to 1."""
    forward = {event.sequence_nr: event for event in events if event.sequence_nr >= 0 and not event.fwd_thread}
    spent = dict.fromkeys(PARTS, 0.0)
    for event in events:
        spent[_part_of(event, forward)] += event.self_cpu_time_total
    total = sum(spent.values())
    return {name: seconds / total for name, seconds in spent.items()}


def _part_of(event: Any, forward: dict[int, Any]) -> str:
    """Return the part of an event, by its name or by what it happened in; ``forward`` is by number of operation."""
    origin = None
    while event is not None:
        if (name := _named(event.name)) is not None:
            return name
        origin = forward.get(event.sequence_nr, origin) if event.fwd_thread else origin
        event = event.cpu_parent
    return "other" if origin is None else _part_of(origin, {})


def _named(name: str) -> str | None:
    if name.startswith(_MARK):
        marked = name.removeprefix(_MARK)
        return marked if marked in PARTS else None
    text = name.lower().rsplit("::", 1)[-1]
    return next((part for part, words in _WORDS.items() if any(word in text for word in words)), None)


@contextmanager
def _marked(model: nn.Module) -> Iterator[None]:
    """Let modules of known kinds mark what happens in their forward pass."""
    open_marks: list[record_function] = []
    handles = []

    def begin(module: nn.Module, _: object) -> None:
        open_marks.append(part(_MODULES[type(module)]))
        open_marks[-1].__enter__()  # type: ignore[no-untyped-call]

    def end(*_: object) -> None:
        open_marks.pop().__exit__(None, None, None)

    for module in model.modules():
        if type(module) in _MODULES:
            handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    for module in dropouts:  # its other way of being called, which no hook sees
        vars(module)["add"] = _inside("dropout", module.add)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in dropouts:
            del vars(module)["add"]


def _inside(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*arguments: Any) -> Any:
        with part(name):
            return call(*arguments)

    return marked
