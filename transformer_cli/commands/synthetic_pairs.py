"""From lines to synthetic sentence pairs: candidates, the choice among them, and which pairs are not worth training on.

One ``PairMaker`` serves both kinds. Back-translation (Sennrich et al. 2016) turns target text into pairs (synthetic
source, real target), with a tag in front of the source so that the model can tell the two kinds of source apart
(Caswell et al. 2019). Distillation (Kim & Rush 2016) turns source text into pairs (real source, synthetic target).
Not here: files, progress and the report (``augment.py``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator

#: Stands in front of a back-translated source. Plain text on purpose: it lives in any file of pairs, and the tokenizer
#: spells it with a few pieces of its own.
TAG = "<BT>"
#: A repetition is seen among so many lines before it, or up to twice as many: 100 MB, however long the stream is.
_REMEMBERED = 2**19

_BROKEN, _EMPTY, _REPEATED = "invalid UTF-8 or NUL", "one side is empty", "seen before"
_SAME, _CAPPED = "both sides are the same", "cut at the length limit"


@dataclass(frozen=True)
class Line:
    """One line of input."""

    text: str  # what is translated
    reference: str | None = None  # its translation in the training data
    broken: bool = False  # invalid UTF-8 or NUL was in it


@dataclass(frozen=True)
class Candidate:
    """One translation of a line, and what the filters must know of it."""

    text: str
    score: float
    capped: bool  # ended by the length limit
    lengths: tuple[int, int]  # tokens of the line and of the translation, </s> counted
    pieces: int = 1  # in which the line was translated


class _Recent:
    """Tells whether a text was there lately, in bounded memory: two sets of digests; the older is forgotten."""

    def __init__(self) -> None:
        self._older: set[int] = set()
        self._newer: set[int] = set()

    def has_seen(self, text: str) -> bool:
        """Say whether the text is among the last ones, and remember it."""
        digest = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
        if digest in self._newer:
            return True
        if len(self._newer) >= _REMEMBERED:
            self._older, self._newer = self._newer, set()
        self._newer.add(digest)
        return digest in self._older


class PairMaker:
    """Translates lines with one or more runs and keeps the pairs that pass the filters."""

    def __init__(
        self,
        translators: Sequence[Translator],
        settings: Sequence[DecodeSettings],
        *,
        back: bool,
        tag: bool,
        by_reference: bool,
        max_ratio: float,
    ) -> None:
        """Prepare.

        Args:
            translators: each proposes candidates; all of one direction.
            settings: how each of them searches.
            back: the lines are targets, and translations become sources.
            tag: put ``TAG`` in front of translations that become sources.
            by_reference: of all candidates in the beams keep the closest to the line's reference (Kim & Rush 2016,
                section 3.3, there by BLEU); otherwise the one with the best score.
            max_ratio: the longer side of a pair has at most so many times the tokens of the shorter.
        """
        self._translators = translators
        self._settings = [replace(how, n_best=how.beam_size) if by_reference else how for how in settings]
        self._back, self._tag, self._by_reference, self._max_ratio = back, tag, by_reference, max_ratio
        self._chrf = CHRF()
        self._recent = _Recent()
        self._too_long = f"one side over {max_ratio:g} times as long as the other"
        self.read, self.written, self.in_pieces = 0, 0, 0
        self.dropped = dict.fromkeys([_BROKEN, _EMPTY, _REPEATED, _SAME, _CAPPED, self._too_long], 0)

    @property
    def settings(self) -> list[DecodeSettings]:
        """How each run searches."""
        return self._settings

    def pairs(self, lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
        """Yield the pairs (source, target) that come of a window of lines, in order; count what does not."""
        self.read += len(lines)
        usable = [line for line in lines if not self._is_dropped(self._flaw_of(line))]
        for line, candidate in zip(usable, self._best(usable), strict=True):
            if not self._is_dropped(self._flaw_of_pair(line, candidate)):
                self.written += 1
                self.in_pieces += candidate.pieces > 1
                yield self._pair(line.text, candidate.text)

    def _is_dropped(self, reason: str | None) -> bool:
        if reason is not None:
            self.dropped[reason] += 1
        return reason is not None

    def _flaw_of(self, line: Line) -> str | None:
        """Say why a line is not worth translating."""
        if line.broken:
            return _BROKEN
        if not line.text.strip() or (line.reference is not None and not line.reference.strip()):
            return _EMPTY
        # Equal lines have equal translations, unless their references differ and choose among the candidates.
        key = f"{line.text}\0{line.reference if self._by_reference else ''}"
        return _REPEATED if self._recent.has_seen(key) else None

    def _flaw_of_pair(self, line: Line, candidate: Candidate) -> str | None:
        if not candidate.text.strip():
            return _EMPTY
        if candidate.text.strip() == line.text.strip():
            return _SAME
        if candidate.capped:
            return _CAPPED
        return self._too_long if max(candidate.lengths) > self._max_ratio * min(candidate.lengths) else None

    def _best(self, lines: Sequence[Line]) -> list[Candidate]:
        texts = [line.text for line in lines]
        of_runs = [
            _candidates(translator, texts, settings)
            for translator, settings in zip(self._translators, self._settings, strict=True)
        ]
        return [
            self._choice(line, [candidate for run in of_line for candidate in run])
            for line, of_line in zip(lines, zip(*of_runs, strict=True), strict=True)
        ]

    def _choice(self, line: Line, candidates: Sequence[Candidate]) -> Candidate:
        """Return the best candidate; of equals the first, which is the first run's."""
        if self._by_reference and line.reference is not None:
            wanted = [line.reference]
            return max(candidates, key=lambda candidate: self._chrf.sentence_score(candidate.text, wanted).score)
        return max(candidates, key=lambda candidate: candidate.score)

    def _pair(self, line: str, translation: str) -> tuple[str, str]:
        if not self._back:
            return line, translation
        return f"{TAG} {translation}" if self._tag else translation, line


def _candidates(translator: Translator, texts: Sequence[str], settings: DecodeSettings) -> list[list[Candidate]]:
    lengths = [len(ids) + 1 for ids in translator.tokenizer.encode_src(texts)]
    return [
        [
            Candidate(found.text, found.score, found.capped, (length, len(found.tokens) + 1), translation.pieces)
            for found in translation.hypotheses
        ]
        for translation, length in zip(translator.translate_window(texts, settings), lengths, strict=True)
    ]
