"""What the heads of a trained run do: a table of all, and one head of each type drawn for a sentence.

How a head gets its type is in ``inspection/heads.py``; here the clearest head of each type is chosen.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from transformer_cli.data.corpus import load_split
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.inspection.heads import Head, doubles
from transformer_cli.inspection.inspector import Inspector, SentenceMaps
from transformer_cli.wording import counted

_COLUMNS = ("place", "layer", "head", "type", "entropy", "distance", "largest weight")
_SHORTEST, _LONGEST = 20, 50  # characters of the sentence to draw: labels must stay readable


def demonstrate(wish: Wish) -> DemoReport:
    """Measure every head of a run over its dev set, and look at the clearest of each type.

    Raises:
        UserError: there is no usable run, or its dev set cannot be read.
    """
    assert wish.run is not None
    inspector = Inspector.from_run(wish.run)
    wish.note("measuring every head over the dev set")
    heads = inspector.heads(wish.note)
    maps = _sentence_maps(inspector, wish)
    rows = [(h.place, h.layer, h.head, h.kind, h.entropy, h.distance, h.largest) for h in heads]
    kinds = {kind: [h for h in heads if h.kind == kind] for kind in dict.fromkeys(h.kind for h in heads)}
    counts = [(kind, len(own), f"{len(own) / len(heads):.0%}") for kind, own in kinds.items()]
    shown = [f"{counted(len(own), 'head')} of {len(heads)}: {kind}" for kind, own in kinds.items()]
    shown += [f"{h.place} layer {h.layer}: head {h.head} does what head {other} does" for h, other in doubles(heads)]
    typical = [_typical(kind, own) for kind, own in kinds.items()]
    return DemoReport(
        "heads",
        "Heads specialise: some look nearby or at one position, some at separators, some align the two sentences.",
        "Voita et al. 2019; Clark et al. 2019",
        [Table(f"Heads of {wish.run}", _COLUMNS, rows), Table("Types", ("type", "heads", "share"), counts)],
        shown,
        partial(_draw, typical, maps),
        size=(3.4 * len(typical), 4.2),
        letters="".join([*maps.src_pieces, *maps.tgt_pieces]),
        settings={"run": str(wish.run), "drawn": maps.source},
    )


def _typical(kind: str, heads: Sequence[Head]) -> Head:
    """Return the clearest head of a type: the one that is surest of its tokens, or of none.

    Where a head has nothing to say it looks at </s>, and is very sure of it: that shows no type but its own.
    """
    if kind == "separator":
        return max(heads, key=lambda head: head.separators)
    unsure = -1 if kind == "broad" else 1
    return min(heads, key=lambda head: unsure * head.entropy + head.separators)


def _sentence_maps(inspector: Inspector, wish: Wish) -> SentenceMaps:
    """Return the maps of the first dev sentence of a readable length, or of the shortest one."""
    config = inspector.config
    text = load_split(config.data, "dev", config.train.seed, wish.note)
    lengths = [len(source) for source in text.src]
    chosen = next((i for i, n in enumerate(lengths) if _SHORTEST <= n <= _LONGEST), lengths.index(min(lengths)))
    return inspector.look(text.src[chosen], text.tgt[chosen])


def _draw(typical: Sequence[Head], maps: SentenceMaps, figure: Any) -> None:
    for axes, head in zip(figure.subplots(1, len(typical), squeeze=False)[0], typical, strict=True):
        weights = maps.weights[head.place][head.layer - 1][head.head - 1]
        axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
        axes.set_title(f"{head.kind}\n{head.place} {head.layer}, head {head.head}", fontsize=9)
        queries, keys = (
            [piece.replace("$", r"\$") for piece in side] for side in maps.sides(head.place)
        )  # no formulas
        axes.set_xticks(range(len(keys)), keys, fontsize=6, rotation=90)
        axes.set_yticks(range(len(queries)), queries, fontsize=6)
    figure.suptitle("rows look at columns; dark is 1", fontsize=9)
