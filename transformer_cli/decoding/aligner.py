"""Translations of lines to their alignments: words instead of pieces, lines instead of parts of lines.

The rules are in ``alignment.py``, the weights come from a model (``attention_reader.py``) or a test.
"""

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from transformer_cli.data.languages import units
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.alignment import Words, count_words, links, pharaoh, spells, words_of_pieces
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.settings import DecodeSettings

#: From source and target ids to the attention ``[T, S]`` of each pair.
ReadAttention = Callable[[Sequence[tuple[Sequence[int], Sequence[int]]], DecodeSettings], Sequence[NDArray[np.float32]]]
Texts = Sequence[tuple[str, Sequence[Finished]]]  # translations of a line, and their parts


class Aligner:
    """Aligns the words of lines and of their translations."""

    def __init__(self, tokenizer: Tokenizer, src_lang: str, tgt_lang: str, n_before: int, read: ReadAttention) -> None:
        """Set up an aligner.

        Args:
            tokenizer: the model's own.
            src_lang: language of the lines; it says what a word is.
            tgt_lang: language of the translations.
            n_before: tokens in front of each source that are no text.
            read: tells the attention.
        """
        self._tokenizer, self._src_lang, self._tgt_lang = tokenizer, src_lang, tgt_lang
        self._n_before, self._read = n_before, read

    def align(
        self,
        lines: Sequence[str],
        sources: Sequence[Sequence[Sequence[int]]],
        translations: Sequence[Texts],
        settings: DecodeSettings,
    ) -> list[list[str | None]]:
        """Return the alignment of each translation of each line; None if the pieces do not spell its words.

        Args:
            lines: the lines.
            sources: ids of the parts of each line, with all special ones.
            translations: of each line.
            settings: how large batches may be.
        """
        together = list(zip(sources, translations, strict=True))
        pairs = [
            (ids, part.tokens)
            for line, texts in together
            for _, parts in texts
            for ids, part in zip(line, parts, strict=True)
        ]
        weights = iter(self._read(pairs, settings))
        found = []
        for line, (parts, texts) in zip(lines, together, strict=True):
            words = self._source_words(line, parts)
            found.append([self._aligned(words, text, done, list(islice(weights, len(done)))) for text, done in texts])
        return found

    def _source_words(self, line: str, parts: Sequence[Sequence[int]]) -> list[list[Words]] | None:
        """Return the words of each source id of each part."""
        texts = [part[self._n_before : -1] for part in parts]
        words = words_of_pieces(self._tokenizer.src_pieces([i for ids in texts for i in ids]), self._src_lang)
        if not spells(words, line, self._src_lang):
            return None
        iterator = iter(words)
        return [[*[()] * self._n_before, *islice(iterator, len(ids)), ()] for ids in texts]

    def _aligned(
        self,
        sources: list[list[Words]] | None,
        text: str,
        parts: Sequence[Finished],
        weights: Sequence[NDArray[np.float32]],
    ) -> str | None:
        if sources is None:
            return None
        found, n_words = set(), 0
        for of_source, part, of_part in zip(sources, parts, weights, strict=True):
            words = words_of_pieces(self._tokenizer.tgt_pieces(part.tokens), self._tgt_lang)
            found |= {(source, n_words + target) for source, target in links(of_part, of_source, words)}
            n_words += count_words(words)
        return pharaoh(found) if n_words == len(units(text, self._tgt_lang)) else None
