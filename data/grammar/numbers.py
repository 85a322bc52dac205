"""Cardinal numbers up to 99 in English and German words; Chinese ones are in `chinese`."""

from __future__ import annotations

_EN = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_EN_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_DE = [
    "null",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_DE_TENS = ["-", "-", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


def english_number(value: int) -> str:
    if value < 20:
        return _EN[value]
    tens, ones = divmod(value, 10)
    return _EN_TENS[tens] + (f"-{_EN[ones]}" if ones else "")


def german_number(value: int) -> str:
    """Write 42 as zweiundvierzig; 1 is the bare form `ein`."""
    if value < 20:
        return _DE[value]
    tens, ones = divmod(value, 10)
    return (f"{_DE[ones]}und" if ones else "") + _DE_TENS[tens]
