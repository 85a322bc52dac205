"""Where a score comes from: BLEU by the length of the line, and the lines that went worst."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.chrf import CHRF

from transformer_cli.data.languages import unit, units
from transformer_cli.evaluation.scores import score

#: Upper ends of the length classes, in words (characters in languages that write no spaces).
_LENGTHS = (5, 10, 15, 20, 30, 50)


@dataclass(frozen=True)
class Bucket:
    """BLEU of the lines of one length class."""

    lengths: str  # such as "6-10"
    unit: str  # "words", or "characters" of languages that write no spaces
    lines: int
    bleu: float  # from 0 to 100
    signature: str


@dataclass(frozen=True)
class Line:
    """One line and its own chrF."""

    number: int  # from 1
    chrf: float  # from 0 to 100
    signature: str
    source: str | None
    references: list[str]
    hypothesis: str


def repeated_share(hypotheses: Sequence[str]) -> float:
    """Return the share of lines that repeat the most frequent one; near 1 a model ignores its source."""
    return (Counter(hypotheses).most_common(1)[0][1] - 1) / len(hypotheses) if hypotheses else 0.0


def by_length(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    measured: Sequence[str],
    *,
    lang: str,
    tgt_lang: str,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> list[Bucket]:
    """Return BLEU for each length class that has lines.

    Args:
        hypotheses: one per line.
        references: each as long as the hypotheses.
        measured: the text whose length counts, usually the source.
        lang: its language: characters count instead of words where no spaces are written.
        tgt_lang: chooses BLEU's tokenizer.
        lowercase: ignore case.
        tokenize: BLEU's tokenizer, instead of the language's.

    Raises:
        UserError: the tokenizer is unknown or not installed.
    """
    classes: dict[str, list[int]] = {}
    for number, line in enumerate(measured):
        classes.setdefault(_length_class(len(units(line, lang))), []).append(number)
    buckets = []
    for name in (name for name in _CLASS_NAMES if name in classes):
        chosen = classes[name]
        part = [[lines[i] for i in chosen] for lines in (hypotheses, *references)]
        bleu = score(part[0], part[1:], tgt_lang=tgt_lang, lowercase=lowercase, tokenize=tokenize)[0]
        buckets.append(Bucket(name, unit(lang), len(chosen), bleu.value, bleu.signature))
    return buckets


def worst_lines(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
    *,
    lowercase: bool = False,
    count: int = 10,
) -> list[Line]:
    """Return the lines with the lowest sentence chrF, worst first; of equal ones the earlier first.

    Args:
        hypotheses: one per line.
        references: each as long as the hypotheses.
        sources: shown beside them, if there are any.
        lowercase: ignore case.
        count: most lines that are returned.
    """
    metric = CHRF(lowercase=lowercase)
    lines = []
    for index, hypothesis in enumerate(hypotheses):
        wanted = [reference[index] for reference in references]
        value = float(metric.sentence_score(hypothesis, wanted).score)
        signature = metric.get_signature().format()
        source = sources[index] if sources is not None else None
        lines.append(Line(index + 1, value, signature, source, wanted, hypothesis))
    return sorted(lines, key=lambda line: line.chrf)[:count]


_CLASS_NAMES = [
    *(f"{low + 1}-{high}" for low, high in zip((-1, *_LENGTHS), _LENGTHS, strict=False)),
    f"over {_LENGTHS[-1]}",
]


def _length_class(n: int) -> str:
    return next((name for name, high in zip(_CLASS_NAMES, _LENGTHS, strict=False) if n <= high), _CLASS_NAMES[-1])
