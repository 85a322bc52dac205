"""The dev sentences of a run as it translates them: BLEU by length, the best and the worst, and some to look into."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformer_cli.data.pairs import ParallelText
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import Bucket, Line, by_length, worst_lines

_SHOWN = 10  # best lines, and as many worst


@dataclass(frozen=True)
class Translations:
    """What was translated, and how well."""

    of: int  # lines of the dev set
    decoding: str
    buckets: list[Bucket]
    lines: list[Line]  # all that were translated, the best by sentence chrF first

    @property
    def best(self) -> list[Line]:
        """The lines closest to their references."""
        return self.lines[: min(_SHOWN, (len(self.lines) + 1) // 2)]

    @property
    def worst(self) -> list[Line]:
        """The lines farthest from their references, the worst first; none of the best again."""
        return self.lines[len(self.best) :][-_SHOWN:][::-1]


def translations(translator: Translator, dev: ParallelText, most: int) -> Translations:
    """Translate at most so many lines, spread evenly over the dev set, as the recipe searches.

    Raises:
        UserError: the run cannot search as its recipe says.
    """
    count = min(most, len(dev))
    chosen = [number * len(dev) // count for number in range(count)]
    text = dev.select(chosen)
    settings = DecodeSettings.from_config(translator.config.decode)
    found = [translation.text for translation in translator.stream(text.src, settings)]
    lang, tgt_lang = translator.config.data.src_lang, translator.tgt_lang
    lines = [
        replace(line, number=chosen[line.number - 1] + 1)
        for line in worst_lines(found, [text.tgt], text.src, count=count)
    ]
    # Among equals, and many are perfect, the longest tells most.
    lines.sort(key=lambda line: (-line.chrf, -len(line.references[0]), line.number))
    buckets = by_length(found, [text.tgt], text.src, lang=lang, tgt_lang=tgt_lang)
    return Translations(len(dev), settings.describe(), buckets, lines)


def worth_a_look(lines: Sequence[Line], fits: Sequence[bool], count: int) -> list[tuple[str, Line]]:
    """Choose lines from good to bad whose maps can be read on a page, and say of each where it stands.

    Args:
        lines: the best first.
        fits: of each, whether it is short enough.
        count: how many.
    """
    fitting = [line for line, fit in zip(lines, fits, strict=True) if fit]
    last = min(count, len(fitting)) - 1
    places = [number * (len(fitting) - 1) // last for number in range(last + 1)] if last > 0 else [0][: last + 1]
    return [(f"line {fitting[place].number}, chrF {fitting[place].chrf:.0f}", fitting[place]) for place in places]
