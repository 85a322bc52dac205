"""What a model attends to in the source while it predicts a translation that is known already.

Legend: B batch, H heads, T target length, S source length.

One pass over source and translation ("teacher forcing"): the search itself would have to keep the weights of every
hypothesis. Shapes are those of the search (``model_steps.py``), so that weights do not depend on the batch.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.tokenizer import BOS
from transformer_cli.decoding.model_steps import answering, canonical_length, padded
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.model.attention import recorded_weights
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

Pair = tuple[Sequence[int], Sequence[int]]  # source ids with </s>, target ids without special ones


def read_attention(
    model: Transformer, runtime: Runtime, pairs: Sequence[Pair], settings: DecodeSettings
) -> list[NDArray[np.float32]]:
    """Return weights ``[T, S]`` of each pair: row t is the step that predicts target token t, the mean of all heads.

    The layer is the last but one of the decoder, as ``alignment.py`` wants it.
    """
    shapes = [_shape(model, pair) for pair in pairs]
    found: list[NDArray[np.float32]] = [np.empty((0, 0), np.float32)] * len(pairs)
    with answering([model], runtime):
        for shape in sorted(set(shapes)):
            numbers = [number for number, other in enumerate(shapes) if other == shape]
            size = max(1, min(settings.batch_size, settings.batch_tokens // max(shape)))
            for start in range(0, len(numbers), size):
                chosen = numbers[start : start + size]
                read = _read(model, runtime, [pairs[number] for number in chosen], shape)
                for number, weights in zip(chosen, read, strict=True):
                    found[number] = weights
    return found


def _shape(model: Transformer, pair: Pair) -> tuple[int, int]:
    source, target = pair
    return canonical_length(len(source), model.max_length), canonical_length(max(1, len(target)), model.max_length)


def _read(
    model: Transformer, runtime: Runtime, pairs: Sequence[Pair], shape: tuple[int, int]
) -> list[NDArray[np.float32]]:
    src = padded([source for source, _ in pairs], *shape).to(runtime.device)
    tgt_in = padded([[BOS, *target[:-1]] for _, target in pairs], *shape[::-1]).to(runtime.device)
    attention = model.decoder.layers[max(0, len(model.decoder.layers) - 2)].cross_attn
    with runtime.autocast(), recorded_weights([attention]) as recorded:
        model.decode(tgt_in, model.encode(src), src)
    mean = recorded[attention].float().mean(1).cpu().numpy()  # [B, T, S]
    return [weights[: len(target), : len(source)] for weights, (source, target) in zip(mean, pairs, strict=False)]
