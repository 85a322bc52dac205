"""Where the sentences of a line end, if the library sentencex is there to say so (``pip install sentencex``).

It knows that ``Dr.``, ``z. B.`` and ``3. Oktober`` end none, in some 300 languages. It is optional because only lines
longer than training allowed are ever cut: without it, or where it gives up, the rule of ``pieces.py`` stands alone.
"""

from importlib.metadata import PackageNotFoundError, version

from transformer_cli.data.languages import language

#: White space of more than one byte: sentencex 1.0 panics at a letter between two of them and a full stop.
_WIDE_SPACES = dict.fromkeys((code for code in range(0x80, 0x3001) if chr(code).isspace()), " ")


def sentence_rule() -> str:
    """Return what decides where sentences end: ``sentencex`` and its version, or ``built in``."""
    try:
        return f"sentencex {version('sentencex')}"
    except PackageNotFoundError:
        return "built in"


def sentence_ends(line: str, lang: str) -> list[int]:
    """Return how many characters of a line there are up to the end of each sentence, white space behind it left out.

    Args:
        line: text without line ends.
        lang: its language, such as ``en`` or ``zh-CN``.

    Returns:
        Ascending numbers; none if sentencex is not installed or cannot cut this line.
    """
    ends, start = [], 0
    for sentence in _sentences(line.translate(_WIDE_SPACES), language(lang)):
        ends.append(start + len(sentence.rstrip()))
        start += len(sentence)
    return ends if start == len(line) else []


def _sentences(line: str, lang: str) -> list[str]:
    try:
        from sentencex import segment
    except ImportError:
        return []
    try:
        return list(segment(lang, line))
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what a Rust library raises for a mistake of its own
            raise
        return []
