"""What ``tfm eval`` found, and how it is shown: lines for a reader, or one JSON document."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Console

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.evaluation import Bucket, Calibration, Comparison, Line, Score
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Other:
    """The system compared with, and the differences by each metric."""

    system: str
    decoding: str | None
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Details:
    """Where the score comes from."""

    measured: str  # whose length: that of the source, or of the reference where there is no source
    by_length: list[Bucket]
    worst_lines: list[Line]


@dataclass(frozen=True)
class EvalReport:
    """Scores and all that they must be read with."""

    text: str  # what was scored
    lines: int
    system: str  # whose hypotheses: a run or a file
    identity: dict[str, str | None]  # hashes of the run's configuration and data, its commit; empty for a file
    to: str | None  # the language that was asked for; None: the run's main one
    decoding: str | None  # how they were searched for; None: they come from a file
    seconds: float | None  # spent on translating
    empty_hypotheses: int
    scores: list[Score]
    baseline: list[Score] = field(default_factory=list)
    other: Other | None = None
    details: Details | None = None
    confidence: Calibration | None = None


def print_report(report: EvalReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(as_json(report))
    else:
        render(report, Console())


def as_json(report: EvalReport) -> str:
    """Return sacreBLEU's JSON: an object for one metric, a list for several; our own facts are added to each object."""
    documents = [_document(report, index) for index in range(len(report.scores))]
    return json_text(documents[0] if len(documents) == 1 else documents, indent=1)


def render(report: EvalReport, console: Console) -> None:
    """Print the report; lines are never cut or wrapped."""
    for line in _lines(report):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _document(report: EvalReport, index: int) -> dict[str, object]:
    document = report.scores[index].json() | {
        "text": report.text,
        "lines": report.lines,
        "system": report.system,
        **report.identity,
        "to": report.to,
        "decoding": report.decoding,
        "empty_hypotheses": report.empty_hypotheses,
    }
    if report.baseline:
        document["baseline"] = report.baseline[index].json()
    if report.other:
        comparison = asdict(report.other.comparisons[index])
        document["comparison"] = {"system": report.other.system, "decoding": report.other.decoding, **comparison}
    if report.details and index == 0:
        document["details"] = asdict(report.details)
    if report.confidence and index == 0:
        document["confidence"] = asdict(report.confidence)
    return document


def _lines(report: EvalReport) -> Iterator[str]:
    yield f"{report.text}: {counted(report.lines, 'line')}, {report.system}" + (
        f" into {report.to}" if report.to else ""
    )
    if report.identity:
        known = ", ".join(f"{name.split('_')[0]} {value[:12]}" for name, value in report.identity.items() if value)
        yield f"run        {known}"
    yield f"decoding   {report.decoding or 'none: the hypotheses come from a file'}"
    if report.seconds is not None:
        yield f"time       {report.seconds:.1f} s, {report.lines / max(report.seconds, 1e-9):.1f} lines/s"
    if report.empty_hypotheses:
        yield f"empty      {counted(report.empty_hypotheses, 'hypothesis', 'hypotheses')} without text"
    yield ""
    yield from _score_lines(report.scores, "")
    if report.confidence:
        yield from _confidence_lines(report.confidence, report.text)
    if report.baseline:
        yield "\nnearest neighbour (the target of the closest training source)"
        yield from _score_lines(report.baseline, "  ")
    if report.other:
        yield f"\ncompared with {report.other.system} ({report.other.decoding or 'from a file'}), paired bootstrap"
        yield from map(_comparison, report.other.comparisons)
    if report.details:
        yield from _detail_lines(report.details)


def _score_lines(scores: Sequence[Score], indent: str) -> Iterator[str]:
    for score in scores:
        verbose = score.document.get("verbose_score")
        yield f"{indent}{score.name:10} {score}" + (f"  {verbose}" if verbose else "")
        yield f"{indent}{'signature':10} {score.signature}"


def _confidence_lines(found: Calibration, text: str) -> Iterator[str]:
    share = f"{counted(found.lines, 'line')}, {found.good_share:.1%} of them good"
    yield f"confidence ECE {found.ece:.4f} of {share}: {found.good}"
    own = ", these lines: expect a larger error on others" if found.fitted_on == text else ""
    yield f"{'fitted on':10} {found.fitted_on}{own}"


def _comparison(found: Comparison) -> str:
    verdict = "differs" if found.p_value < 0.05 else "no significant difference"
    return (
        f"  {found.name:8} {found.value:.2f} ± {found.interval:.2f} against {found.other_value:.2f} ± "
        f"{found.other_interval:.2f}, p = {found.p_value:.4f}: {verdict}  {found.signature}"
    )


def _detail_lines(details: Details) -> Iterator[str]:
    first = details.by_length[0]
    yield f"\nBLEU by length of the {details.measured}, in {first.unit}  {first.signature}"
    for bucket in details.by_length:
        yield f"  {bucket.lengths:>8}  {counted(bucket.lines, 'line'):>12}  {bucket.bleu:6.2f}"
    yield f"\nthe {counted(len(details.worst_lines), 'worst line')} by chrF2  {details.worst_lines[0].signature}"
    for line in details.worst_lines:
        yield f"  line {line.number}, chrF {line.chrf:.1f}"
        if line.source is not None:
            yield f"    source      {line.source}"
        yield from (f"    reference   {reference}" for reference in line.references)
        yield f"    translation {line.hypothesis}"
