"""The report of a run, part by part: charts, chosen sentences, packed maps, and the page that nothing breaks out of."""

import json
import math
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rig import EVIL, SECTIONS, Seen, hostile

from transformer_cli.evaluation import Bucket, Line
from transformer_cli.inspection.inspector import SentenceMaps
from transformer_cli.report.curves import LEFT, RIGHT, exact, short, thinned, ticks, training_charts
from transformer_cli.report.maps import packed, size
from transformer_cli.report.page import _tiles, page
from transformer_cli.report.translations import Translations, worth_a_look


def train(step: float, **values: object) -> dict[str, object]:
    return {"kind": "train", "step": step, **values}


def test_charts_are_those_of_what_was_recorded() -> None:
    records = [train(50, loss=5.0, lr=0.1), train(100, loss=3.0, lr=0.2)]
    records.append({"kind": "validation", "step": 100, "loss": 2.5, "bleu": 10.0})
    records.append({"kind": "average", "step": 100, "loss": 0.1, "bleu": 99.0})  # of no single step
    charts = {chart.title: chart for chart in training_charts(records)}
    assert list(charts) == ["Loss", "BLEU of the dev set", "Learning rate"]
    assert [line.points for line in charts["Loss"].lines] == [[(50, 5.0), (100, 3.0)], [(100, 2.5)]]
    assert charts["Loss"].last == [("training", "3"), ("dev", "2.5")]


def test_the_first_step_stands_left_of_the_last_and_a_large_value_above_a_small_one() -> None:
    (chart,) = training_charts([train(50, loss=5.0), train(100, loss=3.0)])
    (x0, y0), (x1, y1) = [map(float, place.split()) for place in chart.lines[0].path[1:].split("L")]
    assert LEFT < x0 < x1 == RIGHT
    assert y0 < y1  # SVG counts from above


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "7", True, [1]])
def test_values_that_are_no_numbers_are_passed_over(bad: object) -> None:
    (chart,) = training_charts([train(1, loss=5.0), train(2, loss=bad), train(3, loss=4.0)])
    assert [line.points for line in chart.lines] == [[(1, 5.0), (3, 4.0)]]


def test_one_record_and_none() -> None:
    assert training_charts([]) == []
    (chart,) = training_charts([train(0, loss=0.0)])
    assert "nan" not in chart.lines[0].path


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    high = low + span
    if high - low < 1e-6 * max(abs(low), abs(high)):
        return  # no chart is so narrow
    found = ticks(low, high)
    steps = [b - a for a, b in pairwise(found)]
    assert 2 <= len(found) <= 11
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in found)
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-2)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=900))
def test_thinning_keeps_the_mean_of_all_and_the_last(numbers: list[float]) -> None:
    points = [(float(x), y) for x, y in enumerate(numbers)]
    kept = thinned(points, 50)
    assert len(kept) <= 50
    assert kept[-1] == points[-1]
    assert min(numbers) - 1e-6 <= min(y for _, y in kept)
    assert max(y for _, y in kept) <= max(numbers) + 1e-6
    assert all(a[0] <= b[0] for a, b in pairwise(kept))


def test_numbers_are_short() -> None:
    assert [short(x) for x in (0, 0.002, 1e-5, 6.817e-7, 2.0756, 5000, 1_837_568, 3e9)] == [
        "0", "0.002", "1e-5", "6.82e-7", "2.076", "5k", "1.838M", "3G",
    ]  # fmt: skip
    assert [exact(x) for x in (5558.47, 1e6, 2.0756)] == ["5,558", "1,000,000", "2.076"]


def line(number: int, chrf: float) -> Line:
    return Line(number, chrf, "sig", f"source {number}", ["reference"], "translation")


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 50])
def test_no_line_is_both_best_and_worst(count: int) -> None:
    lines = [line(number, 100 - number) for number in range(count)]
    found = Translations(count, "", [], lines)
    assert not {x.number for x in found.best} & {x.number for x in found.worst}
    assert len(found.best) + len(found.worst) == min(count, 20)
    assert found.best[0] == lines[0]
    if count > 1:
        assert found.worst[0] == lines[-1]


def test_lines_to_look_into_go_from_good_to_bad_and_fit() -> None:
    lines = [line(number, 100 - number) for number in range(10)]
    chosen = worth_a_look(lines, [number not in (0, 9) for number in range(10)], 4)
    assert [(label, x.number) for label, x in chosen] == [
        ("line 1, chrF 99", 1), ("line 3, chrF 97", 3), ("line 5, chrF 95", 5), ("line 8, chrF 92", 8),
    ]  # fmt: skip
    assert [len(worth_a_look(lines[:n], [True] * n, 4)) for n in (0, 1, 2, 3)] == [0, 1, 2, 3]
    assert worth_a_look(lines, [False] * 10, 4) == []


def test_maps_are_packed_row_by_row_a_byte_for_each_weight() -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(5), (2, 3)).astype(np.float32)  # [H, T, S]
    made = packed(SentenceMaps("a", "b", ["x"] * 5, ["y"] * 3, ["z"] * 3, {"cross": [weights]}), "name")
    (layer,) = made["places"]["cross"]
    found = np.frombuffer(b64decode(layer["data"]), np.uint8).reshape(2, 3, 5) / 255
    assert layer["heads"] == 2
    assert np.abs(found - weights).max() <= 0.5 / 255 + 1e-6
    assert size(made) == len(layer["data"]) == 40


def test_text_from_data_stays_text() -> None:
    html = page(hostile())
    seen = Seen(html)
    assert seen.tags.count("script") == 2  # the data and ours
    assert "img" not in seen.tags
    assert seen.fetched() == []
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]
    assert "49" not in seen.sections["configuration"]  # what looks like a template is none
    for part in ("curves", "scores", "sentences", "configuration", "origin"):
        assert EVIL in seen.sections[part], part
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert json.loads(data[1])["maps"][0]["src"][0] == EVIL


def test_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    html = page(hostile())
    (policy,) = [value for value in Seen(html).named("content") if "default-src" in value]
    assert policy.startswith("default-src 'none'; ")
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    for (text,), name in ((script, "script-src"), (style, "style-src")):
        assert f"{name} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert not re.search(r"url\(|@import|@font-face", style[0])
    assert re.findall(r"https?://[^\"' ]+", script[0]) == ["http://www.w3.org/2000/svg"]


def test_a_page_is_whole_and_says_what_it_is() -> None:
    seen = Seen(page(hostile()))
    assert list(seen.sections) == SECTIONS
    assert len(set(seen.named("id"))) == len(seen.named("id"))
    assert {link[1:] for link in seen.named("href") if link.startswith("#")} == set(SECTIONS)
    assert ("html", "lang", "en") in seen.attributes
    assert "width=device-width, initial-scale=1" in seen.named("content")


def score(value: float, metric: str, decoding: str, model: str = "model.safetensors") -> dict[str, object]:
    return {"metric": metric, "score": value, "text": "/far/away/test.en", "decoding": decoding, "model": model}


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ([score(99, "BLEU", "beam 50"), score(61, "chrF", "beam 5"), score(40, "BLEU", "beam 5")], "40.00"),
        ([score(61, "chrF", "beam 5"), score(40, "BLEU", "beam 1")], "61.00"),
        ([score(39, "BLEU", "beam 50")], "39.00"),
        ([score(12, "BLEU", "beam 5", "checkpoints/step-9"), score(40, "BLEU", "beam 5")], "40.00"),
        ([score(41, "BLEU", "beam 5"), score(40, "BLEU", "beam 5")], "41.00"),
        ([score(13, "BLEU", "beam 5"), score(96, "BLEU", "beam 5") | {"text": "split test"}], "96.00"),
    ],
)
def test_the_first_score_to_see_is_that_of_the_recipes_own_search(scores: list[dict[str, object]], shown: str) -> None:
    contents = replace(hostile(), scores=scores, decoding="beam 5", model="model.safetensors")
    (value, note), *_ = [(value, note) for name, value, note in _tiles(contents) if name in ("BLEU", "chrF")]
    assert value == shown
    of = next(record for record in scores if f"{record['score']:.2f}" == shown)
    assert note.startswith(f"tfm eval of {str(of['text']).removeprefix('/far/away/')}; ")
    assert note.endswith(f"{of['decoding']}; model.safetensors")
    assert ("not as the recipe searches" in note) == (shown == "39.00")


@pytest.mark.parametrize(("count", "best", "worst"), [(1, 1, 0), (5, 3, 2), (500, 10, 10)])
def test_the_page_says_how_many_sentences_it_shows(count: int, best: int, worst: int) -> None:
    lines = [line(number, 100 - number / 9) for number in range(count)]
    shown = Translations(count, "beam 5", [Bucket("0-5", "words", count, 12.5, "sig")], lines)
    section = " ".join(Seen(page(replace(hostile(), translations=shown))).sections["sentences"].split())
    assert f"The {best} best and the {worst} worst of the same {count} sentence" in section
    assert section.count("chrF line") == best + worst
