"""Learning a tokenizer from the text of a run, or taking over one that is given.

SentencePiece's defaults normalise (``，`` becomes ``,``) and squeeze spaces; here nothing is normalised, and what has
no piece is spelled in bytes. What a tokenizer does with text is in ``tokenizer.py``.
"""

import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import sentencepiece

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import BOS, EOS, N_SPECIAL, PAD, UNK, Tokenizer, read_model, tag_piece
from transformer_cli.errors import DataError
from transformer_cli.wording import counted

_N_BYTES = 256
_THREADS = 4  # a constant: unigram pieces depend on it
_LONGEST_LINE = 4192  # bytes; the trainer skips longer lines
_RESERVED = "\u2585"  # stands for unknown characters inside the trainer, which skips lines that hold it
CHECKED_LINES = 10_000


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
    if config.model_type == "char" and config.vocab_size < N_SPECIAL + _N_BYTES:
        raise _too_small(config, N_SPECIAL + _N_BYTES)
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
    size = Tokenizer(model.getvalue()).src_vocab_size
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
    tokenizer = Tokenizer(read_model(Path(os.path.expanduser(path))), where=[path])
    lines = [*src[:CHECKED_LINES], *tgt[:CHECKED_LINES]]
    changed = sum(tokenizer.decode(ids) != line for ids, line in zip(tokenizer.encode_tgt(lines), lines, strict=True))
    note(f"{path}: given, so tokenizer.model_type, vocab_size ({tokenizer.src_vocab_size}) and coverage are its own")
    if changed:
        of_all = f"{changed:,} of {counted(len(lines), 'line')}"
        note(f"{path}: changes {of_all}; it normalises text or lacks characters")
    return tokenizer
