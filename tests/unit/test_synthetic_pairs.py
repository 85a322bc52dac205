"""Which synthetic pairs are kept: each filter, the choice among candidates, and the tag."""

from dataclasses import dataclass, field

import pytest
from decoding_rig import config, tokenizer

from transformer_cli.commands import synthetic_pairs
from transformer_cli.commands.synthetic_pairs import Line, PairMaker
from transformer_cli.config import Config
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Hypothesis, Translation


@dataclass
class Dictionary:
    """Translates by a table of (text, score) lists; what it does not know becomes itself, reversed."""

    table: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    capped: tuple[str, ...] = ()  # texts that were cut
    config: Config = field(default_factory=config)
    tokenizer: Tokenizer = field(default_factory=tokenizer)
    asked: list[str] = field(default_factory=list)
    in_pieces: tuple[str, ...] = ()  # lines that were cut

    def translate_window(self, lines: list[str], settings: DecodeSettings) -> list[Translation]:
        self.asked += lines
        return [self._translation(line, settings.n_best) for line in lines]

    def _translation(self, line: str, n_best: int) -> Translation:
        found = self.table.get(line, [(line[::-1], -1.0)])[:n_best]
        return Translation(
            line,
            [Hypothesis(text, score, text.split(), text in self.capped) for text, score in found],
            2 if line in self.in_pieces else 1,
        )


def make(*runs: Dictionary, **settings: object) -> PairMaker:
    how = [DecodeSettings.from_config(run.config.decode) for run in runs]
    return PairMaker(runs, how, **({"back": False, "tag": False, "by_reference": False, "max_ratio": 50} | settings))


def pairs(maker: PairMaker, *lines: str | Line) -> list[tuple[str, str]]:
    return list(maker.pairs([line if isinstance(line, Line) else Line(line) for line in lines]))


def counted(maker: PairMaker) -> dict[str, int]:
    assert maker.read == maker.written + sum(maker.dropped.values())
    return {reason: count for reason, count in maker.dropped.items() if count}


def test_pairs_of_lines_that_were_cut_are_counted() -> None:
    maker = make(Dictionary({"c": [("c", 0.0)]}, in_pieces=("ab", "c")))
    assert len(pairs(maker, "ab", "c", "de")) == 2
    assert maker.in_pieces == 1  # a pair that is dropped is none


def test_sides_and_tag() -> None:
    assert pairs(make(Dictionary()), "ein hund") == [("ein hund", "dnuh nie")]
    assert pairs(make(Dictionary(), back=True), "ein hund") == [("dnuh nie", "ein hund")]
    assert pairs(make(Dictionary(), back=True, tag=True), "ein hund") == [("<BT> dnuh nie", "ein hund")]


@pytest.mark.parametrize(
    ("line", "table", "reason"),
    [
        (Line("ab"), {"ab": [(" ", 0.0)]}, "one side is empty"),
        (Line(" \u3000"), {}, "one side is empty"),
        (Line("ab", reference=" "), {}, "one side is empty"),
        (Line("ab", broken=True), {}, "invalid UTF-8 or NUL"),
        (Line("ab "), {"ab ": [(" ab", 0.0)]}, "both sides are the same"),
        (Line("ein hund"), {"ein hund": [("x " * 300, 0.0)]}, "one side over 50 times as long as the other"),
        (Line("ein hund " * 80), {"ein hund " * 80: [("x", 0.0)]}, "one side over 50 times as long as the other"),
    ],
)
def test_each_flaw_has_its_count(line: Line, table: dict, reason: str) -> None:
    maker = make(Dictionary(table))
    assert pairs(maker, line, "gut") == [("gut", "tug")]
    assert counted(maker) == {reason: 1}


def test_what_was_cut_at_the_length_limit_is_dropped() -> None:
    maker = make(Dictionary(capped=("ba",)))
    assert pairs(maker, "ab") == []
    assert counted(maker) == {"cut at the length limit": 1}


@pytest.mark.parametrize(("cut", "kept"), [("fern", [("ab", "nah dran")]), ("nah dran", [])])
def test_it_is_the_chosen_candidate_that_must_not_be_cut(cut: str, kept: list[tuple[str, str]]) -> None:
    table = {"ab": [("fern", -1.0), ("nah dran", -2.0)]}
    assert pairs(make(Dictionary(table, capped=(cut,)), by_reference=True), Line("ab", "nah dran")) == kept


def test_the_ratio_counts_the_end_of_the_sentence_and_its_limit_is_allowed() -> None:
    """One token and its </s> against five: 6 / 2 is exactly three."""
    line = next(piece for piece in ("ein", "zwei", "haus") if len(tokenizer().encode_src([piece])[0]) == 1)
    run = {line: [("a b c d e", 0.0)]}
    assert len(pairs(make(Dictionary(run), max_ratio=3), line)) == 1
    assert pairs(make(Dictionary(run), max_ratio=2.9), line) == []


def test_a_repeated_line_is_not_even_translated() -> None:
    run = Dictionary()
    maker = make(run)
    assert pairs(maker, "ab", "cd", "ab") == [("ab", "ba"), ("cd", "dc")]
    assert pairs(maker, "cd", Line("ab", reference="another")) == []
    assert run.asked == ["ab", "cd"]
    assert counted(maker) == {"seen before": 3}


def test_with_references_that_choose_a_repetition_has_the_same_reference() -> None:
    run = Dictionary({"ab": [("eins", -1.0), ("zwei", -2.0)]})
    maker = make(run, by_reference=True)
    lines = [Line("ab", "eins"), Line("ab", "zwei"), Line("ab", "zwei")]
    assert pairs(maker, *lines) == [("ab", "eins"), ("ab", "zwei")]
    assert counted(maker) == {"seen before": 1}


def test_repetitions_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_pairs, "_REMEMBERED", 4)
    maker = make(Dictionary())
    for number in range(100):
        assert len(pairs(maker, f"a{number}", f"a{max(0, number - 1)}")) == 1
        assert len(maker._recent._older) + len(maker._recent._newer) <= 8
    assert len(pairs(maker, "a1")) == 1
    assert pairs(maker, "a98") == []


def test_the_best_score_of_all_runs_wins_and_equals_go_to_the_first() -> None:
    first, second = Dictionary({"ab": [("x", -2.0)], "cd": [("x", -1.0)]}), Dictionary({"ab": [("y", -1.0)]})
    second.table["cd"] = [("y", -1.0)]
    assert pairs(make(first, second), "ab", "cd") == [("ab", "y"), ("cd", "x")]


def test_the_whole_beam_is_offered_to_a_reference_and_only_the_best_without() -> None:
    run = Dictionary({"ab": [("ein baum", -1.0), ("ein hund", -2.0), ("zwei katzen", -3.0)]})
    line = Line("ab", "zwei Katzen")
    assert pairs(make(run, by_reference=True), line) == [("ab", "zwei katzen")]
    assert pairs(make(run), line) == [("ab", "ein baum")]
    assert make(run, by_reference=True).settings[0].n_best == run.config.decode.beam_size == 3
