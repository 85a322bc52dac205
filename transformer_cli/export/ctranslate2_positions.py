"""Our positions, and bands of keys, as CTranslate2 knows them: a table on the embeddings, angles, numbers by distance.

Legend: H heads, K head width, D d_model, I inputs of a matrix, N positions, R relative ones, W one width of all heads.

* Sinusoids are an explicit table, because its own stand in another order and start at position 1; none at all is a
  table of zeros.
* Rotary positions turn the first K numbers of a head, in our pairs, and in self-attention alone.
* What t5 and alibi add to a score is written as a T5 table of its own in which every distance has its bucket. So no
  rounding of logarithms can put a distance into another bucket, and what looks back need not be what looks ahead; its
  own alibi knows the decoder only. The band of a sparse attention is such numbers too, in dense attention's time.
* Transformer-XL's are the relative keys of Shaw et al. 2018, which all heads share: here each head has its place in
  them, and asks there only. That makes heads 1 + H times as wide, which costs time but is the same function.

Not here: what is no position (``ctranslate2_spec.py``).
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.model.kernels import Pattern, SparseAttention
from transformer_cli.model.positions import LearnedPositions, NoPositions, TransformerXLPositions, sinusoidal_table
from transformer_cli.model.positions.relative import BiasByDistance

if TYPE_CHECKING:
    from transformer_cli.model.attention import MultiHeadAttention
    from transformer_cli.model.transformer import Embedding

_HIDDEN = -30_000.0  # the exponential is 0; a number that float16 has, so that no row is all -∞


def position_settings(config: ModelConfig, place: Literal["encoder", "decoder"]) -> dict[str, Any]:
    """Return what the specification of a stack must be told of positions."""
    numbers = config.positions in ("t5", "alibi") or getattr(config.attention, place) == "sparse"
    settings = {"relative_attention_bias": numbers, "relative_position": config.positions == "transformer_xl"}
    turned = config.d_k or config.d_model // config.n_heads
    return settings | ({"rotary_dim": turned} if config.positions == "rotary" else {})


def fill_table(stack: Any, embedding: "Embedding", positions: int) -> None:
    """Fill in what a stack adds to its embeddings, where it adds anything."""
    kind = embedding.positions
    table: Any = getattr(stack, "position_encodings", None)
    if isinstance(kind, LearnedPositions):
        table.encodings = kind.table.weight
    elif not isinstance(kind, NoPositions):
        table.encodings = sinusoidal_table(positions, embedding.tokens.embedding_dim).float()
    elif table is not None:  # it would put its own sinusoids there, unless attention has positions
        table.encodings = torch.zeros(positions, embedding.tokens.embedding_dim)


def fill_distances(spec: Any, attention: "MultiHeadAttention", positions: int, *, causal: bool) -> None:
    """Fill in what attention adds to its scores for each distance, if anything."""
    if isinstance(attention.positions, TransformerXLPositions):
        spec.relative_position_keys = _relative_keys(attention.positions, positions, int(spec.head_dim))
        del spec.relative_position_values  # optional there, and nothing here
        return
    if isinstance(attention.positions, BiasByDistance):
        like = torch.empty(0)
        past, future = attention.positions.past(positions, like), attention.positions.future(positions, like)
    elif isinstance(attention.kernel, SparseAttention):
        past = future = _band(attention.kernel.pattern, positions).expand(attention.n_heads, -1)
    else:
        return
    sides = [past, past] if causal else [past, past, future, future]  # half of a side's buckets are one distance each
    spec.relative_attention_bias = torch.cat(sides, dim=1).t().contiguous()  # [2N or 4N, H]
    spec.relative_attention_max_distance = np.dtype("int32").type(2 * positions)


def _band(pattern: Pattern, n: int) -> Tensor:
    """Return 0 for distances ``[N]`` that are seen, for others what no softmax can see."""
    distance = torch.arange(n)
    seen = pattern.visible(distance, distance[:1], causal=False)[0, :, 0]
    return torch.zeros(n).masked_fill(~seen, _HIDDEN)


def _relative_keys(positions: TransformerXLPositions, n: int, width: int) -> Tensor:
    """Return W r of all heads side by side, ``[2N - 1, W]``: the key N - 1 places before the query comes first."""
    projected = positions.projected(n)[: 2 * n - 1].flatten(1)  # [R, H * K]; a decoder's ends early
    for_content = projected.size(1) // positions.n_heads  # there a query does not look for distances
    filling = width - for_content - projected.size(1)
    return F.pad(projected, (for_content, filling, 0, 2 * n - 1 - len(projected)))


def looking_twice(weight: Tensor, bias: Tensor | None, positions: TransformerXLPositions) -> tuple[Tensor, Tensor]:
    """Return the projection of queries that look for content, q + u, and at their head's place for distances, q + v.

    Returns:
        Weight ``[H * W, I]`` and bias ``[H * W]``, W = (1 + H) K.
    """
    heads = positions.n_heads
    content = positions.u if bias is None else bias + positions.u
    distance = positions.v if bias is None else bias + positions.v

    def laid_out(of_content: Tensor, of_distance: Tensor) -> Tensor:
        content, distance = (rows.detach().reshape(heads, -1, *rows.shape[1:]) for rows in (of_content, of_distance))
        places = distance.new_zeros(heads, *distance.shape)  # [H, H, K, ...]
        places[range(heads), range(heads)] = distance
        return torch.cat([content, places.flatten(1, 2)], dim=1).flatten(0, 1)  # [H * W, ...]

    return laid_out(weight, weight), laid_out(content, distance)
