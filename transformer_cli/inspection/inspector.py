"""Looks into a trained model: its attention for one sentence, or what its heads do over many.

Legend: T target tokens, S source tokens, H heads.

Weights are recomputed without dropout by the naive kernel, for the given target at once; the translation itself comes
from the usual search and does not change. Pictures, tables and files are the command's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

import numpy as np
import torch
from numpy.typing import NDArray

from transformer_cli.checkpoint import load_model
from transformer_cli.config import Config
from transformer_cli.data.batching import Batch, TokenizedPairs, collate, tokenize_pairs
from transformer_cli.data.corpus import load_split
from transformer_cli.data.tokenizer import BOS, EOS, Tokenizer
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import UserError
from transformer_cli.inspection.heads import Head, HeadStatistics
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime
from transformer_cli.wording import counted

Maps = dict[str, list[NDArray[np.float32]]]  # encoder, decoder, cross: of each layer [H, T, S]

#: What the rows of a place's maps are: self-attention looks from what was read, cross-attention from what comes next.
ROWS = {
    "encoder": "source tokens",
    "decoder": "tokens read so far, from <s> on",
    "cross": "tokens predicted, up to </s>",
}

#: How a picture of maps is read.
READING = "rows look at columns; dark is 1; ▁ begins a word"

#: Tokens of a side, with the special ones: all look at all, and a picture has no room for more.
LONGEST = 256
_ROWS, _MOST = 32, 500  # sentences of a batch, and those that heads are judged by


@dataclass(frozen=True)
class SentenceMaps:
    """What every head looks at in one sentence and its translation."""

    source: str
    translation: str  # or the target that was given
    src_pieces: list[str]  # keys of the encoder and of cross-attention; the encoder's queries too
    tgt_inputs: list[str]  # keys and queries of the decoder's self-attention: <s> and what follows
    tgt_pieces: list[str]  # what is predicted from each of them: queries of cross-attention
    weights: Maps  # of the places whose keys are tokens

    def sides(self, place: str) -> tuple[list[str], list[str]]:
        """Return the queries and the keys of a place."""
        return {
            "encoder": (self.src_pieces, self.src_pieces),
            "decoder": (self.tgt_inputs, self.tgt_inputs),
            "cross": (self.tgt_pieces, self.src_pieces),
        }[place]


class Inspector:
    """A trained model, open for inspection."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        config: Config,
        runtime: Runtime,
        to: str | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        """Wrap a model on the runtime's device; ``to`` is one of its target languages."""
        self._shortlist = shortlist
        self.model, self.config = model, config
        self._tokenizer, self._runtime, self._to = tokenizer, runtime, to
        self._before = [tokenizer.tag(config.data.target(to))] if config.data.more_targets else []

    @classmethod
    def from_run(cls, run: Path, device: str = "auto", to: str | None = None) -> "Inspector":
        """Load a run folder, or one of its checkpoints.

        Raises:
            RunError: there is no usable model at that place.
            UserError: there is no such device or language.
        """
        runtime = Runtime.resolve(device)
        model, tokenizer, config = load_model(run, runtime.device)
        return cls(model, tokenizer, config, runtime, to, Shortlist.of_run(run) if config.decode.shortlist else None)

    @property
    def places(self) -> list[str]:
        """The places that can be looked at: linformer's keys are mixtures of all tokens, which have no names."""
        kernels = self.config.model.attention.model_dump()
        return [place for place, kernel in kernels.items() if kernel != "linformer"]

    def look(self, source: str, target: str | None = None) -> SentenceMaps:
        """Return the maps of a sentence and its translation, or of a target that is given instead.

        Raises:
            UserError: one of them is blank or too long.
        """
        src = [*self._before, *self._ids(source, "text", self._tokenizer.encode_src), EOS]
        if target is None:
            target, tgt = self._translated(source)
        else:
            tgt = self._ids(target, "target", self._tokenizer.encode_tgt)
        _refuse_long(src, "text")
        _refuse_long([*tgt, EOS], "target")
        device = self._runtime.device
        tgt_in = torch.tensor([[BOS, *tgt]], device=device)
        maps = self.model.attention_maps(torch.tensor([src], device=device), tgt_in)
        weights = {place: [layer[0].float().cpu().numpy() for layer in maps[place]] for place in self.places}
        pieces = self._tokenizer.tgt_pieces
        src_pieces = self._tokenizer.src_pieces(src)
        return SentenceMaps(source, target, src_pieces, pieces([BOS, *tgt]), pieces([*tgt, EOS]), weights)

    def translations(self, sources: list[str]) -> list[str]:
        """Return the translations of sentences, as the recipe searches."""
        return [translation.text for translation in self._search(sources)]

    def heads(self, note: Callable[[str], None], most: int = _MOST) -> list[Head]:
        """Measure every head over the first sentences of the dev set, with their references as targets.

        Raises:
            DataError: the dev set cannot be read.
        """
        pairs = self._pairs(note, most)
        statistics = HeadStatistics()
        for start in range(0, len(pairs), _ROWS):
            self._add(statistics, pairs.select(range(start, min(start + _ROWS, len(pairs)))))
        return statistics.heads()

    def batch(self, note: Callable[[str], None]) -> Batch:
        """Return the first sentences of the dev set, on the device."""
        pairs = self._pairs(note, _ROWS)
        return collate(pairs, range(len(pairs))).to(self._runtime.device)

    def _pairs(self, note: Callable[[str], None], most: int) -> TokenizedPairs:
        text = load_split(self.config.data, "dev", self.config.train.seed, note, self._to)
        tag = self._before[0] if self._before else None
        pairs, _ = tokenize_pairs(text, self._tokenizer, LONGEST, tag)
        return pairs.select(range(min(most, len(pairs))))

    def _add(self, statistics: HeadStatistics, pairs: TokenizedPairs) -> None:
        batch = collate(pairs, range(len(pairs))).to(self._runtime.device)
        maps = self.model.attention_maps(batch.src, batch.tgt_in)
        for row, (s, t) in enumerate(zip(pairs.src_lengths, pairs.tgt_lengths, strict=True)):
            src = _separators(self._tokenizer.src_pieces(batch.src[row, :s].tolist()))
            tgt = _separators(self._tokenizer.tgt_pieces(batch.tgt_in[row, :t].tolist()))
            sides = {"encoder": (s, s, src), "decoder": (t, t, tgt), "cross": (t, s, src)}
            for place, (queries, keys, separators) in ((place, sides[place]) for place in self.places):
                for number, layer in enumerate(maps[place], 1):
                    statistics.add(place, number, layer[row, :, :queries, :keys].float().cpu(), separators)

    def _translated(self, source: str) -> tuple[str, list[int]]:
        (found,) = self._search([source])
        if found.pieces > 1:
            raise UserError("the text is longer than one translation", hint="inspect one sentence at a time")
        number_of = {piece: number for number, piece in enumerate(self._all_pieces())}
        return found.text, [number_of[piece] for piece in found.hypotheses[0].tokens]

    def _search(self, sources: list[str]) -> list[Translation]:
        wrapped = self.model, self._tokenizer, self.config, self._runtime, self._to
        translator = Translator.of_model(*wrapped, shortlist=self._shortlist)
        return translator.translate_window(sources, DecodeSettings.from_config(self.config.decode))

    def _all_pieces(self) -> list[str]:
        return self._tokenizer.tgt_pieces(range(self._tokenizer.tgt_vocab_size))

    def _ids(self, text: str, what: str, encode: Callable[[list[str]], list[list[int]]]) -> list[int]:
        if not text.strip():
            raise UserError(f"the {what} is blank", expected="a sentence")
        return encode([text])[0]


def _refuse_long(ids: list[int], what: str) -> None:
    if len(ids) > LONGEST:
        got = f"{counted(len(ids), 'token')}, </s> counted"
        raise UserError(f"the {what} is too long to be looked at", got=got, expected=f"at most {LONGEST}")


def _separators(pieces: list[str]) -> torch.Tensor:
    """Return which pieces separate: punctuation, and what begins and ends a sentence."""
    return torch.tensor([piece in ("<s>", "</s>") or _is_punctuation(piece) for piece in pieces])


def _is_punctuation(piece: str) -> bool:
    characters = piece.lstrip("\u2581")
    return bool(characters) and all(category(character).startswith("P") for character in characters)
