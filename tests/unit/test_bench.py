"""The benchmark tells the truth: kernels that cannot run are rows with a reason, memory and errors are measured."""

import ast
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

import transformer_cli
from transformer_cli.benchmark import accuracy, memory, sparse, timing
from transformer_cli.benchmark.attention import (
    KERNELS,
    Case,
    Shape,
    Unsupported,
    attempt,
    backend,
    chosen_backend,
    make_inputs,
    prepare,
    useful_flops,
)
from transformer_cli.benchmark.report import Row, growth, measure
from transformer_cli.benchmark.sparse import pattern_named
from transformer_cli.benchmark.timing import Stopwatch
from transformer_cli.commands.bench import attention as bench
from transformer_cli.commands.bench import plot as bench_plot
from transformer_cli.errors import UserError

SHAPE = Shape(heads=2, head_dim=8)


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "SHORTEST_WATCH", 0.005)
        patch.setattr(bench, "_PEAK_SIZES", (32, 64))
        yield


@pytest.fixture(scope="module")
def report():
    return bench.run_bench(
        bench.BenchRequest([16, 48], ["naive", "sdpa", "flash"], 2, 8, repeats=3, device="cpu", causal=True)
    )


def test_document_has_the_promised_keys(report):
    document = json.loads(bench.as_json(report))
    assert list(document) == ["device", "torch", "settings", "rows", "growth", "interrupted"]
    promised = ["kernel", "seq_len", "pass", "seconds", "peak_bytes", "max_error", "ratio_to_naive", "unsupported"]
    assert all(list(row)[: len(promised)] == promised for row in document["rows"])
    assert [(row["seq_len"], row["pass"], row["kernel"]) for row in document["rows"]] == [
        (seq_len, way, kernel)
        for seq_len in (16, 48)
        for way in ("forward", "forward+backward")
        for kernel in ("naive", "sdpa", "flash")
    ]
    assert document["settings"]["causal"] is True
    assert document["settings"]["seq_lens"] == [16, 48]


def test_figures_are_plausible(report):
    assert all(row.unsupported is None and row.seconds > 0 and row.measurements >= 3 for row in report.rows)
    assert all(0 < row.max_error < 1e-5 for row in report.rows)  # float32: not exact, not wrong
    assert {row.backend for row in report.rows if row.kernel == "sdpa"} == {"flash"}
    naive = {(row.seq_len, row.direction): row.seconds for row in report.rows if row.kernel == "naive"}
    assert all(row.ratio_to_naive == row.seconds / naive[row.seq_len, row.direction] for row in report.rows)


def test_table_is_complete_and_fits_a_terminal(report):
    out = io.StringIO()
    bench.render(report, Console(file=out, width=80))
    text = out.getvalue()
    assert "sdpa (flash)" in text
    assert "fwd+bwd" in text
    assert "0.25 is four times as fast" in text
    assert "…" not in text
    assert "MiB" in text


def test_flash_with_dropout_is_a_row_with_torchs_reason():
    report = bench.run_bench(
        bench.BenchRequest([16], ["naive", "sdpa", "flash"], 2, 8, repeats=1, device="cpu", dropout=0.1)
    )
    flash = [row for row in report.rows if row.kernel == "flash"]
    assert all("dropout" in row.unsupported and row.seconds is None and row.peak_bytes is None for row in flash)
    others = [row for row in report.rows if row.kernel != "flash"]
    assert all(row.unsupported is None and row.seconds and row.max_error is None for row in others)
    assert {row.backend for row in others} == {"naive", "math"}  # torch's default choice fell back, and it is said
    out = io.StringIO()
    bench.render(report, Console(file=out, width=80))
    assert (
        "cannot run: flash, fwd and fwd+bwd, length 16: Both fused kernels do not support non-zero dropout"
        in out.getvalue()
    )


@pytest.mark.parametrize("causal", [False, True])
def test_reference_equals_autograd_of_the_equation(causal, monkeypatch):
    monkeypatch.setattr(accuracy, "_SCORES_AT_ONCE", 7 * 20)  # several blocks of queries
    inputs = make_inputs(replace(SHAPE, causal=causal), 20)
    query, key, value = (t.detach().double()[0, 0].requires_grad_() for t in (inputs.query, inputs.key, inputs.value))
    scores = query @ key.T / 8**0.5
    if causal:
        scores = scores + torch.full((20, 20), -torch.inf).triu(1)
    out = scores.softmax(-1) @ value
    grads = torch.autograd.grad(out, (query, key, value), inputs.grad_out.double()[0, 0])
    for got, want in zip(accuracy.reference(inputs, causal=causal), (out, *grads), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_unsteady_rows_are_marked_and_not_in_the_growth(report):
    rows = [Row("naive", n, "forward", seconds=1e-3 * n, spread=1e-4 * n) for n in (8, 16, 32)]
    assert [found.time for found in growth(rows)] == [pytest.approx(1.0)]
    shaken = [*rows[:2], replace(rows[2], spread=rows[2].seconds)]
    assert growth(shaken) == []
    console = Console(file=io.StringIO(), width=120)
    bench.render(replace(report, rows=shaken), console)
    text = console.file.getvalue()
    assert "100%!" in text
    assert "10%!" not in text
    assert "!        spread above 50%: something else ran;" in text
    assert "growth   naive, fwd: not told, for fewer than 3 lengths are without !" in text
    rows.append(replace(rows[2], seq_len=64, spread=1.0))
    bench.render(replace(report, rows=rows, growth=growth(rows)), console)
    text = console.file.getvalue()
    assert "growth   naive, fwd: time as n^1.00 (without length 64, see !)" in text


def test_the_legend_names_the_kernels_of_torch_that_are_in_the_table(report):
    def legend(*kernels):
        out = io.StringIO()
        rows = [Row(kernel, 16, "forward", seconds=1.0, spread=0.1, backend="flash") for kernel in kernels]
        bench.render(replace(report, rows=rows), Console(file=out, width=80))
        return out.getvalue().partition("\npass ")[2]

    choice, named = "sdpa     torch's own choice", "torch's kernel of that name, or nothing"
    assert [text in legend("naive") for text in (choice, named)] == [False, False]
    assert [text in legend("naive", "sdpa") for text in (choice, named)] == [True, False]
    assert f"\nflash    {named}\nmath     {named}\n" in legend("flash", "math")
    for heading in ("spread", "speed", "MiB", "error", "time", "ratio"):
        assert f"\n{heading} " in legend("naive")


@pytest.mark.parametrize("told", ["99999999999999999999", "1..9999999999999"])
def test_lengths_beyond_every_machine_are_refused(told):
    with pytest.raises(UserError, match="no machine holds"):
        bench.lengths([told])


def test_error_sees_a_wrong_gradient():
    inputs = make_inputs(SHAPE, 12)
    truth = accuracy.reference(inputs, causal=False)
    results = prepare(Case("naive", "forward+backward", 12, SHAPE), inputs)()
    assert accuracy.max_error(results, truth) < 1e-5
    wrong = (*results[:3], results[3] + 0.5)
    assert accuracy.max_error(wrong, truth) == pytest.approx(0.5, abs=1e-4)


def test_causal_flag_reaches_the_kernels():
    inputs = make_inputs(SHAPE, 12)
    for kernel in ("naive", "sdpa", "flash"):
        outputs = []
        for causal in (False, True):
            case = Case(kernel, "forward", 12, replace(SHAPE, causal=causal))
            with backend(kernel):
                outputs.append(prepare(case, inputs)()[0])
        assert not torch.allclose(*outputs)
        torch.testing.assert_close(outputs[1][:, :, 0], inputs.value[:, :, 0])  # the first query sees the first key


def test_default_choice_is_reported():
    inputs = make_inputs(SHAPE, 12)
    assert chosen_backend(Case("sdpa", "forward", 12, SHAPE), inputs) == "flash"
    assert chosen_backend(Case("sdpa", "forward", 12, replace(SHAPE, dropout=0.5)), inputs) == "math"
    assert chosen_backend(Case("naive", "forward", 12, SHAPE), inputs) == "naive"


def test_peak_memory_grows_as_the_equation_says():
    """Naive attention in float32 holds two score matrices at once at its peak; a fused kernel none."""
    shape = Shape(heads=4, head_dim=16)
    sizes = (256, 1024)
    cases = [Case(kernel, "forward", size, shape) for kernel in ("naive", "flash") for size in sizes]
    *naive, small, large = memory.peak_bytes(cases)
    for size, peak in zip(sizes, naive, strict=True):
        matrix = 4 * size * size * 4
        assert 1.8 * matrix < peak < 2.6 * matrix + 1e6
    assert large < 4 * 1024 * 1024 * 4  # below one matrix
    assert small <= large


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="the limit needs /proc")
def test_what_does_not_fit_is_a_row_not_a_crash():
    rows = list(measure(Shape(heads=1, head_dim=1), [4_000_000], kernels=["naive"], repeats=1, peak=1.0, note=print))
    assert [row.unsupported for row in rows] == ["out of memory"] * 2
    assert [row.seconds for row in rows] == [None] * 2


def test_attempt_lets_real_errors_through():
    def broken():
        raise RuntimeError("a shape is wrong")

    with pytest.raises(RuntimeError, match="a shape is wrong"):
        attempt(broken)

    def full():
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(Unsupported, match="out of memory"):
        attempt(full)


def test_a_stopwatch_counts_calls():
    calls = []
    watch = Stopwatch(lambda: calls.append(torch.ones(1000).sum()), threads=1, rounds=5)
    for _ in range(5):
        watch.measure()
    found = watch.timing()
    assert 0 < found.seconds < 0.01
    assert found.spread >= 0
    assert found.measurements >= 5
    assert len(calls) > found.measurements  # warm-up, and blocks of calls


def test_kernels_are_timed_in_turn(monkeypatch):
    order = []
    monkeypatch.setattr(Stopwatch, "measure", lambda self: (order.append(self), self._times.append(1.0)))
    rows = list(measure(SHAPE, [8], kernels=["naive", "flash"], repeats=3, peak=1.0, note=print))
    assert [row.measurements for row in rows] == [3] * 4
    assert [order.index(watch) for watch in order] == [0, 1] * 3 + [6, 7] * 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seq_lens": [0]}, "lengths"),
        ({"seq_lens": []}, "lengths"),
        ({"repeats": 0}, "repeats"),
        ({"dropout": 1.0}, "dropout"),
        ({"dtype": ""}, "unknown dtype"),
        ({"heads": 0}, "heads"),
        ({"head_dim": -1}, "head_dim"),
        ({"batch": 0}, "batch"),
        ({"dtype": "int8"}, "int8"),
        ({"device": "tpu"}, "tpu"),
    ],
)
def test_nonsense_is_a_user_error(values, message):
    with pytest.raises(UserError, match=message):
        bench.run_bench(bench.BenchRequest(**values))


def test_padding_hides_keys_in_every_kernel_and_in_the_reference():
    shape = replace(SHAPE, padding=0.3, batch=2)
    inputs = make_inputs(shape, 20)
    assert inputs.mask[:, 0, 0].tolist() == [[True] * 14 + [False] * 6] * 2
    for causal in (False, True):
        truth = accuracy.reference(inputs, causal=causal)
        for kernel in ("naive", "sdpa", "flash", "math"):
            case = Case(kernel, "forward+backward", 20, replace(shape, causal=causal))
            with backend(kernel):
                results = prepare(case, inputs)()
            assert accuracy.max_error(results, truth) < 1e-5
            assert not results[2][:, :, 14:].any()  # nothing flows into hidden keys
            assert chosen_backend(case, inputs) == ("flash" if kernel == "sdpa" else kernel)


@pytest.mark.parametrize(("causal", "padding"), [(False, 0.0), (True, 0.0), (False, 0.3), (True, 0.3)])
def test_useful_operations_are_those_of_the_visible_pairs(causal, padding):
    shape = Shape(heads=2, head_dim=8, batch=3, causal=causal, padding=padding)
    real = 14 if padding else 20
    pairs = sum(1 for query in range(20) for key in range(real) if key <= query or not causal)
    assert useful_flops(Case("sdpa", "forward", 20, shape)) == 3 * 2 * pairs * 2 * (2 * 8)
    assert useful_flops(Case("sdpa", "forward+backward", 20, shape)) == 3 * useful_flops(
        Case("sdpa", "forward", 20, shape)
    )


def test_rates_and_shares_follow_from_the_times(report):
    peak = report.settings["product_flops_per_second"]
    for row in report.rows:
        flops = useful_flops(Case(row.kernel, row.direction, row.seq_len, replace(SHAPE, causal=True)))
        assert row.flops_per_second == pytest.approx(flops / row.seconds)
        assert row.share_of_peak == pytest.approx(row.flops_per_second / peak)


def test_growth_is_fitted_to_three_lengths_or_more():
    def rows(kernel, power, lengths):
        return [Row(kernel, n, "forward", seconds=1e-9 * n**power, peak_bytes=5 * n**2) for n in lengths]

    unmeasured = Row("naive", 4096, "forward", unsupported="out of memory")
    square, line = growth([*rows("naive", 2, (256, 512, 1024)), unmeasured, *rows("flash", 1.2, (256, 700, 1024))])
    assert (square.kernel, square.direction) == ("naive", "forward")
    assert square.time == pytest.approx(2.0)
    assert line.time == pytest.approx(1.2)
    assert line.memory == pytest.approx(2.0)
    assert growth(rows("naive", 2, (256, 512))) == []
    no_peak = [replace(row, peak_bytes=0) for row in rows("naive", 2, (256, 512, 1024))]
    assert growth(no_peak)[0].memory is None
    assert square.document()["pass"] == "forward"


SPARSE = ["window", "dilated", "bigbird", "blocks", "linformer"]


@pytest.fixture(scope="module")
def sparse_report():
    asked = bench.BenchRequest([100, 150], ["naive", *SPARSE], 2, 8, window=8, rank=4, repeats=1, device="cpu")
    return bench.run_bench(asked)


def test_sparse_rows_are_compared_with_dense_attention_to_the_same_keys(sparse_report):
    rows = {(row.kernel, row.seq_len, row.direction): row for row in sparse_report.rows}
    assert len(rows) == 2 * 2 * 6
    for (kernel, _, direction), row in rows.items():
        assert row.seconds > 0
        assert row.backend == kernel
        assert row.ratio_to_naive == row.seconds / rows["naive", row.seq_len, direction].seconds
        if kernel == "linformer":
            assert row.max_error is None
            assert "mixtures of the keys" in row.no_error
        else:
            assert 0 < row.max_error < 1e-5
            assert row.no_error is None


def test_a_reader_is_told_what_the_sparse_kernels_look_at(sparse_report):
    out = io.StringIO()
    bench.render(sparse_report, Console(file=out, width=80))
    for line in (
        "window   8 keys on each side of a query (Longformer)",
        "dilated  8 keys on each side, every second one (Longformer)",
        "bigbird  8 keys on each side, the first 64 tokens, drawn blocks of 64 (BigBird)",
        "blocks   one block of 8 keys, another for each head (BlockBERT)",
        "linformer 4 learned mixtures of all keys (Linformer)",
        "no error linformer: it computes other numbers by design",
    ):
        assert line in out.getvalue()


def test_causal_linformer_is_a_row_with_its_reason():
    report = bench.run_bench(bench.BenchRequest([20], ["linformer", "window"], 2, 8, repeats=1, causal=True))
    refused, ran = report.rows[::2], report.rows[1::2]
    assert all("it would see the future" in row.unsupported and row.seconds is None for row in refused)
    assert all(row.unsupported is None and row.ratio_to_naive is None for row in ran)  # nothing to compare with
    out = io.StringIO()
    bench.render(report, Console(file=out, width=80))
    assert "cannot run: linformer, fwd and fwd+bwd, length 20: each of its keys" in out.getvalue()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", ["window", "dilated", "bigbird", "blocks"])
def test_useful_operations_of_a_pattern_are_those_of_its_pairs(kernel, causal, monkeypatch):
    monkeypatch.setattr(sparse, "_PAIRS_AT_ONCE", 700)  # several rows at a time
    shape = Shape(heads=2, head_dim=8, causal=causal, padding=0.3, window=8)
    mask = pattern_named(kernel, 8).dense_mask(100, causal=causal, n_heads=2)[..., :70].expand(1, 2, 100, 70)
    assert useful_flops(Case(kernel, "forward", 100, shape)) == 2 * 2 * int(mask.sum()) * 8


def test_useful_operations_of_linformer_count_the_mixing():
    shape = Shape(heads=2, head_dim=8, rank=4)
    assert useful_flops(Case("linformer", "forward", 100, shape)) == 2 * (2 * 2 * 100 * 4 * 8) * 2


def test_an_interrupted_sweep_keeps_what_was_measured(monkeypatch):
    def ctrl_c(*_):
        raise KeyboardInterrupt

    real = memory.peak_bytes
    monkeypatch.setattr(memory, "peak_bytes", lambda cases: real(cases) if cases[0].seq_len == 16 else ctrl_c())
    report = bench.run_bench(bench.BenchRequest([16, 24], heads=2, head_dim=8, repeats=1, device="cpu"))
    assert [(row.seq_len, row.kernel) for row in report.rows] == [(16, "naive"), (16, "sdpa")] * 2
    assert report.interrupted
    out = io.StringIO()
    bench.render(report, Console(file=out, width=80))
    assert "interrupted: the rows above are those that were finished" in out.getvalue()
    with pytest.raises(KeyboardInterrupt):  # nothing was measured, and there is nothing to show
        bench.run_bench(bench.BenchRequest([24], heads=2, head_dim=8, repeats=1, device="cpu"))


def test_rounds_that_were_finished_before_ctrl_c_count(monkeypatch):
    taken = []

    def measure_three(watch):
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(watch)
        watch._times.append(1.0)

    monkeypatch.setattr(Stopwatch, "measure", measure_three)
    rows = measure(SHAPE, [8], kernels=["naive", "flash"], repeats=5, peak=1.0, note=print)
    assert [next(rows).measurements for _ in range(2)] == [2, 1]
    with pytest.raises(KeyboardInterrupt):
        next(rows)


def test_memory_that_ends_in_a_round_is_a_row(monkeypatch):
    def full(watch):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stopwatch, "measure", full)
    rows = list(measure(SHAPE, [8], kernels=["naive"], repeats=2, peak=1.0, note=print))
    assert [(row.unsupported, row.seconds, row.peak_bytes) for row in rows] == [("out of memory", None, None)] * 2


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (["2048"], [2048]),
        (["256..2048"], [256, 512, 1024, 2048]),
        (["300..1000", "7"], [300, 600, 7]),
        (["128, 256,512..1024", "7"], [128, 256, 512, 1024, 7]),
    ],
)
def test_lengths_double_within_a_range(told, wanted):
    assert bench.lengths(told) == wanted


@pytest.mark.parametrize(
    "told",
    [
        "",
        "0",
        "-5",
        "x",
        "512..",
        "..512",
        "512..256",
        "0..4",
        "1..2..3",
        "1e3",
        "8,,9",
        "٣",
        "9" * 5000,
        f"1..{'9' * 5000}",
    ],
)
def test_other_lengths_are_refused(told):
    with pytest.raises(UserError, match="no length"):
        bench.lengths([told])


def test_kernels_are_chosen_by_name_and_naive_comes_first():
    assert bench.chosen_kernels(None, flash=False) == ["naive", "sdpa"]
    assert bench.chosen_kernels(None, flash=True) == ["naive", "sdpa", "flash"]
    assert bench.chosen_kernels("math, naive", flash=False) == ["naive", "math"]
    assert bench.chosen_kernels("all", flash=False) == list(KERNELS)
    with pytest.raises(UserError, match="unknown kernel 'fast'"):
        bench.chosen_kernels("naive,fast", flash=False)


def test_a_size_that_no_kernel_reads_is_refused():
    assert bench.told_sizes(["naive", "bigbird"], {"window": 9, "rank": None}) == {"window": 9}
    assert bench.told_sizes(["naive", "linformer"], {"window": None, "rank": 9}) == {"rank": 9}
    with pytest.raises(UserError, match="--window 9: none of naive, linformer reads it"):
        bench.told_sizes(["naive", "linformer"], {"window": 9, "rank": 9})
    for kernel in KERNELS:  # the words of the report change with what is read, and only with that
        words = [sparse.meaning(kernel, width, rank) for width, rank in ((8, 8), (9, 8), (8, 9))]
        readers = [kernel in bench.READERS[name] for name in ("window", "rank")]
        assert [words[0] != other for other in words[1:]] == readers


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plot_is_a_picture_of_every_kernel(report, tmp_path, ending):
    path = tmp_path / f"plot.{ending}"
    bench_plot.check_plot(path)
    bench_plot.write_plot(report, path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    if ending == "svg":
        assert data.count(b"<!-- length -->") == 2  # time and memory
        assert all(f"<!-- {kernel}, forward -->".encode() in data for kernel in ("naive", "sdpa", "flash"))


def test_both_axes_of_the_plot_are_logarithmic_and_rows_without_a_figure_are_left_out(report, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    refused = Row("cudnn", 16, "forward", unsupported="there is none")
    bench_plot.write_plot(replace(report, rows=[*report.rows, refused]), tmp_path / "plot.svg")
    assert "cannot run: cudnn" in drawn[0].get_supxlabel()
    for axes, (value, scale) in zip(drawn[0].axes, (("seconds", 1e3), ("peak_bytes", 2**-20)), strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
        own = [
            row for row in report.rows if (row.kernel, row.direction) == ("flash", "forward") and getattr(row, value)
        ]
        assert lines.get("flash, forward", []) == [[row.seq_len, getattr(row, value) * scale] for row in own]
        assert not any("cudnn" in name for name in lines)


def test_a_plot_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"\.png or \.svg"):
        bench_plot.check_plot(tmp_path / "plot.txt")
    with pytest.raises(UserError, match="folder"):
        bench_plot.check_plot(tmp_path / "none" / "plot.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # importing it fails, whether missing or broken
    with pytest.raises(UserError, match=r"transformer-cli\[plot\]"):
        bench_plot.check_plot(tmp_path / "plot.png")


def test_package_needs_torch_and_numpy_only():
    """A machine with a GPU and nothing else can run it: no pydantic, datasets, rich, configuration or data."""
    allowed = {"torch", "numpy"}
    ours = (
        "transformer_cli.benchmark",
        "transformer_cli.model",
        "transformer_cli.errors",
        "transformer_cli.runtime",
        "transformer_cli.wording",
    )
    standard = __import__("sys").stdlib_module_names
    for file in (Path(transformer_cli.__file__).parent / "benchmark").glob("*.py"):
        tree = ast.parse(file.read_text())
        types_only = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
        skipped = {id(inner) for node in types_only for inner in ast.walk(node)}
        for node in (node for node in ast.walk(tree) if id(node) not in skipped):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] in allowed | standard or name.startswith(ours), f"{file.name}: {name}"


@pytest.mark.parametrize("kernel", ["naive", "window", "linformer"])
def test_texts_shorter_than_the_warm_up_are_measured(kernel):
    rows = list(measure(SHAPE, [8], kernels=[kernel], repeats=1, peak=1.0, note=print))
    assert [row.unsupported for row in rows] == [None, None]


@pytest.mark.parametrize("values", [{"window": 2**70}, {"rank": 2**63 - 1}, {"batch": 65_537}])
def test_sizes_beyond_every_use_are_refused_before_anything_is_measured(values):
    with pytest.raises(UserError, match="out of range"):
        bench.run_bench(bench.BenchRequest(**values), lambda note: pytest.fail(note))


@pytest.mark.parametrize(("named", "wanted"), [("", None), ("all,foo", None), ("sdpa,all", list(KERNELS))])
def test_kernels_by_name(named, wanted):
    if wanted is None:
        with pytest.raises(UserError, match=r"unknown kernel '(foo)?'"):
            bench.chosen_kernels(named, flash=False)
    else:
        assert bench.chosen_kernels(named, flash=False) == wanted
