"""``tfm bench --train``: one document, a failure when the sides differ, and refusals."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch
from command_line import Tfm
from toy_language import TINY

from transformer_cli.benchmark import products, timing, torch_model
from transformer_cli.benchmark.torch_model import TorchStep
from transformer_cli.benchmark.training import Block
from transformer_cli.commands.bench import training as bench_training
from transformer_cli.commands.bench.training import OurStep
from transformer_cli.config import ModelConfig
from transformer_cli.training import update
from transformer_cli.wording import counted

PROMISED = {
    "device", "torch", "settings", "tokens_per_second", "tokens_per_second_spread", "tokens_per_second_torch_nn",
    "ratio_to_torch_nn", "ratio_spread", "ratios", "flops_per_second", "gemm_share", "product_flops_per_second",
    "largest_loss_difference", "time_by_part", "interrupted",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SHORTEST_WATCH", 0.001)
    monkeypatch.setattr(products, "PRODUCT_SIZES", (32, 64))
    monkeypatch.setattr(bench_training, "CHECKED_STEPS", 5)


def bench(tfm: Tfm, files: Path, *arguments: object):
    return tfm("bench", "--train", "-c", files / "my.yaml", *TINY, "--steps", "2", "--repeats", "3", *arguments)


def test_the_document_has_the_promised_keys(tfm: Tfm, files: Path) -> None:
    overrides = ["-s", "train.accumulate=2", "-s", "train.ema_decay=0.9"]  # the average is not compared, and left out
    done = bench(tfm, files, "--json", *overrides)
    assert (done.code, "comparing the losses" in done.err) == (0, True)
    assert bench(tfm, files, "--json", "--quiet").err == ""
    document = json.loads(done.out)
    assert set(document) == PROMISED
    assert 0 <= document["largest_loss_difference"] < 1e-4
    assert len(document["ratios"]) == 3
    assert min(document["ratios"]) <= document["ratio_to_torch_nn"] <= max(document["ratios"])
    assert document["tokens_per_second"] > 0
    assert document["gemm_share"] > 0
    assert sum(document["time_by_part"].values()) == pytest.approx(1.0)
    assert list(document["product_flops_per_second"]) == ["32", "64"]
    settings = document["settings"]
    assert (settings["steps"], settings["warm_up"], settings["repeats"], settings["accumulate"]) == (2, 2, 3, 2)
    assert {"threads", "amp", "model", "batch_tokens", "ratio_to_torch_nn"} <= set(settings)


@pytest.mark.parametrize(("at", "n_blocks"), [("a block", 2), ("products", 3)])
def test_ctrl_c_leaves_the_blocks_that_were_finished(
    tfm: Tfm, files: Path, monkeypatch: pytest.MonkeyPatch, at: str, n_blocks: int
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    def two(*arguments: object) -> Iterator[Block]:
        yield from islice(blocks(*arguments), 2)
        raise KeyboardInterrupt

    blocks = bench_training._blocks
    monkeypatch.setattr(bench_training, *(("_blocks", two) if at == "a block" else ("product_rates", ctrl_c)))
    done = bench(tfm, files, "--json")
    document = json.loads(done.out)
    assert (done.code, document["interrupted"], len(document["ratios"])) == (130, True, n_blocks)
    assert (document["gemm_share"], document["time_by_part"]) == (None, None)
    shown = bench(tfm, files).out.decode()
    assert f"interrupted: the figures above are of what was finished, {n_blocks} of 3 blocks" in shown
    assert ["speed       target tokens" in shown, "products " in shown, "parts " in shown] == [True, False, False]
    monkeypatch.setattr(bench_training, "_blocks", ctrl_c)
    done = bench(tfm, files)
    assert (done.code, done.out) == (130, b"")  # not one


def test_the_table_says_how_to_read_it(tfm: Tfm, files: Path) -> None:
    done = bench(tfm, files)
    assert done.code == 0
    text = done.out.decode()
    threads = counted(torch.get_num_threads(), "thread")
    assert all(word in text for word in ("target tokens/s", "torch.nn", "GFLOP/s", "2 is twice as fast", threads))
    assert all(name in text for name in ("products    floating-point", "parts       torch's profiler"))
    assert "comparing the losses" in done.err


DROPOUTS = {"model.embedding_dropout": 0.5, "model.residual_dropout": 0.4, "model.feed_forward_dropout": 0.3}


@pytest.mark.parametrize(
    "settings",
    [
        {"model.norm_placement": "post"},
        {"model.dropout": 0.0},
        {"train.amp": "bf16"},
        {"model.dropout": 0.2} | DROPOUTS,
    ],
)
def test_other_models_are_compared_too(tfm: Tfm, files: Path, monkeypatch: pytest.MonkeyPatch, settings: dict) -> None:
    monkeypatch.setattr(bench_training, "_shares", lambda *_: None)  # only the losses are looked at
    monkeypatch.setattr(bench_training, "step_flops", lambda *_: 1)
    overrides = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    assert json.loads(bench(tfm, files, "--json", *overrides).out)["largest_loss_difference"] < 1e-4


@pytest.mark.parametrize("override", ["model.word_dropout=0.1", "model.attention_dropout=0.1", "model.norm=rms"])
def test_a_model_that_torch_has_no_parts_for_is_refused_before_anything_is_prepared(
    tfm: Tfm, files: Path, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    monkeypatch.setattr(bench_training, "prepare", lambda *_: pytest.fail("prepared"))
    done = bench(tfm, files, "-s", override)
    assert (done.code, "torch's own layers have no counterpart of this model" in done.err) == (2, True)


def test_a_report_names_every_dropout() -> None:
    shape = ModelConfig.model_validate({"dropout": 0.2})
    assert bench_training._dropouts(shape) == "0.2"
    other = shape.model_copy(update={"feed_forward_dropout": 0.0})
    assert bench_training._dropouts(other) == "0.2 (embedding), 0.2 (residual), 0 (feed_forward)"


@pytest.mark.parametrize("command", ["bench", "train --dry-run", "train"])
def test_whatever_times_a_step_keeps_freed_memory(
    tfm: Tfm, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(update, "keep_freed_memory", lambda: kept.append(command))
    step = OurStep.__call__
    monkeypatch.setattr(OurStep, "__call__", lambda *given: step(*given) if kept else pytest.fail("not kept"))
    if command == "bench":
        assert bench(tfm, files).code == 0
    else:
        recipe = ["-c", files / "my.yaml", *TINY, "-s", "train.max_steps=2", "--run", tmp_path / "run"]
        assert tfm(*command.split(), *recipe).code == 0
    assert kept


def test_our_side_keeps_freed_memory_and_the_other_has_what_the_system_does(
    tfm: Tfm, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: list[str] = []
    monkeypatch.setattr(bench_training, "keep_freed_memory", lambda: settings.append("kept"))
    monkeypatch.setattr(bench_training, "give_back_freed_memory", lambda: settings.append("given back"))
    seen: list[tuple[type, str]] = []
    for side in (OurStep, TorchStep):
        step = side.__call__

        def looked_at(self, *given, step=step):
            value = step(self, *given)
            seen.append((type(self), settings[-1]))
            return value

        monkeypatch.setattr(side, "__call__", looked_at)
    assert "torch's has glibc's defaults" in bench(tfm, files).out.decode()
    timed = seen[2 * bench_training.CHECKED_STEPS :]  # the first ones only compare losses
    assert set(timed) == {(OurStep, "kept"), (TorchStep, "given back")}


def test_sides_that_differ_are_a_failure_and_not_timed(tfm: Tfm, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_model, "copy_weights", lambda twins: None)
    done = bench(tfm, files, "--json")
    assert (done.code, done.out) == (1, b"")
    assert "do not train the same model" in done.err
    assert "step" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", "--heads", "4"], "--heads means nothing with --train"),
        (["--train", "--flash"], "--flash means nothing with --train"),
        (["--steps", "3"], "--steps means nothing without --train"),
        (["-c", "base.yaml"], "--config means nothing without --train"),
        (["--train", "-c", "none.yaml"], "no recipe"),
        (["--train", "-s", "model.nonsense=1"], "model.nonsense"),
        (["--train", "-s", "train.amp=fp16"], "fp16"),
        (["--train", "--device", "tpu"], "tpu"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nonsense_is_the_users_mistake(tfm: Tfm, arguments: list[str], message: str) -> None:
    done = tfm("bench", *arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in " ".join(done.err.split())


def test_a_model_that_torch_lacks_is_refused(tfm: Tfm, files: Path) -> None:
    done = bench(tfm, files, "-s", "model.activation=swiglu")
    assert (done.code, "swiglu" in done.err) == (2, True)


def test_what_torchs_parts_have_not_is_set_aside_and_said() -> None:
    told: list[str] = []
    overrides = ("train.optimizer=muon", "train.r_drop=5", "train.checkpointing=layer")
    config = bench_training._config(bench_training.TrainingBenchRequest(overrides=overrides), told.append)
    assert (config.train.optimizer, config.train.r_drop, config.train.checkpointing) == ("adamw", 0.0, "none")
    assert [note.partition(": ")[2] for note in told] == ["train.optimizer, train.r_drop, train.checkpointing"]


def test_the_default_is_the_phrasebook_with_a_tiny_model() -> None:
    config = bench_training._config(bench_training.TrainingBenchRequest(), pytest.fail)
    shape, train = config.model, config.train
    assert (config.data.corpus, config.tokenizer.vocab_size, train.batch_tokens) == ("phrasebook", 4000, 2048)
    assert (shape.encoder_layers, shape.decoder_layers, shape.d_model, shape.n_heads, shape.d_ff) == (4, 4, 128, 4, 256)


@pytest.mark.parametrize(
    "other",
    [["--plot", "x.svg"], ["--flash"], ["--repeats", "3"], ["--heads", "2"], ["--dtype", "float32"], ["--window", "9"]],
    ids=lambda words: words[0],
)
def test_step_memory_refuses_what_belongs_to_other_measurements(tfm: Tfm, other: list[str]) -> None:
    done = tfm("bench", "--step-memory", *other)
    assert (done.code, done.out) == (2, b"")
    assert f"{other[0]} means nothing with --step-memory" in done.err
