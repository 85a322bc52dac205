"""Text to subword ids and back, by SentencePiece, without losing a character.

Models that are trained here (``tokenizer_training.py``) normalise nothing and spell in bytes what has no piece, so
``decode(encode(line)) == line`` but for U+2581, the library's own sign for a space. Special ids are added by
``batching.py`` and by the search, never by text: a literal ``</s>`` in a line is text.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import sentencepiece

from transformer_cli.data.piece_draws import PieceDraws, piece_draws
from transformer_cli.data.piece_model import PieceModel
from transformer_cli.errors import DataError

PAD, UNK, BOS, EOS = 0, 1, 2, 3

N_SPECIAL = 4
_NAMES = ("the tokenizer",) * 2
_WITHOUT = "put it back from a copy: a run's weights are bound to it; a new run does with tokenizer.model: null"


class Tokenizer:
    """One SentencePiece model for both sides, or one for each. Immutable."""

    def __init__(self, src_model: bytes, tgt_model: bytes | None = None, *, where: Sequence[str] = _NAMES) -> None:
        """Build a tokenizer from serialised models.

        Args:
            src_model: model of the source side; of both, if ``tgt_model`` is None.
            tgt_model: model of the target side.
            where: names each model in error messages.

        Raises:
            DataError: a model is damaged, or its special pieces have other ids than ours.
        """
        self._models = (src_model,) if tgt_model is None else (src_model, tgt_model)
        processors = [_processor(model, place) for model, place in zip(self._models, where, strict=False)]
        self._src, self._tgt = processors[0], processors[-1]
        self.joint = tgt_model is None
        self.src_vocab_size: int = self._src.vocab_size()
        self.tgt_vocab_size: int = self._tgt.vocab_size()
        digests = [hashlib.sha256(model).digest() for model in self._models]
        self.sha256 = digests[0].hex() if self.joint else hashlib.sha256(b"".join(digests)).hexdigest()

    def encode_src(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of source lines, without special ids."""
        return _encode(self._src, lines)

    def encode_tgt(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of target lines, without special ids."""
        return _encode(self._tgt, lines)

    def tag(self, language: str) -> int:
        """Return the id that asks for a target language, put in front of a source; text never becomes a tag.

        Raises:
            DataError: the tokenizer was made without it.
        """
        piece = tag_piece(language)
        found: int = self._src.piece_to_id(piece)
        if not self._src.is_control(found) or self._src.id_to_piece(found) != piece:
            hint = f"data.more_targets needs a tokenizer that was trained with it (--control_symbols={piece},...)"
            raise DataError(f"the tokenizer has no tag for target language {language}", expected=piece, hint=hint)
        return found

    def sample_src(self, lines: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Return other ids of source lines, drawn by chance, without special ids.

        Args:
            lines: the text; equal lines may get different ids.
            strength: of a BPE model the probability that a merge is dropped (Provilkov et al. 2020); of a unigram
                model alpha, to whose power the probability of a segmentation is taken (Kudo 2018, section 3.3):
                the smaller, the more even.
            seed: with the model and the lines it decides everything, in every process.

        Raises:
            ValueError: the model has but one way to cut a word (``can_sample``).
        """
        return _sample(self._src, self._models[0], lines, strength, seed)

    def sample_tgt(self, lines: Sequence[str], strength: float, seed: int) -> list[list[int]]:
        """Return other ids of target lines; see ``sample_src``."""
        return _sample(self._tgt, self._models[-1], lines, strength, seed)

    def can_sample(self) -> bool:
        """Return whether the models can draw; those of characters and of words cannot."""
        return all(_draws(model, 0.5) is not None for model in self._models)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids; special ids are skipped, half a character in bytes becomes U+FFFD."""
        text: str = self._tgt.decode([int(i) for i in ids if i >= N_SPECIAL])
        return text

    def src_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of source ids, for display; special ids appear by name."""
        return [self._src.id_to_piece(int(i)) for i in ids]

    def tgt_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of target ids, for display; special ids appear by name."""
        return [self._tgt.id_to_piece(int(i)) for i in ids]

    def tgt_surfaces(self) -> list[bytes]:
        """Return what each target id adds to the bytes of a text, a space as such; special ids add nothing.

        The text of ids is the bytes of all, without one space at the start.
        """
        return [self._surface(number) for number in range(self.tgt_vocab_size)]

    def _surface(self, number: int) -> bytes:
        piece: str = self._tgt.id_to_piece(number)
        if number < N_SPECIAL or self._tgt.is_control(number) or self._tgt.is_unknown(number):
            return b""
        if self._tgt.is_byte(number):
            return bytes([int(piece[3:5], 16)])
        return piece.replace("\u2581", " ").encode()

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.model``, or ``tokenizer.src.model`` and ``tokenizer.tgt.model``."""
        for name, model in zip(_file_names(self.joint), self._models, strict=True):
            (folder / name).write_bytes(model)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load what ``save`` wrote.

        Raises:
            DataError: a file is missing or damaged.
        """
        joint = not (folder / _file_names(False)[0]).exists()
        models = [read_model(folder / name) for name in _file_names(joint)]
        return cls(*models, where=[str(folder / name) for name in _file_names(joint)])


def tag_piece(language: str) -> str:
    """Return the name of the id that asks for a target language, as in Johnson et al. 2017."""
    return f"<2{language}>"


def _file_names(joint: bool) -> list[str]:
    return ["tokenizer.model"] if joint else ["tokenizer.src.model", "tokenizer.tgt.model"]


def read_model(path: Path) -> bytes:
    """Return the content of a model file.

    Raises:
        DataError: it is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"the tokenizer cannot be read: {error.strerror}", where=str(path), hint=_WITHOUT) from None


def _processor(model: bytes, where: str) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except RuntimeError:
        raise DataError("is not a SentencePiece model, or damaged", where=where, hint=_WITHOUT) from None
    ids = processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()
    if ids != (PAD, UNK, BOS, EOS):
        raise DataError(
            "has other special ids",
            where=where,
            got="pad, unk, bos, eos = {}, {}, {}, {}".format(*ids),
            expected="0, 1, 2, 3",
            hint="train it with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3",
        )
    return processor


def _encode(processor: sentencepiece.SentencePieceProcessor, lines: Sequence[str]) -> list[list[int]]:
    ids: list[list[int]] = processor.encode(list(lines))
    return ids


def _sample(
    processor: sentencepiece.SentencePieceProcessor, model: bytes, lines: Sequence[str], strength: float, seed: int
) -> list[list[int]]:
    draws = _draws(model, strength)
    if draws is None:
        raise ValueError("a model of characters or words has but one way to cut a word")
    return draws.draw(processor.normalize(list(lines)), seed)


@lru_cache(4)  # they remember words from epoch to epoch
def _draws(model: bytes, strength: float) -> PieceDraws | None:
    return piece_draws(PieceModel.parsed(model), strength)
