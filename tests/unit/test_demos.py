"""Every demo shows what it claims, on a small setting, and the same again by the same seed."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from matplotlib.figure import Figure
from training_rig import small_config

from transformer_cli.benchmark.attention import PASSES, Shape
from transformer_cli.benchmark.report import Row
from transformer_cli.data.pairs import ParallelText
from transformer_cli.demos import cost, heads, masks, norm, order, scaling, warmup
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.demos.small_training import Training, batch_of, exact_matches, small_model, symbols, train
from transformer_cli.inspection.heads import Head


def columns(table: Table) -> dict[str, list[object]]:
    return {name: [row[i] for row in table.rows] for i, name in enumerate(table.columns)}


def drawn(report: DemoReport) -> int:
    """Draw a report; return how many panels it has. One with several lines says which is which."""
    figure = Figure(figsize=report.size, layout="constrained")
    report.draw(figure)
    assert [axes.get_title() for axes in figure.axes if len(axes.lines) > 1 and axes.get_legend() is None] == []
    return len(figure.axes)


def test_scaling() -> None:
    report = scaling.demonstrate(Wish(), widths=(16, 256), steps=2)
    products, softmax, attention, _ = map(columns, report.tables)
    assert products["variance"] == pytest.approx(products["d_k·sigma^4"], rel=0.1)
    assert products["standard deviation"][1] == pytest.approx(16, rel=0.05)
    assert softmax["weights"][0] == "0.09 0.245 0.665"
    assert softmax["gradient norm"] == sorted(softmax["gradient norm"], reverse=True)
    with_scale, without = attention["gradient norm"][2:]
    assert with_scale > 1.5 * without
    assert attention["saturated"][2] == 0 < attention["saturated"][3]
    assert drawn(report) == 3


def test_the_softmax_gradient_is_that_of_autograd() -> None:
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), scores)
    assert scaling._softmax_row([1.0, 2.0, 3.0])[3] == pytest.approx(float(jacobian.norm()))


def test_masks() -> None:
    """Trained so shortly that only the leak is learned, which is the quickest way to a good loss."""
    report = masks.demonstrate(Wish(), steps=60, faults=("none", "off by one"))
    (table,) = report.tables
    shown = columns(table)
    sound, broken = shown["loss"]
    assert broken < 1.3 < 2 < sound
    assert shown["right"][1] == "0.0%"
    assert shown["what the mask doctor says"] == ["sound", "decoder layer 1, masked self-attention, sees the future"]
    assert drawn(report) == 9


def test_masks_are_drawn_as_they_are() -> None:
    drawings = {name: mask.int().tolist() for name, mask in masks._masks().items()}
    assert drawings["both"] == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], *[[1, 1, 1, 0, 0]] * 3]
    assert drawings["off by one"][0] == [1, 1, 0, 0, 0]
    assert drawings["maximum of 0/1 and -inf"] == drawings["padding"] == [[1, 1, 1, 0, 0]] * 5
    assert drawings["inverted booleans"] == [[0, 0, 0, 1, 1]] * 5
    assert drawings["wrong axis"] == [*[[1] * 5] * 3, *[[0] * 5] * 2]


def test_order() -> None:
    report = order.demonstrate(Wish())
    (table,) = report.tables
    differences = dict(zip(*list(columns(table).values())[:2], strict=True))
    assert drawn(report) == len(differences)
    assert differences.pop("none") < 1e-12
    assert differences.pop("alibi") < 1e-12  # distances without direction, and one text is the other in a mirror
    assert min(differences.values()) > 0.1


def test_norm() -> None:
    report = norm.demonstrate(Wish(), depths=(2, 12), trained=(2,), steps=2)
    (table,) = report.tables
    ratios = {tuple(row[:2]): row[4] for row in table.rows}
    assert ratios["post", 12] < 0.1 < 0.5 < ratios["pre", 12] < 3
    last = {tuple(row[:2]): row[3] for row in table.rows}
    assert last["pre", 12] < 0.7 * last["pre", 2]
    assert last["post", 12] > 0.7 * last["post", 2]
    assert drawn(report) == 2


def test_warmup() -> None:
    report = warmup.demonstrate(Wish(), steps=4, warmup=2, layers=1)
    (table,) = report.tables
    shown = columns(table)
    assert shown["norm"] == ["post", "post", "pre", "pre"]
    assert shown["warm-up steps"] == [2, 0, 2, 0]
    assert shown["loss at the start"][0] == shown["loss at the start"][1]
    assert shown["loss at the end"][0] != shown["loss at the end"][1]
    assert drawn(report) == 1


@pytest.mark.slow
def test_the_trainings_show_what_is_claimed() -> None:
    *_, scaled = scaling.demonstrate(Wish()).tables
    with_scale, without = columns(scaled)["loss at the end"]
    assert with_scale < 0.7 * without
    of_depth = {tuple(row[:2]): row[5] for row in norm.demonstrate(Wish()).tables[0].rows}
    assert of_depth["pre", 12] < 0.8 * of_depth["post", 12]
    post, post_at_once, _, pre_at_once = columns(warmup.demonstrate(Wish()).tables[0])["loss at the end"]
    assert max(post, pre_at_once) < 0.9 * post_at_once


def test_the_clearest_head_of_a_type_is_not_one_that_looks_at_separators() -> None:
    def head(number: int, kind: str, entropy: float, separators: float) -> Head:
        return Head("cross", 1, number, kind, entropy, *[0.0] * 5, separators, 0.0, None, None)

    sure_of_nothing, clear = head(1, "alignment-like", 0.1, 0.4), head(2, "alignment-like", 0.2, 0.1)
    assert heads._typical("alignment-like", [sure_of_nothing, clear]) is clear
    assert heads._typical("broad", [head(1, "broad", 0.95, 0.4), clear, head(3, "broad", 0.9, 0.1)]).head == 3
    assert heads._typical("separator", [head(1, "separator", 0.1, 0.6), head(2, "separator", 0.2, 0.9)]).head == 2


class _Translated:
    """A run that translates as it is told to."""

    config = small_config()

    def __init__(self, **translations: str) -> None:
        self._translations = translations

    def translations(self, sources: list[str]) -> list[str]:
        return [self._translations.get(source[0], "??") for source in sources]


@pytest.mark.parametrize(
    ("translations", "drawn", "told"),
    [
        ({"b": "B right", "c": "C right"}, "b", "translated 'B right', as the reference has it"),
        ({"c": "C nearly"}, "c", "translated 'C nearly', but the reference is 'C right'"),
    ],
    ids=["right", "as right as any"],
)
@pytest.mark.parametrize("width", [30, 3], ids=["readable", "all too short"])
def test_a_sentence_is_drawn_that_is_translated_well(
    monkeypatch: pytest.MonkeyPatch, translations: dict[str, str], drawn: str, told: str, width: int
) -> None:
    sources = [letter * width for letter in "abc"]
    if width > 20:  # one that is too long to be drawn, however right
        sources, translations = ["x" * 99, *sources], translations | {"x": "X right"}
    dev = ParallelText(sources, [f"{source[0].upper()} right" for source in sources])
    monkeypatch.setattr(heads, "load_split", lambda *_: dev)
    line = heads._drawn_line(_Translated(**translations), Wish())
    assert line.source == drawn * width
    assert told in heads._caption(line)


def test_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What benchmark/ measures is tested there: here a machine on which naive takes n² of both, and flash n memory."""

    def measured(shape: Shape, lengths: list[int], *, kernels: list[str], **_: object) -> Iterator[Row]:
        for n, kernel, way in product(lengths, kernels, PASSES):
            yield Row(kernel, n, way, seconds=1e-9 * n**2, peak_bytes=n**2 if kernel == "naive" else 100 * n)

    monkeypatch.setattr(cost, "measure", measured)
    monkeypatch.setattr(cost, "product_rates", lambda *_, **__: {512: 1e9})
    report = cost.demonstrate(Wish(), lengths=(64, 128, 256))
    exponents = {tuple(row[:2]): row[2:] for row in report.tables[1].rows}
    assert exponents["forward+backward", "naive"] == pytest.approx((2, 2))
    assert exponents["forward+backward", "flash"] == pytest.approx((2, 1))
    assert {row[2] for row in report.tables[0].rows} == {"naive", "flash", "window"}
    assert report.shown[-1].startswith("window: 256 keys on each side of a query (Longformer)")
    assert drawn(report) == 2


def test_the_same_seed_shows_the_same() -> None:
    first, again, other = (order.demonstrate(Wish(seed)).document() for seed in (3, 3, 4))
    assert first == again != other


def test_no_demo_moves_torchs_generator() -> None:
    before = torch.get_rng_state()
    train(small_model(0), Training(steps=2))
    order.demonstrate(Wish())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_perfect_copier_is_right_and_an_untrained_one_is_not() -> None:
    pairs = symbols(20, seed=5)
    assert exact_matches(small_model(0).eval(), pairs) == 0
    batch = batch_of(pairs)

    class Copier:
        def encode(self, src: torch.Tensor) -> torch.Tensor:
            return src

        def decode(self, tokens: torch.Tensor, memory: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(memory, int(batch.src.max()) + 1)

        def project(self, hidden: torch.Tensor) -> torch.Tensor:
            return hidden

    assert exact_matches(Copier(), pairs) == exact_matches(Copier(), pairs, more_padding=3) == 1
