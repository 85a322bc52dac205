"""Fixtures that more than one folder of tests needs: a parallel corpus made of everything that real text gets wrong."""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from transformer_cli.errors import TfmError

settings.register_profile("steady", deadline=None, derandomize=True)  # a busy machine or a lucky draw fails no build
settings.load_profile("steady")

_LONG = " ".join(f"word{i % 97}" for i in range(5000))

#: (source, target) as a program must see them: neither side ever contains a newline, and some sides are empty.
_ODD_PAIRS = [
    ("The first line, behind a BOM.", "Die erste Zeile, hinter einem BOM."),
    ("A bare CR\rinside a line.", "Ein nacktes CR\rin einer Zeile."),
    ("Line\u2028paragraph\u2029next\x85line.", "Zeile\u2028Absatz\u2029nächste\x85Zeile."),
    (
        "Vertical\x0btab, form\x0cfeed, file\x1cseparator.",
        "Senkrechter\x0bTabulator, Seiten\x0cvorschub, Datei\x1ctrenner.",
    ),
    ("", "Die Quelle fehlt."),
    ("The target is missing.", ""),
    ("", ""),
    ("\u00a0\u00a0", "Die Quelle besteht aus geschützten Leerzeichen."),
    ("The target is an ideographic space.", "\u3000"),
    (" ", "  "),
    ("A\ttab.", "Ein\tTabulator."),
    ('A lone " quote.', 'Ein einzelnes " Zeichen.'),
    ("Literal </s> <pad> <unk> <s> <0x41> are text.", "Auch </s> <pad> <unk> <s> <0x41> sind Text."),
    ("An emoji 👩\u200d👩\u200d👧 and e\u0301 combined.", "Ein Emoji 👩\u200d👩\u200d👧 und e\u0301 kombiniert."),
    ("Full width １２３ and ligatures ﬁ ﬂ.", "Volle Breite １２３ und Ligaturen ﬁ ﬂ，！？"),
    ("  leading, inner   and trailing  ", "\u3000vorn, in der   Mitte und hinten  "),
    (_LONG, "Eine sehr lange Zeile."),
    ("A duplicate pair.", "Ein doppeltes Paar."),
    ("A duplicate pair.", "Ein doppeltes Paar."),
    ("The last line has no newline.", "Die letzte Zeile hat keinen Zeilenumbruch."),
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _own_threads() -> Iterator[None]:
    """CTranslate2 sets the number of OpenMP's threads, which are torch's: what trains later would add in another order."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _messages_speak_no_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever error a test meets: no value in it is one that only Python spells so."""
    said: list[str] = []
    render = TfmError.render
    monkeypatch.setattr(TfmError, "render", lambda error: said.append(render(error)) or said[-1])
    yield
    foreign = r"^  (got|expected): ((.* )?(True|False|None|<\w+ object at .*|<class .*)(,|;|$)|\[\'|\{\')"
    assert [message for message in said if re.search(foreign, message, re.MULTILINE)] == []


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test pulls the plug, and a small run waits for the disk half of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """Even if a shell started the tests in the background, which makes all their processes deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class OddCorpus:
    """Two aligned files with a BOM and no newline at the end; the source has CRLF line ends, the target LF."""

    src_path: Path
    tgt_path: Path
    src: list[str]
    tgt: list[str]

    @property
    def full(self) -> list[tuple[str, str]]:
        """The pairs of which both sides hold more than white space."""
        return [pair for pair in zip(self.src, self.tgt, strict=True) if pair[0].strip() and pair[1].strip()]


@pytest.fixture
def odd_corpus(tmp_path: Path) -> OddCorpus:
    src, tgt = map(list, zip(*_ODD_PAIRS, strict=True))
    folder = tmp_path / "odd"
    folder.mkdir()
    corpus = OddCorpus(folder / "odd.en", folder / "odd.de", src, tgt)
    corpus.src_path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(src).encode())
    corpus.tgt_path.write_bytes(b"\xef\xbb\xbf" + "\n".join(tgt).encode())
    return corpus
