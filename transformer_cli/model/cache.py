"""What the decoder remembers between two steps of a translation.

Legend: N places (a sentence each), K hypotheses of a place, S source length, H heads, dk and dv head widths, C columns:
K for each target position.

The keys and values of past target positions never change, because no position sees a later one; those of the memory
are the same at every step, and for all hypotheses of a sentence. Both are kept, so a step costs one position.

A step writes its K new keys and values into the next K columns of its place and moves none: which columns a hypothesis
descends from is said by a mask. (Copying the past of a beam's five hypotheses at every step took a quarter of the
time.) Places are at different positions; a new sentence takes the place of a finished one. All lengths of keys are
multiples of 16, with at least 400 numbers in a head's keys: there the products of torch's CPU kernels are equal to the
last bit however many hidden columns follow. Who takes which place is decided in ``decoding/``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from transformer_cli.model.attention import MultiHeadAttention

_MULTIPLE = 16
_FEWEST = 400  # numbers: torch multiplies smaller matrices by another kernel


def padded_keys(length: int, d_head: int) -> int:
    """Return the number of keys to attend to, of which the first ``length`` are real."""
    least = max(length, -(-_FEWEST // d_head))
    return -(-least // _MULTIPLE) * _MULTIPLE


class AttentionCache:
    """The keys and values that one attention sees.

    The keys of several hypotheses lie transposed: the products of several queries are up to a fourth faster so, and
    equal to the last bit (see above). For one hypothesis both ways are equal, and a write would touch a line of the
    processor's cache for each number, which took a seventh of all time: there keys lie as they come.
    """

    def __init__(
        self, attention: "MultiHeadAttention", n_places: int, columns: int, like: Tensor, *, transposed: bool
    ) -> None:
        self.attention, self._dim = attention, 3 if transposed else 2  # of the columns
        shape = (attention.d_k, columns) if transposed else (columns, attention.d_k)
        self._keys = like.new_zeros(n_places, attention.n_heads, *shape)
        self.values = like.new_zeros(n_places, attention.n_heads, columns, attention.d_v)  # [N, H, C, dv]

    @property
    def keys(self) -> Tensor:
        """The keys, transposed: ``[N, H, dk, C]``."""
        return self._keys if self._dim == 3 else self._keys.transpose(2, 3)

    @cached_property
    def projections(self) -> tuple[Tensor, Tensor | None]:
        """The attention's fused projections."""
        return self.attention.fused_projections()

    def write(self, places: Tensor, columns: Tensor, k: Tensor, v: Tensor) -> None:
        """Put keys and values ``[n, H, c, dk]`` of places ``[n, 1]`` into columns ``[n, c]`` (or ``[1, c]``)."""
        self.keys.permute(0, 3, 1, 2)[places, columns] = k.transpose(1, 2).to(self._keys.dtype)
        self.values.transpose(1, 2)[places, columns] = v.transpose(1, 2).to(self.values.dtype)

    def attend(self, queries: Tensor, bias: Tensor) -> Tensor:
        """Attend from queries ``[N, H, K, dk]`` to as many columns as the bias ``[N * H, K, C]`` has."""
        n = bias.size(-1)
        return self.attention.attend_cached(queries, self.keys[..., :n], self.values[:, :, :n], bias)

    def clear(self, places: Tensor) -> None:
        """Forget what stands there."""
        self._keys[places], self.values[places] = 0, 0

    def keep(self, places: Tensor, columns: int) -> None:
        """Keep these places, in this order, and their first columns."""
        self._keys = self._keys.narrow(self._dim, 0, columns).index_select(0, places)
        self.values = self.values[:, :, :columns].index_select(0, places)

    def widen(self, columns: int) -> None:
        """Make room for so many columns."""
        more = columns - self.values.size(2)
        self._keys = F.pad(self._keys, (0, more) if self._dim == 3 else (0, 0, 0, more))
        self.values = F.pad(self.values, (0, 0, 0, more))


@dataclass(frozen=True)
class Step:
    """Where the newest position of every hypothesis stands, and what it may look at."""

    positions: np.ndarray  # [N]
    places: Tensor  # [N, 1] their numbers
    columns: Tensor  # [N, K] of the caches of self-attention
    own_bias: Tensor  # [N * H, K, C] added to the scores of self-attention: 0, or the lowest number there is
    cross_bias: Tensor  # [N * H, K, S]


class DecoderCache:
    """The caches of all decoder layers, made by ``Transformer.new_cache``.

    Attributes:
        own: of the masked self-attention of each layer.
        cross: of its attention to the memory.
        lengths: ``[N]`` positions decoded so far. On the host: asking a GPU would wait for all its work.
        n_hypotheses: K.
    """

    def __init__(self, own: list[AttentionCache], cross: list[AttentionCache], n_hypotheses: int) -> None:
        self.own, self.cross, self.n_hypotheses = own, cross, n_hypotheses
        n_places = len(own[0].keys)
        self.lengths = np.zeros(n_places, dtype=np.int64)
        self._busy = np.zeros(n_places, dtype=bool)
        self._src_lengths = np.zeros(n_places, dtype=np.int64)  # padded
        self._used = 0  # columns in which something stands
        self._hidden = torch.finfo(own[0].keys.dtype).min
        self._bias = self._all_hidden(n_places, n_hypotheses, own[0].values.size(2))  # [N, K, C]
        self._memory_bias = self._all_hidden(n_places, 1, cross[0].values.size(2))  # [N, 1, S]

    def admit(self, places: list[int], memory: list[tuple[Tensor, Tensor]], real: Tensor) -> None:
        """Give n places to new sentences.

        Args:
            places: whose sentence is over, or that had none.
            memory: of each layer the projected keys and values ``[m, H, S, dk]`` of the memory; rows beyond n are
                not looked at.
            real: boolean ``[m, S]``, False for the source's padding.
        """
        n, real = len(places), real[: len(places)]
        self.lengths[places], self._busy[places] = 0, True
        self._src_lengths[places] = padded_keys(real.size(1), self._narrowest)
        chosen = torch.tensor(places, device=real.device)
        columns = torch.arange(real.size(1), device=real.device)[None]  # [1, S]
        for layer, (k, v) in zip(self.cross, memory, strict=True):
            # A query that may see nothing averages all values: they are zero then, as in `masked_softmax`.
            layer.write(chosen[:, None], columns, k[:n], v[:n] * real[:, None, :, None])
        self._bias[chosen] = self._memory_bias[chosen] = self._hidden
        self._memory_bias[chosen, 0, : real.size(1)] = self._hidden * (~real).to(self._memory_bias.dtype)

    def clear(self, places: list[int]) -> None:
        """Forget what a broken sentence left behind: a hidden number counts for nothing, unless it is infinite."""
        chosen = torch.tensor(places, device=self._bias.device)
        for layer in [*self.own, *self.cross]:
            layer.clear(chosen)

    def release(self, places: list[int]) -> None:
        """Let places rest until new sentences take them: they go on being computed, but need no room."""
        self.lengths[places], self._busy[places], self._src_lengths[places] = 0, False, 0

    def keep(self, places: list[int]) -> None:
        """Keep these places, in this order."""
        chosen = torch.tensor(places, device=self._bias.device)
        for layer in self.own:
            layer.keep(chosen, self._used)
        for layer in self.cross:
            layer.keep(chosen, layer.values.size(2))
        self._bias, self._memory_bias = self._bias[chosen, :, : self._used], self._memory_bias[chosen]
        self.lengths, self._busy, self._src_lengths = (
            self.lengths[places],
            self._busy[places],
            self._src_lengths[places],
        )

    def start_step(self, parents: Tensor) -> "Step":
        """Let every hypothesis descend from a parent, and open its next column.

        Args:
            parents: ``[N, K]`` the hypothesis, of those before, which each one continues.
        """
        n, width = self.n_hypotheses, self._narrowest
        used = padded_keys((int(self.lengths.max()) + 1) * n, width)
        self._used = max(self._used, used)
        if used > self._bias.size(-1):
            self._widen(padded_keys(2 * used, width))
        positions = self.lengths
        first = torch.from_numpy(positions * n).to(parents.device, non_blocking=True)[:, None]  # [N, 1]
        columns = first + torch.arange(n, device=parents.device)  # [N, K]
        places = torch.arange(len(positions), device=parents.device)[:, None]  # [N, 1]
        if n > 1:
            self._bias[..., :used] = self._bias[..., :used].gather(1, parents[..., None].expand(-1, -1, used))
        self._bias.scatter_(2, columns[..., None], 0.0)
        self.lengths = positions + self._busy
        own = self._bias[..., :used]
        cross = self._memory_bias[..., : int(self._src_lengths.max())].expand(-1, n, -1)
        return Step(positions, places, columns, self._for_each_head(own), self._for_each_head(cross))

    @property
    def _narrowest(self) -> int:
        return min(self.own[0].keys.size(2), self.own[0].values.size(3))

    def _widen(self, columns: int) -> None:
        self._bias = F.pad(self._bias, (0, columns - self._bias.size(-1)), value=self._hidden)
        for layer in self.own:
            layer.widen(columns)

    def _all_hidden(self, *shape: int) -> Tensor:
        return self.own[0].keys.new_full(shape, self._hidden)

    def _for_each_head(self, bias: Tensor) -> Tensor:
        """Repeat a bias ``[N, K, C]`` for every head: ``[N * H, K, C]``."""
        return bias[:, None].expand(-1, self.own[0].keys.size(1), -1, -1).flatten(0, 1)
