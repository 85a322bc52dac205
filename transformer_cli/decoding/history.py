"""What a search has done, as the host gets to know it: not after every step, but every few steps.

Legend: N places (a sentence each), K hypotheses of a place, L room for tokens.

To ask a GPU what a step has found is to wait until it is computed, and then the GPU waits until Python has prepared the
next one. So a step is only noted. At a look all steps since the last one come to the host together, and are gone
through one by one, as if each had been asked. What is found is the same; a sentence that is over goes on until it is
noticed, in steps that nobody reads. Places change right after a look, when nothing is unread. At its longest length
every sentence is over, and so far the host can count: then it looks, and nothing ever grows beyond.

Hypotheses are kept as steps: which one each continues, and by what. Where one ends, it is followed back to its start.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.decoding.hypotheses import Hypotheses

_ON_A_GPU = 8  # steps between two looks; a guess, measured on none


class History:
    """The steps of all places, those that the host has read and those that it has not."""

    def __init__(self, live: Hypotheses, longest: int, look_every: int | None) -> None:
        """Follow hypotheses.

        Args:
            live: those that grow, none beyond ``longest`` tokens.
            longest: L.
            look_every: steps between two looks; None: one on a CPU, which nobody waits for, some on a GPU.
        """
        self._live = live
        self._every = look_every or (1 if live.newest.device.type == "cpu" else _ON_A_GPU)
        self._unread: list[tuple[NDArray[np.int64], Sequence[Tensor]]] = []
        shape = len(live.lengths), longest, live.n_hypotheses
        self._parents, self._tokens = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        self._values = np.zeros(shape, dtype=np.float32)

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self._parents, self._tokens = self._parents[places], self._tokens[places]
        self._values = self._values[places]

    def grow(self, parents: Tensor, newest: Tensor, values: Tensor, *more: Tensor) -> None:
        """Let the hypotheses grow, and note the step.

        Args:
            parents: ``[N, K]`` which hypothesis each one continues.
            newest: ``[N, K]`` by which token.
            values: ``[N, K]`` the log-probability of that.
            more: what else a look has to tell of the step, ``[N, ...]``; not changed afterwards.
        """
        self._unread.append((self._live.lengths, (parents, newest, values, *more)))
        self._live.grow(parents, newest)

    def look(self, read: Callable[..., NDArray[np.bool_]]) -> list[int]:
        """Read what steps have noted, if it is time to; here, and nowhere else in a step, the host waits for a GPU.

        Args:
            read: is told of one step after the other the lengths ``[N]`` before it and what else was noted of it;
                returns ``[N]``: the place's search is over with it. Meanwhile ``of`` knows the steps before.

        Returns:
            The places of which that was said, once each.
        """
        live, over = self._live, list[int]()
        if len(self._unread) < self._every and not (live.busy & (live.lengths >= live.caps)).any():
            return over
        lengths, noted = zip(*self._unread, strict=True)
        self._unread = []
        fields = [torch.stack(of_steps).cpu().numpy() for of_steps in zip(*noted, strict=True)]
        places = np.arange(len(live.lengths))
        for at, parents, newest, values, *more in zip(lengths, *fields, strict=True):
            ended = np.flatnonzero(read(at, *more) & live.busy).tolist()
            live.rest(ended)
            over += ended
            self._parents[places, at], self._tokens[places, at], self._values[places, at] = parents, newest, values
        return over

    def of(self, place: int, hypothesis: int, length: int) -> tuple[list[int], list[float]]:
        """Return tokens and log-probabilities of a hypothesis that has this length before the step that is read."""
        path, parents = np.empty(length, dtype=np.int64), self._parents[place]
        for at in reversed(range(length)):
            path[at] = hypothesis
            hypothesis = parents[at, hypothesis]
        steps = np.arange(length)
        return self._tokens[place, steps, path].tolist(), self._values[place, steps, path].tolist()
