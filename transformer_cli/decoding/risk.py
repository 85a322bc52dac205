"""Minimum Bayes risk: of many samples, the one that is most like the others (Kumar & Byrne 2004).

Samples stand for what the model holds possible, so the sample with the highest mean likeness to the others has the
highest expected quality, if the model is right; the most probable translation need not (Eikema & Aziz 2020). Likeness
is sentence chrF (Popović 2015) as sacreBLEU computes it, a sample as hypothesis and the other as reference.

Texts are compared, not tokens: the same text counts as often as it was drawn, however it was spelled. Every two
different texts cost one comparison, about N^2 for N samples. Not here: drawing (``sampling.py``).
"""

from collections import Counter
from collections.abc import Callable, Sequence

from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding.pool import Finished


def by_risk(samples: Sequence[Finished], text_of: Callable[[list[int]], str]) -> list[Finished]:
    """Return one sample of each text, those of the least risk first; of equals the earlier first.

    Args:
        samples: of one source.
        text_of: gives the text of tokens.
    """
    texts = [text_of(sample.tokens) for sample in samples]
    first: dict[str, Finished] = {}
    for text, sample in zip(texts, samples, strict=True):
        first.setdefault(text, sample)
    likeness = mean_likeness(texts)
    return [first[text] for text in sorted(first, key=lambda text: -likeness[text])]


def mean_likeness(texts: Sequence[str]) -> dict[str, float]:
    """Return the mean chrF, from 0 to 100, of each text against all the others.

    Args:
        texts: a text that stands there twice is one of its own others.
    """
    chrf, counts = CHRF(), Counter(texts)
    others = max(1, len(texts) - 1)
    means = {}
    for text in counts:
        total = sum(
            (count - (other == text)) * float(chrf.sentence_score(text, [other]).score)
            for other, count in counts.items()
            if other != text or count > 1
        )
        means[text] = total / others
    return means
