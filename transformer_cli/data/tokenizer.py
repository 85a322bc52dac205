"""Text to subword ids and back, by SentencePiece, without losing a character.

The trainer's defaults normalise (``，`` becomes ``,``) and squeeze spaces; here nothing is normalised and what has no
piece is spelled in bytes, so ``decode(encode(line)) == line`` but for U+2581, the library's own sign for a space.
Special ids are added by ``batching.py`` and by the search, never by text: a literal ``</s>`` in a line is text.
"""

import hashlib
import io
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import sentencepiece

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.piece_draws import PieceDraws, piece_draws
from transformer_cli.data.piece_model import PieceModel
from transformer_cli.errors import DataError
from transformer_cli.wording import counted

PAD, UNK, BOS, EOS = 0, 1, 2, 3

_N_SPECIAL = 4
_N_BYTES = 256
_THREADS = 4  # a constant: unigram pieces depend on it
_LONGEST_LINE = 4192  # bytes; the trainer skips longer lines
_RESERVED = "\u2585"  # stands for unknown characters inside the trainer, which skips lines that hold it
CHECKED_LINES = 10_000
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
        text: str = self._tgt.decode([int(i) for i in ids if i >= _N_SPECIAL])
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
        if number < _N_SPECIAL or self._tgt.is_control(number) or self._tgt.is_unknown(number):
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
        models = [_read_model(folder / name) for name in _file_names(joint)]
        return cls(*models, where=[str(folder / name) for name in _file_names(joint)])


def tag_piece(language: str) -> str:
    """Return the name of the id that asks for a target language, as in Johnson et al. 2017."""
    return f"<2{language}>"


def train_tokenizer(
    config: TokenizerConfig,
    src: Sequence[str],
    tgt: Sequence[str],
    note: Callable[[str], None],
    tagged_targets: Sequence[str] = (),
) -> Tokenizer:
    """Train on the lines of both sides, or load the given model; equal lines give equal bytes.

    Args:
        config: model type, size and sharing.
        src: source lines.
        tgt: target lines.
        note: takes warnings: a lowered vocabulary, skipped lines, a given model that changes text.
        tagged_targets: target languages that get a tag.

    Raises:
        DataError: the vocabulary is too small for the characters, or the given model cannot be used.
    """
    if config.model is not None:
        return _given_tokenizer(config.model, src, tgt, note)
    if config.joint:
        return Tokenizer(_train(config, [*src, *tgt], note, tagged_targets))
    return Tokenizer(
        _train(config, src, lambda text: note(f"source: {text}"), tagged_targets),
        _train(config, tgt, lambda text: note(f"target: {text}")),
    )


def _train(
    config: TokenizerConfig, lines: Sequence[str], note: Callable[[str], None], tagged_targets: Sequence[str] = ()
) -> bytes:
    _count_skipped_lines(lines, note)
    if config.model_type == "char" and config.vocab_size < _N_SPECIAL + _N_BYTES:
        raise _too_small(config, _N_SPECIAL + _N_BYTES)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=config.model_type,
            vocab_size=config.vocab_size,
            hard_vocab_limit=False,  # too large a vocabulary ends at what the text gives
            character_coverage=config.character_coverage,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=_LONGEST_LINE,
            num_threads=_THREADS,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            control_symbols=[tag_piece(language) for language in tagged_targets],  # which no text becomes
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(config, str(error)) from error
    size = _processor(model.getvalue(), "the tokenizer").vocab_size()
    if size < config.vocab_size:
        note(f"tokenizer.vocab_size {config.vocab_size} is more than the text has pieces for: lowered to {size}")
    return model.getvalue()


def _count_skipped_lines(lines: Sequence[str], note: Callable[[str], None]) -> None:
    if long := sum(len(line) > _LONGEST_LINE // 4 and len(line.encode()) > _LONGEST_LINE for line in lines):
        note(f"{counted(long, 'line')} longer than {_LONGEST_LINE} bytes left out when the tokenizer was trained")
    if reserved := sum(_RESERVED in line for line in lines):
        note(f"{counted(reserved, 'line')} with U+2585, the trainer's sign, left out when the tokenizer was trained")


def _training_error(config: TokenizerConfig, message: str) -> DataError:
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return _too_small(config, int(found[1]))
    if "sentences_.empty()" in message:
        return DataError(
            "the tokenizer has no line to learn from", expected=f"lines of text up to {_LONGEST_LINE} bytes"
        )
    return DataError("the tokenizer cannot be trained", got=message)


def _too_small(config: TokenizerConfig, minimum: int) -> DataError:
    return DataError(
        "tokenizer.vocab_size is too small for the characters of the text",
        got=config.vocab_size,
        expected=f"at least {minimum}",
        hint="raise tokenizer.vocab_size, or lower tokenizer.character_coverage",
    )


def _given_tokenizer(path: str, src: Sequence[str], tgt: Sequence[str], note: Callable[[str], None]) -> Tokenizer:
    tokenizer = Tokenizer(_read_model(Path(os.path.expanduser(path))), where=[path])
    lines = [*src[:CHECKED_LINES], *tgt[:CHECKED_LINES]]
    changed = sum(tokenizer.decode(ids) != line for ids, line in zip(tokenizer.encode_tgt(lines), lines, strict=True))
    note(f"{path}: given, so tokenizer.model_type, vocab_size ({tokenizer.src_vocab_size}) and coverage are its own")
    if changed:
        of_all = f"{changed:,} of {counted(len(lines), 'line')}"
        note(f"{path}: changes {of_all}; it normalises text or lacks characters")
    return tokenizer


def _file_names(joint: bool) -> list[str]:
    return ["tokenizer.model"] if joint else ["tokenizer.src.model", "tokenizer.tgt.model"]


def _read_model(path: Path) -> bytes:
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
