"""What a SentencePiece model file says of its pieces.

The library tells all of this but which pieces are user-defined, and the kind of the model. Both are read from the file,
a protocol buffer whose few fields need no library: https://protobuf.dev/programming-guides/encoding/ and the
messages ``ModelProto``, ``SentencePiece`` and ``TrainerSpec`` of SentencePiece.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PIECES, _TRAINER = 1, 2  # fields of ModelProto
_TEXT, _SCORE, _TYPE = 1, 2, 3  # fields of SentencePiece
_MODEL_TYPE = 3  # a field of TrainerSpec
_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6  # values of the type of a piece
_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True)
class PieceModel:
    """The pieces that text may become."""

    kind: str  # unigram, bpe, word or char
    ids: dict[str, int]  # of the normal and the user-defined pieces
    scores: dict[str, float]  # of the normal ones: merges in order of falling scores, or log-probabilities
    user_defined: frozenset[str]  # never cut
    byte_ids: list[int]  # of the 256 bytes; empty: unknown characters are not spelled

    @classmethod
    def parsed(cls, model: bytes) -> "PieceModel":
        """Read a whole model file."""
        fields = list(_fields(model))
        kind = next((dict(_fields(value)).get(_MODEL_TYPE, 1) for number, value in fields if number == _TRAINER), 1)
        ids, scores, user_defined, byte_ids = {}, {}, set(), {}
        for i, entry in enumerate(dict(_fields(value)) for number, value in fields if number == _PIECES):
            text, sort = bytes(entry[_TEXT]).decode(), entry.get(_TYPE, _NORMAL)
            if sort in (_NORMAL, _USER_DEFINED):
                ids[text] = i
            if sort == _NORMAL:
                (scores[text],) = struct.unpack("<f", entry.get(_SCORE, bytes(4)))
            elif sort == _USER_DEFINED:
                user_defined.add(text)
            elif sort == _BYTE:
                byte_ids[int(text[1:-1], 16)] = i  # <0x41>
        return cls(_KINDS.get(kind, ""), ids, scores, frozenset(user_defined), [byte_ids[b] for b in sorted(byte_ids)])


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an int, or the bytes of anything else."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _varint(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts at a place, and the place after it: seven bits a byte, the lowest first."""
    number = shift = 0
    while True:
        byte = message[at]
        at, number, shift = at + 1, number | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return number, at
