"""``tfm bench --train``: our training step beside the same step made of torch's parts.

Here the two sides are put together from a recipe; how they are measured is in ``benchmark/``.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from transformer_cli.benchmark.early_end import finished_kept
from transformer_cli.benchmark.parts import part, time_by_part
from transformer_cli.benchmark.products import product_rates
from transformer_cli.benchmark.torch_model import TorchStep, TorchTransformer, torch_settings
from transformer_cli.benchmark.training import (
    Block,
    Speeds,
    StepReport,
    alternate,
    largest_difference,
    step_flops,
)
from transformer_cli.checkpoint import build_model
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.config import Config, ModelConfig, TrainConfig
from transformer_cli.data.batching import Batch, collate
from transformer_cli.errors import UserError
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.model.transformer import Transformer
from transformer_cli.recipe import load_recipe
from transformer_cli.runtime import Runtime, give_back_freed_memory, keep_freed_memory, seed_stream, stream_seed
from transformer_cli.training.data_order import DataOrder, Position
from transformer_cli.training.optimizer import build_optimizers
from transformer_cli.training.update import Updater
from transformer_cli.wording import counted

Window = list[Batch]

#: Without a recipe: the phrasebook with the shape that the literature calls Tiny for 29,000 pairs (Wu et al. 2021).
_TINY = ["tokenizer.vocab_size=4000", "model.encoder_layers=4", "model.decoder_layers=4"]
CHECKED_STEPS = 20
_PROFILED_STEPS = 3
#: AdamW, cross-entropy and nothing else.
_PLAIN: dict[str, Any] = {
    "optimizer": "adamw",
    "ema_decay": None,
    "r_drop": 0.0,
    "simcut": 0.0,
    "distill": 0.0,
    "teachers": [],
    "checkpointing": "none",
}
_RATE = 1e-5  # of the timed steps: the time of an update does not depend on it, and nothing can diverge
#: Said in the report.
_MEANINGS = {
    "tokens_per_second": "target tokens without padding, ours, batches made beforehand; medians over blocks after "
    "warm-up, spreads: interquartile range",
    "ratio_to_torch_nn": "speed / speed of torch.nn's layers, F.cross_entropy and AdamW on the same batches, block by "
    "block in turn: 2 is twice as fast; our side keeps freed memory, as tfm train does, torch's has glibc's defaults",
    "gemm_share": "floating-point operations of the forward pass x 3 per second / the best rate of square float32 "
    "products here",
    "time_by_part": "torch's profiler, one micro-batch at a time in one thread; its own time is in it",
}
_SHOWN_AS = {
    "tokens_per_second": "speed",
    "ratio_to_torch_nn": "ratio",
    "gemm_share": "products",
    "time_by_part": "parts",
}


@dataclass(frozen=True)
class TrainingBenchRequest:
    """What the command line asked for."""

    config: str | None = None
    overrides: tuple[str, ...] = ()
    steps: int = 10  # in a block
    repeats: int = 5  # blocks of each side
    device: str = "auto"


class OurStep:
    """One update of the weights, as the trainer does it."""

    def __init__(self, model: Transformer, config: TrainConfig, runtime: Runtime) -> None:
        self.updater = Updater(model.to(runtime.device).train(), config, runtime)
        self._seed, self._done = config.seed, 0

    def __call__(self, window: Sequence[Batch], rate: float) -> float:
        """Update the weights by the batches of a window; return its loss per target token."""
        keep_freed_memory()  # the other side gives it back
        self._done += 1
        loss = accumulate(self.updater, window, (self._seed, "dropout", self._done))
        with part("optimizer"):
            norm = self.updater.unscale_and_clip()
        value, _ = torch.stack([loss, norm]).tolist()  # the trainer looks at both before it steps
        with part("optimizer"):
            self.updater.step(rate, self._done)
        return float(value)


def accumulate(updater: Updater, window: Sequence[Batch], key: tuple[Any, ...]) -> Tensor:
    """Add up the gradients of a window; return its loss per token. The one place that knows how the trainer does it.

    Args:
        updater: holds the model.
        window: batches on the device.
        key: of the random stream of this step.
    """
    seeds = [stream_seed(*key, number) for number in range(len(window))]
    return updater.accumulate(window, seeds, sum(batch.n_tokens for batch in window))


def run_training_bench(request: TrainingBenchRequest, note: Callable[[str], None]) -> StepReport:
    """Check that both sides train the same model, then time them in turn.

    Ctrl-C ends it early, once a block is finished: the report then holds the blocks that were.

    Args:
        request: which recipe, how long.
        note: told what is being done, a line each.

    Raises:
        UserError: the recipe cannot be used, or torch's parts cannot make its model.
        TfmError: the two sides differ; nothing is timed.
    """
    config = _config(request, note)
    torch_settings(config.model)  # refuses what torch's layers cannot be, before anything is prepared
    runtime = Runtime.resolve(request.device, config.train.amp)
    if runtime.amp_dtype is torch.float16:
        raise UserError("train.amp fp16 is not compared", expected="off, bf16 or auto")
    experiment = prepare(config, note)
    windows = _windows(experiment, max(CHECKED_STEPS, request.steps * request.repeats), runtime)
    note(f"comparing the losses of {CHECKED_STEPS} steps without dropout")
    difference = _check(experiment, windows[:CHECKED_STEPS], runtime)
    ours, theirs = _sides(experiment.model, config, runtime)
    note(f"timing {counted(request.repeats, 'block')} of {counted(request.steps, 'step')} of each side")
    blocks: list[Block] = []
    rates: dict[int, float] = {}
    shares: dict[str, float] | None = None
    with finished_kept(blocks) as end:
        for block in _blocks(ours, theirs, windows, request, runtime):
            blocks.append(block)  # noqa: PERF402 - what came before Ctrl-C is kept
        note("timing square products")
        rates = product_rates(runtime.device, runtime.threads)
        note("watching where the time goes")
        shares = _shares(ours, windows[0], runtime)
    device, settings = str(runtime.describe()["device"]), _settings(request, experiment, runtime)
    figures = (Speeds.of(blocks), difference, rates, shares)
    return StepReport(device, torch.__version__, settings, *figures, end.cause is not None)


def print_report(report: StepReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(as_json(report))
    else:
        render(report, Console())


def as_json(report: StepReport) -> str:
    """Return the report as one JSON document."""
    return json_text(report.document(), indent=1)


def render(report: StepReport, console: Console) -> None:
    """Print the figures with all that they must be read with."""
    what, speeds, found = report.settings, report.speeds, report.document()
    lines = [
        f"{report.device}, {counted(int(str(what['threads'])), 'thread')}, torch {report.torch}",
        f"{what['recipe']}: {what['model']}, {what['batch_tokens']} tokens x {what['accumulate']}, amp {what['amp']}\n",
        f"speed       {speeds.tokens_per_second:,.0f} target tokens/s (spread {speeds.tokens_per_second_spread:,.0f})",
        f"torch.nn    {speeds.tokens_per_second_torch_nn:,.0f} target tokens/s",
        f"ratio       {speeds.ratio_to_torch_nn:.2f} (spread {speeds.ratio_spread:.2f})",
        *_products(report),
        f"same model  {CHECKED_STEPS} losses without dropout differ by {report.largest_loss_difference:.1e} at most",
        *([""] + [f"{name:<14}{share:>6.1%}" for name, share in (report.time_by_part or {}).items()]),
        "",
        *(f"{_SHOWN_AS[name]:<12}{meaning}" for name, meaning in _MEANINGS.items() if found[name] is not None),
    ]
    if report.interrupted:
        done = f"{len(speeds.ratios)} of {counted(int(str(what['repeats'])), 'block')}"
        lines.append(f"interrupted: the figures above are of what was finished, {done}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _products(report: StepReport) -> list[str]:
    """Return how near the step comes to the best product, as a line; none if products were not timed."""
    if report.gemm_share is None:
        return []
    best = max(report.product_rates, key=lambda size: report.product_rates[size])
    rate, reached = report.product_rates[best] / 1e9, report.speeds.flops_per_second / 1e9
    return [f"products    {reached:,.1f} GFLOP/s, {report.gemm_share:.0%} of {rate:,.1f} (square products of {best})"]


def _config(request: TrainingBenchRequest, note: Callable[[str], None]) -> Config:
    """Load the recipe, without what torch's parts do not have: both sides do the same work."""
    name, overrides = (request.config, []) if request.config is not None else ("base.yaml", _TINY)
    config = load_recipe(name, [*overrides, *request.overrides])
    train = config.train.model_copy(update=_PLAIN)
    if changed := [f"train.{key}" for key in _PLAIN if getattr(train, key) != getattr(config.train, key)]:
        note(f"set aside, because torch's parts have nothing like it: {', '.join(changed)}")
    return config.model_copy(update={"train": train})


def _windows(experiment: Experiment, count: int, runtime: Runtime) -> list[Window]:
    """Return the first windows of the recipe's data, as batches on the device; short data are gone through again."""
    settings = experiment.config.train
    order = DataOrder(experiment.train_pairs, settings.batch_tokens, settings.accumulate, settings.seed)
    at, windows = Position(), []
    for _ in range(count):
        window = order.window(at)
        windows.append([collate(window.pairs, rows).to(runtime.device) for rows in window.batches])
        at = order.after(at)
    return windows


def _check(experiment: Experiment, windows: Sequence[Window], runtime: Runtime) -> float:
    """Return the largest difference of the losses of both sides, without dropout and in float32."""
    model = experiment.config.model
    no_dropout = {name: 0.0 for name in type(model).model_fields if name.endswith("dropout")}
    settings = experiment.config.model_copy(update={"model": model.model_copy(update=no_dropout)})
    seed_stream(settings.train.seed, "weights")
    sides = _sides(build_model(settings, experiment.tokenizer), settings, replace(runtime, amp_dtype=None))
    warmup = max(1, settings.train.warmup_steps)
    return largest_difference(*sides, windows, lambda number: settings.train.lr * min(1.0, number / warmup))


def _sides(model: Transformer, config: Config, runtime: Runtime) -> tuple[OurStep, TorchStep]:
    """Return both steps, each with a model of its own that starts from the weights of ``model``."""
    settings = config.train
    twin = TorchTransformer(model, config.model).to(runtime.device)
    theirs = TorchStep(
        twin,
        *build_optimizers(twin, settings),
        label_smoothing=settings.label_smoothing,
        clip_norm=settings.clip_norm,
        autocast=runtime.autocast(),
    )
    return OurStep(copy.deepcopy(model), settings, runtime), theirs


def _blocks(
    ours: OurStep, theirs: TorchStep, windows: Sequence[Window], request: TrainingBenchRequest, runtime: Runtime
) -> Iterator[Block]:
    def plain(window: Sequence[Batch], rate: float) -> float:
        give_back_freed_memory()
        return theirs(window, rate)

    counting = copy.deepcopy(theirs.model).to("meta")
    steps = request.steps
    return alternate(
        ours,
        plain,
        [windows[i * steps : (i + 1) * steps] for i in range(request.repeats)],
        _RATE,
        flops=lambda window: step_flops(counting, window),
        wait=torch.cuda.synchronize if runtime.device.type == "cuda" else lambda: None,
    )


def _shares(ours: OurStep, window: Window, runtime: Runtime) -> dict[str, float] | None:
    if runtime.device.type != "cpu":
        return None  # the profiler's times are those of the processor, which only gives orders
    return time_by_part(ours.updater.model, lambda: ours(window[:1], _RATE), _PROFILED_STEPS)


def _dropouts(shape: ModelConfig) -> str:
    places = shape.dropouts()
    if len(set(places.values())) == 1:
        return f"{places['residual']:g}"
    return ", ".join(f"{p:g} ({place})" for place, p in places.items())


def _settings(request: TrainingBenchRequest, experiment: Experiment, runtime: Runtime) -> dict[str, object]:
    config, tokenizer = experiment.config, experiment.tokenizer
    shape = config.model
    return {
        "recipe": request.config or f"base.yaml with {', '.join(_TINY)}",
        "overrides": list(request.overrides),
        "model": f"{shape.encoder_layers}+{shape.decoder_layers} layers, d_model {shape.d_model}, "
        f"{shape.n_heads} heads, d_ff {shape.d_ff}, dropout {_dropouts(shape)}, vocabulary {tokenizer.tgt_vocab_size}",
        "parameters": sum(parameter.numel() for parameter in experiment.model.parameters()),
        "batch_tokens": config.train.batch_tokens,
        "accumulate": config.train.accumulate,
        "steps": request.steps,
        "warm_up": request.steps,
        "repeats": request.repeats,
        **runtime.describe(),
        **_MEANINGS,
    }
