"""Attention maps of a sentence as one picture: a row for each layer of each place, a column for each head.

All of them, or those of one layer or head, which have more room: where tokens are many, each second or third of them is
labelled, or fewer.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.commands.bench.plot import check_plot, save_figure
from transformer_cli.inspection.inspector import READING, ROWS, SentenceMaps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

check_picture = check_plot
_PIECE_INCHES, _LEAST_INCHES, _MOST_INCHES = 0.16, 1.6, 9.0  # of one map beside many
_PICTURE_INCHES = 42.0  # 5,000 pixels: what the maps of a row may take together, if that gives each of them more
_LABEL_INCHES, _POINTS = 0.11, 6  # from a label to the next, and its height: closer together they are a grey stripe
#: Fonts with Chinese, Japanese and Korean letters, as Debian, macOS and Windows call them.
_WIDE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans GB", "Heiti SC", "Arial Unicode MS", "Microsoft YaHei", "SimHei"),
)


class Row(NamedTuple):
    """The maps of one layer that are to be drawn."""

    place: str
    layer: int
    maps: "dict[int, NDArray[np.float32]]"  # by the number of the head: [T, S]


def rows_of(maps: SentenceMaps) -> list[Row]:
    """Return all layers of all places, with all heads."""
    return [
        Row(place, number, dict(enumerate(layer, 1)))
        for place, layers in maps.weights.items()
        for number, layer in enumerate(layers, 1)
    ]


def write_picture(maps: SentenceMaps, rows: Sequence[Row], path: Path) -> list[str]:
    """Draw maps of a sentence into a PNG or SVG file.

    Returns:
        The characters that no font of this machine has; they are drawn as their numbers (U+4F60).

    Raises:
        UserError: the file cannot be written.
        DiskFull: there is no room; what was there before is intact.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = max(len(row.maps) for row in rows)
    fonts, missing = fonts_for(set("".join([*maps.src_pieces, *maps.tgt_inputs, *maps.tgt_pieces])))
    widths = [_inches(_tokens(maps, row), max(columns, len(rows))) for row in rows]
    heights = [
        width * len(maps.sides(row.place)[0]) / _tokens(maps, row) + 0.9
        for width, row in zip(widths, rows, strict=True)
    ]
    with mpl.rc_context({"font.family": fonts, "svg.fonttype": "path"}):
        figure = Figure(figsize=(1.5 + columns * (max(widths) + 0.7), 1 + sum(heights)), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, gridspec_kw={"height_ratios": heights})
        for line, row in zip(grid, rows, strict=True):
            queries, keys = _labels(maps, row.place, missing)
            step = _label_step(maps, row, rows)
            for number, (axes, (head, weights)) in enumerate(zip(line, row.maps.items(), strict=False)):
                axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="equal", interpolation="nearest")
                axes.set_title(f"{row.place} {row.layer}, head {head}", fontsize=8)
                _label(axes, [] if number else queries, keys, step)
            line[0].set_ylabel(ROWS[row.place], fontsize=8)
            for axes in line[len(row.maps) :]:
                axes.set_axis_off()
        figure.suptitle(READING, fontsize=9)
        save_figure(figure, path, dpi=120)
    return sorted(missing)


def label_step(maps: SentenceMaps, rows: Sequence[Row]) -> int:
    """Return how many tokens share a label where they are most: 1 if each has its own."""
    return max(_label_step(maps, row, rows) for row in rows)


def _label_step(maps: SentenceMaps, row: Row, rows: Sequence[Row]) -> int:
    tokens, side_by_side = _tokens(maps, row), max(len(rows), *(len(each.maps) for each in rows))
    return math.ceil(_LABEL_INCHES * tokens / _inches(tokens, side_by_side))


def _tokens(maps: SentenceMaps, row: Row) -> int:
    return max(map(len, maps.sides(row.place)))


def _inches(tokens: int, side_by_side: int) -> float:
    most = max(_MOST_INCHES, _PICTURE_INCHES / side_by_side)
    return min(max(_PIECE_INCHES * tokens, _LEAST_INCHES), most)


def _labels(maps: SentenceMaps, place: str, missing: Iterable[str]) -> tuple[list[str], list[str]]:
    names = str.maketrans({character: f"U+{ord(character):04X}" for character in missing})
    # "$" would begin a formula.
    return tuple([piece.translate(names).replace("$", r"\$") for piece in side] for side in maps.sides(place))  # type: ignore[return-value]


def _label(axes: Any, queries: list[str], keys: list[str], step: int) -> None:
    for labels, set_ticks, turn in ((keys, axes.set_xticks, 90), (queries, axes.set_yticks, 0)):
        set_ticks(range(0, len(labels), step), labels[::step], fontsize=_POINTS, rotation=turn)
    axes.tick_params(length=0 if step == 1 else 2)  # which of them a label belongs to


def fonts_for(characters: set[str]) -> tuple[list[str], set[str]]:
    """Return the fonts to draw with, and the characters that none of them has."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    fonts, missing = [], {character for character in characters if character.isprintable()}
    for name in ("DejaVu Sans", *_WIDE_FONTS):
        try:
            font = get_font(findfont(FontProperties(family=name), fallback_to_default=False))
        except ValueError:  # this machine does not have it
            continue
        fonts.append(name)
        missing -= {character for character in missing if font.get_char_index(ord(character))}
    return fonts, missing | {character for character in characters if not character.isprintable()}
