"""BLEU, chrF and TER as sacreBLEU computes them, never without the signature that says how.

The library is the truth: the numbers equal those of its command. Here it gets the tokenizer that follows the target
language, and its failures become messages. Post, M. 2018: A Call for Clarity in Reporting BLEU Scores.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from transformer_cli.data.languages import language, writes_spaces
from transformer_cli.errors import DataError, UserError

METRICS = ("bleu", "chrf", "ter")
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}  # everything else: 13a
_LARGEST_RESAMPLE = 5_000_000  # lines x resamples: sacreBLEU holds the statistics of them all, some 300 MB here


@dataclass(frozen=True)
class Score:
    """One metric of one set of hypotheses."""

    name: str  # BLEU, chrF2, TER
    value: float  # BLEU and chrF from 0 to 100; TER, the less the better, from 0, may exceed 100
    signature: str
    mean: float | None  # of the bootstrap resamples
    interval: float | None  # half the width of their 95 % interval
    document: Mapping[str, object]  # what ``sacrebleu --format json -w 2`` prints

    def json(self) -> dict[str, object]:
        """Return sacreBLEU's JSON object."""
        return dict(self.document)

    def __str__(self) -> str:
        """Return value and interval, such as ``33.41 (95 %: μ = 33.38 ± 1.20)``."""
        return f"{self.value:.2f}" + (f" (95 %: {self.document['confidence']})" if self.interval is not None else "")


@dataclass(frozen=True)
class Comparison:
    """Two systems by one metric: a paired bootstrap test (Koehn 2004)."""

    name: str
    value: float
    interval: float  # half the width of the 95 % interval
    other_value: float
    other_interval: float
    p_value: float  # how often chance alone gives so large a difference
    signature: str


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tgt_lang: str,
    metrics: Sequence[str] = ("bleu",),
    lowercase: bool = False,
    tokenize: str | None = None,
    n_bootstrap: int = 0,
) -> list[Score]:
    """Score hypotheses against one or more references, all as raw text.

    Args:
        hypotheses: one per line.
        references: each a list as long as the hypotheses.
        tgt_lang: language code, which chooses how BLEU and TER split text into words.
        metrics: of ``bleu``, ``chrf``, ``ter``; the result is in this order, like that of the sacrebleu command.
        lowercase: ignore case (TER always does).
        tokenize: BLEU's tokenizer, instead of the language's.
        n_bootstrap: resamples for the 95 % interval, fewer for very many lines; 0: none. The signature names them.

    Raises:
        DataError: there are no lines, or the numbers of lines differ.
        UserError: a metric or tokenizer is unknown or not installed.
    """
    named = {f"reference {number}": len(lines) for number, lines in enumerate(references, 1)}
    check_counts({"hypotheses": len(hypotheses), **named})
    made = _make(metrics, tgt_lang, lowercase, tokenize)
    resamples = _affordable(n_bootstrap, len(hypotheses))
    return [_scored(metric, hypotheses, references, resamples) for metric in made.values()]


def compare(
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tgt_lang: str,
    metrics: Sequence[str] = ("bleu",),
    lowercase: bool = False,
    tokenize: str | None = None,
    n_bootstrap: int = 1000,
) -> list[Comparison]:
    """Test whether two systems differ, with sacreBLEU's paired bootstrap; arguments as for ``score``.

    Raises:
        DataError: there are no lines, or the numbers of lines differ.
        UserError: a metric or tokenizer is unknown or not installed.
    """
    check_counts({"hypotheses": len(hypotheses), "other hypotheses": len(other), "references": len(references[0])})
    made = _make(metrics, tgt_lang, lowercase, tokenize)
    systems = [("other", other), ("this", hypotheses)]
    samples = _affordable(max(2, n_bootstrap), len(hypotheses))
    signatures, results = PairedTest(systems, made, references, test_type="bs", n_samples=samples)()
    equal = list(hypotheses) == list(other)  # sacreBLEU's p-value of a system against itself is the smallest there is
    comparisons = []
    for name, signature in signatures.items():
        base, this = results[name]
        assert not isinstance(base, str)
        assert not isinstance(this, str)
        comparisons.append(
            Comparison(
                name,
                float(this.score),
                float(this.ci or 0),
                float(base.score),
                float(base.ci or 0),
                1.0 if equal or this.p_value is None else float(this.p_value),
                signature.format(),
            )
        )
    return comparisons


def bleu_tokenizer(tgt_lang: str) -> str:
    """Return the name of BLEU's tokenizer for a language code such as ``de``, ``zh-CN`` or ``jpn``."""
    return _TOKENIZERS.get(language(tgt_lang), "13a")


def check_metrics(metrics: Sequence[str], *, tgt_lang: str, tokenize: str | None) -> None:
    """Find out before anything is translated whether the metrics can be computed here.

    Raises:
        UserError: a metric or tokenizer is unknown or not installed.
    """
    _make(metrics, tgt_lang, False, tokenize)


def check_counts(counts: Mapping[str, int], hint: str | None = None) -> None:
    """Check that aligned texts are equally long and not empty.

    Args:
        counts: what or which file -> its number of lines.
        hint: how to mend a difference, if there is more to say than that lines must be aligned.

    Raises:
        DataError: there are no lines, or the numbers differ.
    """
    if len(set(counts.values())) > 1:
        raise DataError(
            "the numbers of lines differ",
            got=", ".join(f"{name}: {count}" for name, count in counts.items()),
            hint=hint or "line n of one must belong to line n of the others",
        )
    if not any(counts.values()):
        raise DataError("there are no lines", got=", ".join(f"{name}: 0 lines" for name in counts))


def _make(metrics: Sequence[str], tgt_lang: str, lowercase: bool, tokenize: str | None) -> dict[str, Metric]:
    if not metrics or set(metrics) - set(METRICS):
        raise UserError("unknown metric", got=",".join(metrics) or "none", expected=", ".join(METRICS))
    making: dict[str, Callable[[], Metric]] = {
        "bleu": lambda: _bleu(tokenize or bleu_tokenizer(tgt_lang), lowercase),
        "chrf": lambda: CHRF(lowercase=lowercase),
        "ter": lambda: _ter(tgt_lang),
    }
    return {name.upper(): making[name]() for name in METRICS if name in metrics}


def _ter(tgt_lang: str) -> TER:
    """Without spaces a whole sentence would be one word, and every edit the whole sentence."""
    characters = not writes_spaces(tgt_lang)
    return TER(normalized=characters, asian_support=characters)


def _bleu(tokenizer: str, lowercase: bool) -> BLEU:
    if tokenizer not in BLEU.TOKENIZERS:
        raise UserError(f"unknown tokenizer {tokenizer!r}", expected=", ".join(BLEU.TOKENIZERS))
    try:
        # force: text that looks tokenized is scored in silence. The language is not told: sacreBLEU would log advice.
        return BLEU(tokenize=tokenizer, lowercase=lowercase, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        package = {"ja-mecab": "ja", "ko-mecab": "ko"}.get(tokenizer)
        raise UserError(
            f"BLEU's tokenizer {tokenizer} is not installed"
            if package
            else f"BLEU's tokenizer {tokenizer} cannot start",
            got=None if package else error,
            hint=f'pip install "sacrebleu[{package}]", or choose another with --tokenize' if package else None,
        ) from None


def _affordable(resamples: int, lines: int) -> int:
    return min(resamples, max(100, _LARGEST_RESAMPLE // lines))


def _scored(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], resamples: int) -> Score:
    result = metric.corpus_score(hypotheses, references, n_bootstrap=max(1, resamples))
    signature = metric.get_signature().format()
    document = json.loads(result.format(width=2, signature=signature, is_json=True))
    known = "confidence" in document
    mean, interval = (float(result._mean), float(result._ci)) if known else (None, None)
    return Score(result.name, float(result.score), signature, mean, interval, document)
