"""``tfm bench``: what can be asked for, and which wishes belong to which measurement."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Device, Overrides, Quiet, Run, Shortlist
from transformer_cli.commands.shared.notes import Note, note_on_stderr, written
from transformer_cli.commands.shared.run_choice import chosen_run
from transformer_cli.errors import UserError

_attention_option = partial(typer.Option, rich_help_panel="Attention")


class Engine(StrEnum):
    """Whose decoding stands beside ours."""

    ctranslate2 = "ctranslate2"


SeqLen = Annotated[
    list[str] | None,
    _attention_option(
        "--seq-len",
        help="Lengths, with commas; 256..8192: from there to there by doubling. (512,1024; --step-memory: 2048)",
    ),
]
Kernels = Annotated[
    str | None,
    _attention_option(
        "--kernels",
        help="naive, sdpa, flash, efficient, cudnn, math, window, dilated, bigbird, blocks, linformer, with commas, "
        "or all. (naive,sdpa)",
    ),
]
Padding = Annotated[float, _attention_option("--padding", min=0, max=0.99, help="Share of hidden keys at the end.")]
Plot = Annotated[
    Path | None, _attention_option("--plot", help="Draw time and memory against length: FILE.png or .svg.")
]
Flash = Annotated[bool, _attention_option("--flash", help="Measure torch's flash kernel too.")]
Heads = Annotated[int, _attention_option("--heads", min=1, max=65_536, help="Attention heads.")]
HeadDim = Annotated[int, _attention_option("--head-dim", min=1, max=65_536, help="Width of a head.")]
Sequences = Annotated[int, _attention_option("--batch", min=1, max=65_536, help="Sequences in a batch.")]
Dtype = Annotated[
    str | None,
    _attention_option("--dtype", help="float32, bfloat16 or float16. (default: float32 on a CPU, else bfloat16)"),
]
Causal = Annotated[bool, _attention_option("--causal", help="Hide later positions, as in the decoder.")]
WeightDropout = Annotated[float, _attention_option("--dropout", min=0, max=0.99, help="Dropout on attention weights.")]
Window = Annotated[
    int | None,
    _attention_option(
        "--window", min=1, help="window, dilated, bigbird: keys on each side; blocks: tokens of a block. (256)"
    ),
]
Rank = Annotated[int | None, _attention_option("--rank", min=1, help="linformer: mixtures of keys. (64)")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Measurements at least.")]
MeasureTraining = Annotated[
    bool, typer.Option("--train", help="Measure the training step instead, beside one made of torch's layers.")
]
MeasureStepMemory = Annotated[
    bool,
    typer.Option("--step-memory", help="Measure the peak memory of a whole training step instead, naive and flash."),
]
MeasuredRecipe = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        help="Recipe of --train (default: the phrasebook, a 4+4-layer model) or --step-memory (width 512, 6+6 layers).",
    ),
]
Steps = Annotated[int, typer.Option("--steps", min=1, max=1000, help="--train: steps in a measurement.")]

MeasureDecoding = Annotated[
    bool, typer.Option("--decode", help="Measure how fast a run translates instead, greedily and with a beam of 5.")
]
OtherEngine = Annotated[
    Engine | None, typer.Option("--engine", help="--decode: beside it, with the same weights. (only ctranslate2)")
]
Src = Annotated[
    Path | None, typer.Option("--src", help="--decode: lines to translate. (default: the run's test set, else dev set)")
]
Ref = Annotated[Path | None, typer.Option("--ref", help="--decode: their references.")]

#: What belongs to each measurement; ``device``, ``repeats`` and how to print are for nearly all.
_OPTIONS = {
    "": {
        *("seq_len", "kernels", "flash", "heads", "head_dim", "batch", "dtype", "causal", "padding", "dropout", "plot"),
        *("window", "rank", "device", "repeats"),
    },
    "--train": {"train", "config", "overrides", "steps", "device", "repeats"},
    "--step-memory": {"step_memory", "config", "overrides", "seq_len", "kernels", "batch", "device"},
    "--decode": {"decode", "run", "engine", "src", "ref", "shortlist", "repeats"},
}


def bench(
    context: typer.Context,
    seq_len: SeqLen = None,
    kernels: Kernels = None,
    flash: Flash = False,
    heads: Heads = 8,
    head_dim: HeadDim = 64,
    batch: Sequences = 1,
    dtype: Dtype = None,
    causal: Causal = False,
    padding: Padding = 0.0,
    dropout: WeightDropout = 0.0,
    window: Window = None,
    rank: Rank = None,
    plot: Plot = None,
    repeats: Repeats = 5,
    train: MeasureTraining = False,
    config: MeasuredRecipe = None,
    overrides: Overrides = None,
    steps: Steps = 10,
    step_memory: MeasureStepMemory = False,
    decode: MeasureDecoding = False,
    run: Run = None,
    engine: OtherEngine = None,
    src: Src = None,
    ref: Ref = None,
    shortlist: Shortlist = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure attention kernels, or the training step (--train, --step-memory), or decoding (--decode)."""
    note = note_on_stderr(quiet)
    _refuse_others(context, "--decode" if decode else "--step-memory" if step_memory else "--train" if train else "")
    if decode:
        _bench_decoding(chosen_run(run, note), engine, (src, ref), shortlist, repeats, note, as_json)
    elif step_memory:
        _bench_step_memory(seq_len, kernels, config, overrides, batch, device, note, as_json)
    elif train:
        _bench_training(config, overrides, steps, repeats, device, note, as_json)
    else:
        masks = {"causal": causal, "padding": padding, "dropout": dropout}
        shape = {"heads": heads, "head_dim": head_dim, "batch": batch, "dtype": dtype, **masks}
        sizes = {"window": window, "rank": rank}
        _bench_attention(seq_len, kernels, flash, sizes, plot, note, as_json, **shape, device=device, repeats=repeats)


def _bench_attention(
    seq_len: list[str] | None,
    kernels: str | None,
    flash: bool,
    sizes: dict[str, int | None],
    plot: Path | None,
    note: Note,
    as_json: bool,
    **shape: Any,
) -> None:
    from transformer_cli.commands.bench import attention as command
    from transformer_cli.commands.bench import plot as bench_plot

    if plot is not None:
        bench_plot.check_plot(plot)
    lengths = command.lengths(seq_len) if seq_len else command.DEFAULT_LENGTHS
    chosen = command.chosen_kernels(kernels, flash)
    request = command.BenchRequest(lengths, chosen, **command.told_sizes(chosen, sizes), **shape)
    report = command.run_bench(request, note)
    command.print_report(report, as_json)
    if plot is not None and report.rows:
        bench_plot.write_plot(report, plot)
        note(written(plot))
    if report.interrupted:
        raise typer.Exit(130)


def _bench_step_memory(
    seq_len: list[str] | None,
    kernels: str | None,
    config: str | None,
    overrides: list[str] | None,
    batch: int,
    device: str,
    note: Note,
    as_json: bool,
) -> None:
    from transformer_cli.commands.bench import step_memory as command
    from transformer_cli.commands.bench.attention import lengths

    found = lengths(seq_len) if seq_len else command.DEFAULT_LENGTHS
    request = command.StepMemoryRequest(
        found, command.chosen_kernels(kernels), batch, config, tuple(overrides or ()), device
    )
    report = command.run_step_memory(request, note)
    command.print_report(report, as_json)
    if report.interrupted:
        raise typer.Exit(130)


def _bench_training(
    config: str | None,
    overrides: list[str] | None,
    steps: int,
    repeats: int,
    device: str,
    note: Note,
    as_json: bool,
) -> None:
    from transformer_cli.commands.bench import training as command

    request = command.TrainingBenchRequest(config, tuple(overrides or ()), steps, repeats, device)
    report = command.run_training_bench(request, note)
    command.print_report(report, as_json)
    if report.interrupted:
        raise typer.Exit(130)


def _bench_decoding(
    run: Path,
    engine: Engine | None,
    text: tuple[Path | None, Path | None],
    shortlist: bool | None,
    repeats: int,
    note: Note,
    as_json: bool,
) -> None:
    from transformer_cli.commands.bench import decoding as command
    from transformer_cli.commands.bench.decoding_table import print_report

    request = command.DecodingBenchRequest(run, *text, engine is not None, repeats, shortlist)
    report = command.run_decoding_bench(request, note)
    print_report(report, as_json)
    if report.ended_by is not None:
        raise report.ended_by


def _refuse_others(context: typer.Context, chosen: str) -> None:
    """Refuse options of other measurements, but only if they were given: their defaults harm nobody.

    Raises:
        UserError: one was.
    """
    others = set().union(*_OPTIONS.values()) - _OPTIONS[chosen]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in others and source is not None and source.name != "DEFAULT":
            owners = " or ".join(owner for owner, names in _OPTIONS.items() if name in names and owner)
            where = f"with {chosen}" if chosen else f"without {owners}"
            raise UserError(f"{parameter.opts[0]} means nothing {where}")
