"""The benchmark of the training step: what is compared, what is counted, and where the time is said to go."""

from types import SimpleNamespace

import pytest
import torch
from model_rig import TINY, VOCAB, sentences
from torch import nn
from torch.autograd.profiler import profile

from transformer_cli.benchmark import timing, training
from transformer_cli.benchmark.parts import PARTS, _marked, part, shares, time_by_part
from transformer_cli.benchmark.products import product_rates
from transformer_cli.benchmark.torch_model import TorchTransformer
from transformer_cli.benchmark.training import Block, Speeds, StepReport, alternate, largest_difference, step_flops
from transformer_cli.config import ModelConfig
from transformer_cli.data.batching import Batch
from transformer_cli.errors import TfmError
from transformer_cli.model.transformer import Transformer


def batch(rows: int, src: int, tgt: int) -> Batch:
    ids = sentences(rows, tgt)
    return Batch(sentences(rows, src), ids, ids, rows * tgt)


def losses(*values: float):
    found = iter(values)
    return lambda window, rate: next(found)


# The check


def test_the_largest_difference_is_reported_and_both_get_the_same_windows_and_rates() -> None:
    asked = []

    def step(window, rate):
        asked.append((window, rate))
        return 2.0

    theirs = losses(2.0, 2.00005, 2.00001)
    assert largest_difference(step, theirs, ["a", "b", "c"], lambda number: number / 10) == pytest.approx(5e-5)
    assert asked == [("a", 0.1), ("b", 0.2), ("c", 0.3)]


@pytest.mark.parametrize("wrong", [2.1, float("nan"), float("inf")])
def test_another_loss_is_a_failure_that_names_the_step(wrong: float) -> None:
    with pytest.raises(TfmError, match="step 2 of 3") as failed:
        largest_difference(losses(2.0, 2.0, 2.0), losses(2.0, wrong, 2.0), [None] * 3, lambda number: 0.0)
    assert failed.value.exit_code == 1
    assert "do not train the same model" in str(failed.value)


# The clock


def test_blocks_alternate_after_a_warm_up_on_the_same_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(training.time, "perf_counter", lambda: next(clock))
    calls: list[tuple[str, int]] = []

    def side(name: str):
        return lambda window, rate: calls.append((name, window[0].n_tokens)) or 0.0

    windows = [[batch(1, 2, number)] for number in range(1, 7)]
    blocks = [windows[0:2], windows[2:4], windows[4:6]]
    flops = {"flops": lambda window: 10.0 * window[0].n_tokens}
    found = list(alternate(side("ours"), side("theirs"), blocks, 0.0, **flops, wait=lambda: None))
    expected = [("ours", (1, 2)), ("theirs", (1, 2))]  # warm-up
    expected += [("ours", (1, 2)), ("theirs", (1, 2)), ("theirs", (3, 4)), ("ours", (3, 4))]
    expected += [("ours", (5, 6)), ("theirs", (5, 6))]
    assert calls == [(name, number) for name, numbers in expected for number in numbers]
    assert found == [Block(3, 30.0, 1, 1), Block(7, 70.0, 1, 1), Block(11, 110.0, 1, 1)]


def test_speeds_are_medians_and_ratios_are_made_block_by_block() -> None:
    """The machine halves its speed in the middle: the ratio does not care, the speed's spread does."""
    found = Speeds.of([Block(100, 10.0, 1.0, 3.0), Block(100, 10.0, 2.0, 6.0), Block(100, 10.0, 1.0, 4.0)])
    assert found.ratios == [3.0, 3.0, 4.0]
    assert (found.ratio_to_torch_nn, found.ratio_spread) == (3.0, 0.5)
    assert (found.tokens_per_second, found.tokens_per_second_spread) == (100.0, 25.0)
    assert found.tokens_per_second_torch_nn == 25.0
    assert found.flops_per_second == 10.0


def test_the_share_is_of_the_best_product() -> None:
    speeds = Speeds.of([Block(100, 10.0, 1.0, 1.0)])
    report = StepReport("cpu", "2", {}, speeds, 0.0, {256: 20.0, 512: 40.0, 1024: 25.0}, None)
    assert report.gemm_share == 0.25
    assert report.document()["gemm_share"] == 0.25


def test_operations_are_those_of_the_equations() -> None:
    config = ModelConfig.model_validate(TINY | {"encoder_layers": 1, "decoder_layers": 1})
    twin = TorchTransformer(Transformer(config, VOCAB, VOCAB), config).to("meta")
    rows, s, t, d, ff = 3, 7, 5, 16, 24
    projections = 4 * d * d * (s + t) + (2 * t + 2 * s) * d * d  # self-attentions, cross-attention
    scores = 2 * d * (s * s + t * t + s * t)  # Q Kᵀ, and weights times V
    feed_forward, output = 2 * d * ff * (s + t), t * d * VOCAB
    wanted = 3 * 2 * rows * (projections + scores + feed_forward + output)
    assert step_flops(twin, [batch(rows, s, t)]) == wanted
    assert step_flops(twin, [batch(rows, s, t)] * 2) == 2 * wanted


def test_products_have_a_rate_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SHORTEST_WATCH", 0.001)
    rates = product_rates(torch.device("cpu"), 1, sizes=(16, 64))
    assert list(rates) == [16, 64]
    assert all(1e6 < rate < 1e14 for rate in rates.values())


# The parts


def event(name: str, seconds: float, parent=None, number: int = -1, thread: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, self_cpu_time_total=seconds, cpu_parent=parent, sequence_nr=number, fwd_thread=thread
    )


@pytest.mark.parametrize(
    ("names", "part_of_it"),
    [
        (["aten::addmm"], "products"),
        (["part:attention", "aten::linear", "aten::t"], "products"),
        (["autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "aten::mm"], "products"),
        (["part:attention", "aten::transpose"], "attention"),
        (["aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention_for_cpu"], "attention"),
        (["ScaledDotProductFlashAttentionForCpuBackward0", "aten::copy_"], "attention"),
        (["aten::softmax"], "attention"),
        (["aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"], "loss"),
        (["_ChunkedLossBackward", "aten::exp_"], "loss"),
        (["_ChunkedLossBackward", "aten::mm"], "products"),
        (["part:dropout"], "dropout"),
        (["part:dropout", "aten::mul"], "dropout"),
        (["part:normalisation", "aten::layer_norm", "aten::native_layer_norm"], "normalisation"),
        (["part:normalisation", "aten::rms_norm", "aten::rsqrt"], "normalisation"),
        (["NativeLayerNormBackward0", "aten::native_layer_norm_backward"], "normalisation"),
        (["part:optimizer", "aten::linalg_vector_norm"], "optimizer"),
        (["part:step"], "other"),
        (["part:step", "torch::autograd::AccumulateGrad", "aten::detach"], "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else ">".join(value),
)
def test_an_event_belongs_to_the_nearest_name_that_says_something(names: list[str], part_of_it: str) -> None:
    chain = []
    for name in names:
        chain.append(event(name, 0.0, chain[-1] if chain else None))
    chain[-1].self_cpu_time_total = 2.0
    assert shares(chain) == dict.fromkeys(PARTS, 0.0) | {part_of_it: 1.0}


def test_a_mark_says_its_own_part() -> None:
    for name in PARTS:
        assert shares([event(f"part:{name}", 1.0)])[name] == 1.0


def test_the_backward_pass_belongs_where_its_forward_pass_does() -> None:
    mark = event("part:dropout", 1.0)
    forward = event("aten::mul", 1.0, mark, number=7)
    elsewhere = event("aten::mul", 1.0, number=8)
    back = event("autograd::engine::evaluate_function: MulBackward0", 1.0, number=7, thread=1)
    inner = event("MulBackward0", 1.0, back, number=7, thread=1)
    product = event("aten::mul", 1.0, inner)
    other = event("MulBackward0", 2.0, number=8, thread=1)
    found = shares([mark, forward, elsewhere, back, inner, product, other])
    assert found["dropout"] == pytest.approx(5 / 8)
    assert found["other"] == pytest.approx(3 / 8)


def test_the_parts_of_a_real_step_add_up_to_one(capfd: pytest.CaptureFixture[str]) -> None:
    config = ModelConfig.model_validate(TINY | {"dropout": 0.1})
    model = Transformer(config, VOCAB, VOCAB).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hooks_before = [len(module._forward_hooks) for module in model.modules()]
    one = batch(8, 20, 20)

    def step() -> None:
        logits = model(one.src, one.tgt_in)
        nn.functional.cross_entropy(logits.flatten(0, 1), one.tgt_out.flatten(), label_smoothing=0.1).backward()
        with part("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    found = time_by_part(model, step, 2)
    assert tuple(found) == PARTS
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(share > 0 for share in found.values())
    assert [len(module._forward_hooks) for module in model.modules()] == hooks_before
    assert capfd.readouterr() == ("", "")  # the profiler's library would tell stderr when it starts


def test_dropout_that_is_added_in_one_go_counts_as_dropout() -> None:
    config = ModelConfig.model_validate(TINY | {"residual_dropout": 0.5})
    model, one = Transformer(config, VOCAB, VOCAB).train(), batch(8, 20, 20)
    with _marked(model), profile(use_kineto=False) as watched:
        model(one.src, one.tgt_in)
    marks = [event for event in watched.function_events if event.name == "part:dropout"]
    assert len(marks) == 2 + 2 * 3 + 2 * 4  # embeddings, encoder layers, decoder layers
    assert "aten::addcmul" in {inner.name for mark in marks for inner in mark.cpu_children}
    assert not any("add" in vars(module) for module in model.modules())
