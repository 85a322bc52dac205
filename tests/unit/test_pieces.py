import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.pieces import cut, join

PIECES = st.sampled_from(["▁a", "b", ".", "。", "▁", "<0xE4>", "<0xBD>", "<0xA0>", "3", "!", "▁c?"])


@given(st.lists(PIECES, min_size=1, max_size=40), st.integers(1, 12))
def test_ranges_cover_the_line_within_the_limit(pieces: list[str], limit: int) -> None:
    ranges = cut(pieces, limit)
    assert [i for start, end in ranges for i in range(start, end)] == list(range(len(pieces)))
    assert all(1 <= end - start <= limit for start, end in ranges)


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        ("▁a b . ▁c d e", 5, ["▁a b .", "▁c d e"]),  # after the sentence
        ("▁a b . ▁c . ▁d e f", 6, ["▁a b . ▁c .", "▁d e f"]),  # after the last one within reach
        ("▁a b ▁c d e", 4, ["▁a b", "▁c d e"]),  # before a word
        ("▁3 . 1 4 ▁5 6", 5, ["▁3 . 1 4", "▁5 6"]),  # not inside a number
        ("▁ 你 好 。 我 们", 5, ["▁ 你 好 。", "我 们"]),  # Chinese writes no space
        ("a b c d e", 2, ["a b", "c d", "e"]),  # anywhere
        ("a <0xE4> <0xBD> <0xA0> b", 3, ["a", "<0xE4> <0xBD> <0xA0>", "b"]),  # but not inside a character
        ("<0xE4> <0xBD> <0xA0>", 2, ["<0xE4> <0xBD>", "<0xA0>"]),  # unless a character is longer than the limit
        ('▁a ." ▁b c', 3, ['▁a ."', "▁b c"]),
        ("▁a b", 2, ["▁a b"]),
    ],
)
def test_where_a_line_is_cut(line: str, limit: int, expected: list[str]) -> None:
    pieces = line.split(" ")
    assert [" ".join(pieces[start:end]) for start, end in cut(pieces, limit)] == expected


class Read(list[str]):
    """Counts how often its items are looked at."""

    count = 0

    def __getitem__(self, place: int) -> str:  # type: ignore[override]
        self.count += 1
        return super().__getitem__(place)


@pytest.mark.parametrize("line", ["a", "<0xE4><0xBD><0xA0>", "▁.", "ab.▁c", "a" * 39 + "。"])
def test_the_work_grows_with_the_line_and_no_faster(line: str) -> None:
    few, many = (Read(re.findall("<0x..>|.", line) * n) for n in (1000, 4000))
    for pieces in (few, many):
        cut(pieces, 40)
    assert many.count <= 4.2 * few.count
    assert few.count <= 12 * len(few)


def test_joining() -> None:
    assert join(["Ein Hund. ", " Er bellt.", ""], "de") == "Ein Hund. Er bellt."
    assert join(["一只狗。", "它叫。"], "zh") == "一只狗。它叫。"
    assert join(["一", "二"], "zh-Hant") == join(["一", "二"], "zh_CN") == "一二"
    assert join([" untouched "], "de") == " untouched "
