"""Chinese building blocks: numerals, measure words, aspect patterns.

A verb pattern is text with three marks: `~` is the object, `*` the place of 了, and `^`
the place of 过, 的, 完 and 一次 where it differs (`游^泳*`: 游泳了, 游过泳).
"""

from __future__ import annotations

DIGITS = "零一二三四五六七八九"


def numeral(number: int) -> str:
    """Write 0 … 9999 in characters, with 二 for two."""
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return "十" + (DIGITS[number % 10] if number % 10 else "")
    if number < 100:
        return DIGITS[number // 10] + "十" + (DIGITS[number % 10] if number % 10 else "")
    unit, sign = (100, "百") if number < 1000 else (1000, "千")
    head, rest = divmod(number, unit)
    if not rest:
        return DIGITS[head] + sign
    tail = numeral(rest) if rest >= unit // 10 else "零" + numeral(rest)
    return DIGITS[head] + sign + ("一" + tail if 10 <= rest < 20 else tail)


def counted(number: int, measure: str) -> str:
    """Return numeral and measure word: 两本, 三只."""
    return ("两" if number == 2 else numeral(number)) + measure


def with_aspect(pattern: str, aspect: str = "") -> str:
    """Fill the aspect marks of a pattern whose object is already in place."""
    late = aspect in ("过", "的", "一次", "完") and "^" in pattern
    mark = "^" if late else "*"
    return pattern.replace(mark, aspect, 1).replace("*", "").replace("^", "")
