"""How what ``tfm bench --decode`` measured is shown: a row for each side, and how to read it."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from transformer_cli.benchmark.decoding import Measured, identical, ratio
from transformer_cli.commands.bench.decoding import DecodingReport, SearchReport
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.wording import counted

_HEADINGS = ("engine", "lines/s", "spread", "tokens/s", "ratio", "same", "BLEU", "p50", "p95", "MiB")


def print_report(report: DecodingReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(json_text(report.document(), indent=1))
    else:
        render(report, Console())


def render(report: DecodingReport, console: Console) -> None:
    """Print the table with all that its figures must be read with."""
    what = report.settings
    rounds = f"{counted(what['repeats'], 'round')} in turn after a warm-up"
    head = [
        f"{report.device}, {counted(what['cores'], 'core')} (threads: see settings), torch {torch.__version__}",
        f"decoding: {what['run']} ({counted(what['parameters'], 'parameter')}), "
        f"{counted(what['lines'], 'line')} of {what['text']}, {rounds}\n",
    ]
    for part in (*head, _table(report.searches), "", *_legend(report), *_interrupted(report)):
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


def _table(searches: dict[str, SearchReport]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)  # 80 columns
    compared = any(len(found.sides) > 1 for found in searches.values())
    for name in _HEADINGS:
        if compared or name not in ("ratio", "same"):
            table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for name, found in searches.items():
        table.add_row(name)  # above its rows, for a column of it has no room
        for side, bleu in zip(found.sides, found.bleu, strict=True):
            table.add_row(side.name, *_figures(side, bleu, found), end_section=side is found.sides[-1])
    return table


def _compared_with(found: SearchReport) -> Measured:
    """Return the side that every row is compared with: CTranslate2 in float32, or our own engine."""
    return (found.others or found.sides)[0]


def _figures(side: Measured, bleu: float, found: SearchReport) -> list[str]:
    row: dict[str, Any] = side.document()
    base, ours = _compared_with(found), found.sides[0]
    compared = [
        "-" if side is base else f"{ratio(side, base):.2f}",
        "-" if side is ours else f"{100 * identical(ours, side):.3g}%",
    ]
    return [
        f"{row['sentences_per_second']:,.0f}",
        f"{row['round_seconds_spread'] / row['round_seconds']:.0%}",
        f"{row['target_tokens_per_second']:,.0f}",
        *(compared if len(found.sides) > 1 else []),
        f"{bleu:.2f}",
        *(_milliseconds(row[name]) for name in ("latency_ms_p50", "latency_ms_p95")),
        f"{side.peak_bytes / 2**20:,.0f}" if side.peak_bytes else "-",
    ]


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def _legend(report: DecodingReport) -> Iterator[str]:
    found = next(iter(report.searches.values()))
    names = [side.name for side in found.sides]
    yield "search   greedy, or with a beam of 5, above its rows; both with plain length normalisation, early stopping"
    yield f"engine   tfm: this program{'; ctranslate2: the same weights, exported' if found.others else ''}" + (
        "; shortlist: only some of the vocabulary for each line" if found.has_shortlist else ""
    )
    yield "lines/s  from lines to lines, SentencePiece included: all lines / the median time of a round"
    yield "spread   interquartile range of the times of the rounds, in percent of the median"
    yield "tokens/s target tokens in the same time: pieces of the translations, without the end of the sentence"
    if len(names) > 1:
        base = _compared_with(found).name
        yield f"ratio    times as fast as {base}, median over the rounds: 0.5 takes twice as long; -: {base} itself"
        yield "same     share of lines that are translated exactly as in the first row of the search" + (
            "; ctranslate2 has one greatest length for all lines, tfm one for each" if found.others else ""
        )
    yield f"BLEU     {found.signature}"
    yield "p50      milliseconds of a line that comes alone: half of the lines take no longer"
    yield "p95      the same: 95 of 100 lines take no longer"
    yield "MiB      the most memory that the processes of a side held: their greatest resident sets, added up"
    mkl = " (CT2_USE_MKL=1: with Intel's library MKL, 0: without)" if found.others else ""
    yield f"settings of each side, the fastest of those that were tried{mkl}:"
    for name, search in report.searches.items():
        yield from (f"  {name}, {side.engine}: {side.setting}" for side in search.sides)


def _interrupted(report: DecodingReport) -> Sequence[str]:
    if report.ended_by is None:
        return []
    name, found = list(report.searches.items())[-1]
    done, asked = len(found.sides[0].seconds), report.settings["repeats"]
    less = f"; {name}: {done} of {counted(asked, 'round')}" if done < asked else ""
    return [f"interrupted: the rows above are those that were finished{less}"]
