"""What the decoder remembers between two steps of a translation.

Legend: B rows (live hypotheses), S source length, T positions decoded so far, H heads, K and Kv head widths.

The keys and values of past target positions never change, because no position sees a later one; those of the memory
are the same at every step. Both are kept, so a step costs one position instead of all. Which rows live on is decided
by the search, in ``decoding/``.
"""

import torch
from torch import Tensor


class LayerCache:
    """The keys and values of one decoder layer.

    Appending copies the past. Buffers that double instead cost the same for 64 rows and 30 steps (190 ms of one core
    for a base model; without any cache 900 ms) and a tenth less only at 120 steps: not worth their bookkeeping.
    """

    def __init__(self, memory_k: Tensor, memory_v: Tensor) -> None:
        self.memory_k = memory_k  # [B, H, S, K]
        self.memory_v = memory_v  # [B, H, S, Kv]
        self.k: Tensor | None = None  # [B, H, T, K]
        self.v: Tensor | None = None  # [B, H, T, Kv]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values ``[B, H, 1, K]`` of a new position and return those of all."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v  # [B, H, T, K]


class DecoderCache:
    """The caches of all decoder layers, made by ``Transformer.start_cache``.

    Attributes:
        layers: one cache per layer.
        memory_mask: ``[B, 1, 1, S]``, hides the source's padding.
        length: positions decoded so far, the same for every row.
    """

    def __init__(self, layers: list[LayerCache], memory_mask: Tensor) -> None:
        self.layers, self.memory_mask, self.length = layers, memory_mask, 0
        self._sentence = torch.arange(len(memory_mask), device=memory_mask.device)  # [B]: which source a row translates

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; rows may be dropped and repeated.

        Args:
            rows: indices ``[N]`` into the present rows; afterwards there are N rows.
        """
        for layer in self.layers:
            if layer.k is not None and layer.v is not None:
                layer.k, layer.v = layer.k.index_select(0, rows), layer.v.index_select(0, rows)
        self._select_memory(rows)

    def _select_memory(self, rows: Tensor) -> None:
        sentence = self._sentence[rows]
        if torch.equal(sentence, self._sentence):
            return  # hypotheses of one sentence changed places, as in a beam: what they look at did not
        self._sentence, self.memory_mask = sentence, self.memory_mask[rows]
        for layer in self.layers:
            layer.memory_k, layer.memory_v = layer.memory_k[rows], layer.memory_v[rows]
