"""All attention maps of a sentence as one picture: a row for each layer of each place, a column for each head."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformer_cli.commands.bench_plot import check_plot
from transformer_cli.inspection.inspector import SentenceMaps

check_picture = check_plot
_PIECE_INCHES, _LEAST_INCHES, _MOST_INCHES = 0.16, 1.6, 9.0  # of one map
_MOST_LABELLED = 64  # tokens: beyond, labels would be smaller than a point
#: Fonts with Chinese, Japanese and Korean letters, as Debian, macOS and Windows call them.
_WIDE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans GB", "Heiti SC", "Arial Unicode MS", "Microsoft YaHei", "SimHei"),
)


def write_picture(maps: SentenceMaps, path: Path) -> list[str]:
    """Draw the maps into a PNG or SVG file.

    Returns:
        The characters that no font of this machine has; they are drawn as their numbers (U+4F60).

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = [(place, number, layer) for place, layers in maps.weights.items() for number, layer in enumerate(layers, 1)]
    heads = max(len(layer) for _, _, layer in rows)
    pieces = {*maps.src_pieces, *maps.tgt_inputs, *maps.tgt_pieces}
    fonts, missing = fonts_for(set("".join(pieces)))
    sizes = [_inches(max(layer.shape[1:])) for _, _, layer in rows]
    with mpl.rc_context({"font.family": fonts, "svg.fonttype": "path"}):
        figure = Figure(figsize=(1.5 + heads * max(sizes), 1 + sum(sizes)), layout="constrained")
        grid = figure.subplots(len(rows), heads, squeeze=False, gridspec_kw={"height_ratios": sizes})
        for line, (place, number, layer) in zip(grid, rows, strict=True):
            queries, keys = _labels(maps, place, missing)
            for head, (axes, weights) in enumerate(zip(line, layer, strict=False), 1):
                axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="equal", interpolation="nearest")
                axes.set_title(f"{place} {number}, head {head}", fontsize=8)
                _label(axes, queries if head == 1 else [], keys)
            for axes in line[len(layer) :]:
                axes.set_axis_off()
        figure.suptitle("rows look at columns; dark is 1", fontsize=9)
        figure.savefig(path, dpi=120)
    return sorted(missing)


def _inches(tokens: int) -> float:
    return min(max(_PIECE_INCHES * tokens, _LEAST_INCHES), _MOST_INCHES) + 0.7


def _labels(maps: SentenceMaps, place: str, missing: Iterable[str]) -> tuple[list[str], list[str]]:
    names = str.maketrans({character: f"U+{ord(character):04X}" for character in missing})
    # "$" would begin a formula.
    return tuple([piece.translate(names).replace("$", r"\$") for piece in side] for side in maps.sides(place))  # type: ignore[return-value]


def _label(axes: Any, queries: list[str], keys: list[str]) -> None:
    for labels, set_ticks, turn in ((keys, axes.set_xticks, 90), (queries, axes.set_yticks, 0)):
        shown = labels if len(labels) <= _MOST_LABELLED else []
        set_ticks(range(len(shown)), shown, fontsize=6, rotation=turn)
    axes.tick_params(length=0)


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
