"""Attention maps as compact data for the page: a byte for each weight.

Legend: T target tokens, S source tokens, H heads.
"""

from base64 import b64encode
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from transformer_cli.inspection.inspector import SentenceMaps

_STEPS = 255  # a weight of 1; what a byte loses, 0.2 %, no eye sees


class PackedLayer(TypedDict):
    """The heads of one layer: ``[H, T, S]`` bytes in base64, row by row."""

    heads: int
    data: str


class PackedMaps(TypedDict):
    """A sentence with all its maps."""

    label: str
    src: list[str]  # pieces, as of SentenceMaps
    tgt_in: list[str]
    tgt_out: list[str]
    places: dict[str, list[PackedLayer]]


def packed(maps: SentenceMaps, label: str) -> PackedMaps:
    """Return the maps of a sentence as the page wants them."""
    places = {place: [_layer(layer) for layer in layers] for place, layers in maps.weights.items()}
    return PackedMaps(label=label, src=maps.src_pieces, tgt_in=maps.tgt_inputs, tgt_out=maps.tgt_pieces, places=places)


def size(maps: PackedMaps) -> int:
    """Return about how many characters of the page the maps take."""
    return sum(len(layer["data"]) for layers in maps["places"].values() for layer in layers)


def _layer(weights: NDArray[np.float32]) -> PackedLayer:
    levels = np.rint(weights.clip(0, 1) * _STEPS).astype(np.uint8)
    return PackedLayer(heads=len(weights), data=b64encode(levels.tobytes()).decode())
