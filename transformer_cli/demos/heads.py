"""What the heads of a trained run do: a table of all, and one head of each type drawn for a sentence.

How a head gets its type is in ``inspection/heads.py``; here the clearest head of each type is chosen, and a sentence
that the run translates well: what heads look at while a model goes wrong would explain nothing.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from transformer_cli.data.corpus import load_split
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.evaluation import Line, worst_lines
from transformer_cli.inspection.heads import Head, doubles
from transformer_cli.inspection.inspector import READING, ROWS, Inspector, SentenceMaps
from transformer_cli.wording import counted

_COLUMNS = ("place", "layer", "head", "type", "entropy", "distance", "largest weight")
_SHORTEST, _LONGEST = 20, 50  # characters of the sentence to draw: labels must stay readable
_TRIED = 50  # sentences of that length, among which one is looked for that is translated well


def demonstrate(wish: Wish) -> DemoReport:
    """Measure every head of a run over its dev set, and look at the clearest of each type.

    Raises:
        UserError: there is no usable run, or its dev set cannot be read.
    """
    assert wish.run is not None
    inspector = Inspector.from_run(wish.run)
    wish.note("measuring every head over the dev set")
    heads = inspector.heads(wish.note)
    line = _drawn_line(inspector, wish)
    maps = inspector.look(line.source or "")
    rows = [(h.place, h.layer, h.head, h.kind, h.entropy, h.distance, h.largest) for h in heads]
    kinds = {kind: [h for h in heads if h.kind == kind] for kind in dict.fromkeys(h.kind for h in heads)}
    counts = [(kind, len(own), f"{len(own) / len(heads):.0%}") for kind, own in kinds.items()]
    shown = [f"{counted(len(own), 'head')} of {len(heads)}: {kind}" for kind, own in kinds.items()]
    shown += [f"{h.place} layer {h.layer}: head {h.head} does what head {other} does" for h, other in doubles(heads)]
    shown.append(_caption(line))
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
        settings={
            "run": str(wish.run),
            "drawn": line.source,
            "translation": line.hypothesis,
            "reference": line.references[0],
        },
    )


def _typical(kind: str, heads: Sequence[Head]) -> Head:
    """Return the clearest head of a type: the one that is surest of its tokens, or of none.

    Where a head has nothing to say it looks at </s>, and is very sure of it: that shows no type but its own.
    """
    if kind == "separator":
        return max(heads, key=lambda head: head.separators)
    unsure = -1 if kind == "broad" else 1
    return min(heads, key=lambda head: unsure * head.entropy + head.separators)


def _drawn_line(inspector: Inspector, wish: Wish) -> Line:
    """Return the dev sentence of a readable length whose translation is closest to its reference, by chrF.

    Most often it is the reference itself; of several the first. Where no sentence has that length the shortest ones are
    tried.
    """
    config = inspector.config
    text = load_split(config.data, "dev", config.train.seed, wish.note)
    lengths = [len(source) for source in text.src]
    readable = [number for number, length in enumerate(lengths) if _SHORTEST <= length <= _LONGEST]
    shortest = sorted(range(len(lengths)), key=lengths.__getitem__)
    tried = text.select((readable or shortest)[:_TRIED])
    wish.note(f"translating {counted(len(tried), 'dev sentence')} to find one that comes out right")
    found = inspector.translations(list(tried.src))
    return max(worst_lines(found, [tried.tgt], tried.src, count=len(tried)), key=lambda line: line.chrf)


def _caption(line: Line) -> str:
    """Say what the picture shows, and how far its translation can be trusted."""
    reference = line.references[0]
    verdict = "as the reference has it" if line.hypothesis == reference else f"but the reference is {reference!r}"
    return f"drawn: {line.source!r}, translated {line.hypothesis!r}, {verdict}"


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
        axes.set_ylabel(ROWS[head.place], fontsize=7)
    figure.suptitle(READING, fontsize=9)
