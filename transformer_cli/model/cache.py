"""What the decoder remembers between two steps of a translation.

Legend: N places (a sentence each), K hypotheses of a place, S source length, H heads, dk and dv head widths, C columns:
K for each target position.

The keys and values of past target positions never change, because no position sees a later one; those of the memory
are the same at every step, and for all hypotheses of a sentence. Both are kept, so a step costs one position.

A step writes its K new keys and values into the next K columns of its place and moves none: which columns a hypothesis
descends from is said by a mask. (Copying the past of a beam's five hypotheses at every step took a quarter of the
time.) Places are at different positions; a new sentence takes the place of a finished one. All lengths of keys are
multiples of 16, with at least 400 numbers in a head's keys, of which 256 are summed at once: there the products of
torch's CPU kernels are equal to the last bit however many hidden columns follow. Who takes which place is decided in
``decoding/``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.model.kernels import KEYS_AT_ONCE, cached_attention

if TYPE_CHECKING:
    from transformer_cli.model.attention import MultiHeadAttention
    from transformer_cli.model.kernels import Pattern
    from transformer_cli.model.packed import PackedLayer

_MULTIPLE = 16
_FEWEST = 400  # numbers: torch multiplies smaller matrices by another kernel


def padded_keys(length: int, d_head: int) -> int:
    """Return the number of keys to attend to, of which the first ``length`` are real."""
    fewest = min(-(-_FEWEST // d_head), KEYS_AT_ONCE)
    whole, rest = divmod(length, KEYS_AT_ONCE)
    least = max(rest, fewest) if rest or not whole else 0
    return whole * KEYS_AT_ONCE + -(-least // _MULTIPLE) * _MULTIPLE


class AttentionCache:
    """The keys and values that one attention sees, for all heads of all places.

    Where there are several queries, keys lie transposed: their products are up to a fourth faster so, and equal to the
    last bit (see above). So do the keys of a memory, which are written once (a third faster for one query). The own
    keys of one hypothesis lie as they come: to write them transposed would touch a line of the processor's cache for
    each number.
    """

    def __init__(
        self, attention: "MultiHeadAttention", n_places: int, columns: int, like: Tensor, *, transposed: bool
    ) -> None:
        self.n_heads, self._transposed = attention.n_heads, transposed
        shape = (attention.d_k, columns) if transposed else (columns, attention.d_k)
        self._keys = like.new_zeros(n_places * attention.n_heads, *shape)
        self.values = like.new_zeros(n_places * attention.n_heads, columns, attention.d_v)  # [N * H, C, dv]

    @property
    def keys(self) -> Tensor:
        """The keys, transposed: ``[N * H, dk, C]``."""
        return self._keys if self._transposed else self._keys.transpose(1, 2)

    def append(self, k: Tensor, v: Tensor, step: "Step") -> None:
        """Put keys ``[N * K * H, dk]`` and values ``[N * K * H, dv]`` into the columns of a step."""
        if self._transposed:
            keys = self._by_place(self._keys).permute(0, 3, 1, 2)  # [N, C, H, dk]
            keys[step.places, step.columns] = k.view(*step.columns.shape, self.n_heads, -1)
        else:
            self._keys.view(-1, k.size(1)).index_copy_(0, step.rows, k)
        self.values.view(-1, v.size(1)).index_copy_(0, step.rows, v)

    def write(self, places: Tensor, k: Tensor, v: Tensor) -> None:
        """Put keys ``[n, H, S, dk]`` and values ``[n, H, S, dv]`` into the first columns of places ``[n]``."""
        for all_, new in ((self.keys.transpose(1, 2), k), (self.values, v)):
            self._by_place(all_)[places, :, : k.size(2)] = new.to(all_.dtype)

    def attend(self, queries: Tensor, bias: Tensor, scale: float | None) -> Tensor:
        """Attend from queries ``[N * H, K, dk]`` to the C columns of a bias ``[N * H, K, C]``: ``[N * H, K, dv]``."""
        n = bias.size(-1)
        keys = self._keys[:, :, :n] if self._transposed else self._keys[:, :n].transpose(1, 2)
        return cached_attention(queries, keys, self.values[:, :n], bias, scale=scale)

    def clear(self, places: Tensor) -> None:
        """Forget what stands in places ``[n]``."""
        for kept in (self._keys, self.values):
            self._by_place(kept)[places] = 0

    def keep(self, places: Tensor, columns: int) -> None:
        """Keep these places ``[n]``, in this order, and their first columns."""
        kept = self._keys[:, :, :columns] if self._transposed else self._keys[:, :columns]
        self._keys = self._by_place(kept)[places].flatten(0, 1)
        self.values = self._by_place(self.values[:, :columns])[places].flatten(0, 1)

    def widen(self, columns: int) -> None:
        """Make room for so many columns."""
        more = columns - self.values.size(1)
        self._keys = F.pad(self._keys, (0, more) if self._transposed else (0, 0, 0, more))
        self.values = F.pad(self.values, (0, 0, 0, more))

    def _by_place(self, kept: Tensor) -> Tensor:
        return kept.view(-1, self.n_heads, *kept.shape[1:])  # [N, H, ...]


@dataclass(frozen=True)
class Step:
    """Where the newest position of every hypothesis stands, and what it may look at."""

    positions: np.ndarray  # [N]
    places: Tensor  # [N, 1] their numbers
    columns: Tensor  # [N, K] of the caches of self-attention
    rows: Tensor  # [N * K * H] the same columns of each head, counted through all places and heads
    own_bias: Tensor  # [N * H, K, C] added to the scores of self-attention: 0, or the lowest number there is
    cross_bias: Tensor  # [N * H, 1, S]

    @cached_property
    def at(self) -> Tensor:
        """The positions ``[N]`` where the model is."""
        return torch.from_numpy(self.positions).to(self.columns.device, non_blocking=True)

    @cached_property
    def distances(self) -> Tensor:
        """How far ``[N, C]`` each column lies in the past; columns of the future, which are hidden, count as 0."""
        columns = torch.arange(self.own_bias.size(-1), device=self.columns.device)
        return (self.at[:, None] - columns // self.columns.size(1)).clamp(min=0)


class DecoderCache:
    """The caches of all decoder layers, made by ``Transformer.new_cache``.

    Attributes:
        layers: what computes with them.
        own: of the masked self-attention of each layer.
        cross: of its attention to the memory.
        lengths: ``[N]`` positions decoded so far. On the host: asking a GPU would wait for all its work.
        n_hypotheses: K.
        pattern: of a sparse self-attention; None: it sees all positions.
    """

    def __init__(
        self,
        layers: list["PackedLayer"],
        own: list[AttentionCache],
        cross: list[AttentionCache],
        n_hypotheses: int,
        pattern: "Pattern | None" = None,
    ) -> None:
        self.layers, self.own, self.cross, self.n_hypotheses = layers, own, cross, n_hypotheses
        self.pattern = pattern
        self._n_heads = own[0].n_heads
        n_places = len(own[0].values) // self._n_heads
        self.lengths = np.zeros(n_places, dtype=np.int64)
        self._busy = np.zeros(n_places, dtype=bool)
        self._src_lengths = np.zeros(n_places, dtype=np.int64)  # padded
        self._used = 0  # columns in which something stands
        self._hidden = torch.finfo(own[0].keys.dtype).min
        self._bias = self._all_hidden(n_places, n_hypotheses, own[0].values.size(1))  # [N, K, C]
        self._memory_bias = self._all_hidden(n_places, self._n_heads, cross[0].values.size(1))  # [N, H, S]

    def admit(self, places: list[int], memory: list[tuple[Tensor, Tensor]], real: Tensor) -> None:
        """Give n places to new sentences.

        Args:
            places: whose sentence is over, or that had none.
            memory: of each layer the projected keys ``[m, H, S, dk]`` and values ``[m, H, S, dv]`` of the memory; rows
                beyond n are not looked at.
            real: boolean ``[m, S]``, False for the source's padding.
        """
        n, real = len(places), real[: len(places)]
        self.lengths[places], self._busy[places] = 0, True
        self._src_lengths[places] = padded_keys(real.size(1), self._narrowest)
        chosen = torch.tensor(places, device=real.device)
        for layer, (k, v) in zip(self.cross, memory, strict=True):
            # A query that may see nothing averages all values: they are zero then, as in `masked_softmax`.
            layer.write(chosen, k[:n], v[:n] * real[:, None, :, None])
        self._bias[chosen] = self._memory_bias[chosen] = self._hidden
        self._memory_bias[chosen, :, : real.size(1)] = self._hidden * (~real[:, None]).to(self._memory_bias.dtype)

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
            layer.keep(chosen, layer.values.size(1))
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
        positions, device = self.lengths, parents.device
        columns = positions[:, None] * n + np.arange(n)  # [N, K]
        heads = np.arange(len(positions) * self._n_heads).reshape(-1, 1, self._n_heads)  # [N, 1, H]
        rows = heads * self.own[0].values.size(1) + columns[..., None]  # [N, K, H]
        at = torch.from_numpy(columns).to(device, non_blocking=True)
        if n > 1:
            self._bias[..., :used] = self._bias[..., :used].gather(1, parents[..., None].expand(-1, -1, used))
        self._bias.scatter_(2, at[..., None], 0.0)
        self.lengths = positions + self._busy
        return Step(
            positions,
            places=torch.arange(len(positions), device=device)[:, None],
            columns=at,
            rows=torch.from_numpy(rows.ravel()).to(device, non_blocking=True),
            own_bias=self._own_bias(positions, used).expand(-1, self._n_heads, -1, -1).flatten(0, 1),
            cross_bias=self._memory_bias[..., : int(self._src_lengths.max())].flatten(0, 1)[:, None],
        )

    def _own_bias(self, positions: np.ndarray, used: int) -> Tensor:
        """Return the bias ``[N, 1 or H, K, C]`` of queries at positions ``[N]``."""
        bias = self._bias[:, None, :, :used]
        if self.pattern is None:
            return bias
        queries, keys = torch.from_numpy(positions)[:, None], torch.arange(used) // self.n_hypotheses
        seen = self.pattern.visible(queries, keys, causal=True, n_heads=self._n_heads)  # [N, 1 or H, 1, C]
        return bias.where(seen.to(bias.device, non_blocking=True), self._hidden)

    @property
    def _narrowest(self) -> int:
        return min(self.own[0].keys.size(1), self.own[0].values.size(2))

    def _widen(self, columns: int) -> None:
        self._bias = F.pad(self._bias, (0, columns - self._bias.size(-1)), value=self._hidden)
        for layer in self.own:
            layer.widen(columns)

    def _all_hidden(self, *shape: int) -> Tensor:
        return self.own[0].keys.new_full(shape, self._hidden)
