"""What must be known of languages: one code for each, and whether words are set apart by spaces."""

_TWO_LETTERS = {"cmn": "zh", "zho": "zh", "chi": "zh", "jpn": "ja", "kor": "ko", "tha": "th", "lao": "lo", "khm": "km"}
_WITHOUT_SPACES = {"zh", "ja", "th", "lo", "km", "my", "yue"}


def language(code: str) -> str:
    """Return the language of a code such as ``zh-CN``, ``pt_BR`` or ``jpn``: its two letters where there are some."""
    base = code.lower().replace("_", "-").partition("-")[0]
    return _TWO_LETTERS.get(base, base)


def writes_spaces(code: str) -> bool:
    """Return whether a language sets words apart by spaces."""
    return language(code) not in _WITHOUT_SPACES


def unit(lang: str) -> str:
    """Return what the length of a line is counted in: ``words``, or ``characters`` if the language sets no spaces."""
    return "words" if writes_spaces(lang) else "characters"


def units(line: str, lang: str) -> list[str]:
    """Return the words of a line, or its characters if the language sets no spaces between words."""
    words = line.split()
    return words if writes_spaces(lang) else list("".join(words))
