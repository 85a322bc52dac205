"""Memory for time: a part of the forward pass that keeps only its inputs and is computed again for its gradients.

Gradient checkpointing (Chen et al. 2016). The second computation must draw the masks of the first, else the gradients
belong to another loss; so the dropout stream is taken back to where it stood, and afterwards to where it was.
Which parts are computed again is decided by ``transformer.choose_recomputation``.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from transformer_cli.model.dropout import StreamState, set_stream_state, stream_state


def recomputing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function (or module), which keeps only its inputs for the backward pass; its values stay the same.

    The first argument is a tensor. Without gradients nothing is kept anyway, and the function is called as it is.
    """
    return partial(_call, function)


def _call(function: Callable[..., Any], x: Tensor, *args: Any, **settings: Any) -> Any:
    if not torch.is_grad_enabled():
        return function(x, *args, **settings)
    return checkpoint(
        function,
        x,
        *args,
        use_reentrant=False,
        preserve_rng_state=x.device.type != "cpu",  # there dropout is torch's own, and so is its stream
        context_fn=_with_the_same_dropout,
        **settings,
    )


def _with_the_same_dropout() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of the first and of the second computation; called right before the first."""
    return nullcontext(), _stream_at(stream_state())


@contextmanager
def _stream_at(state: StreamState) -> Iterator[None]:
    now = stream_state()
    set_stream_state(state)
    try:
        yield
    finally:
        set_stream_state(now)
