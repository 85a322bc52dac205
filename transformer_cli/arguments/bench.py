"""``tfm bench``: what can be asked for, and which wishes belong to which measurement."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from transformer_cli.arguments.shared import AsJson, Debug, Device, Overrides, Quiet, Run
from transformer_cli.commands.notes import Note, note_on_stderr
from transformer_cli.commands.run_choice import chosen_run


class Engine(StrEnum):
    """Whose decoding stands beside ours."""

    ctranslate2 = "ctranslate2"


SeqLen = Annotated[
    list[str] | None,
    typer.Option("--seq-len", help="Length, or 256..8192: from there to there by doubling; repeatable. (512 and 1024)"),
]
Kernels = Annotated[
    str | None,
    typer.Option("--kernels", help="naive, sdpa, flash, efficient, cudnn, math, with commas, or all. (naive,sdpa)"),
]
Padding = Annotated[float, typer.Option("--padding", min=0, max=0.99, help="Share of hidden keys at the end.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw time and memory against length: FILE.png or .svg.")]
Flash = Annotated[bool, typer.Option("--flash", help="Measure torch's flash kernel too.")]
Heads = Annotated[int, typer.Option("--heads", min=1, help="Attention heads.")]
HeadDim = Annotated[int, typer.Option("--head-dim", min=1, help="Width of a head.")]
Sequences = Annotated[int, typer.Option("--batch", min=1, help="Sequences in a batch.")]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", help="float32, bfloat16 or float16. (default: float32 on a CPU, else bfloat16)"),
]
Causal = Annotated[bool, typer.Option("--causal", help="Hide later positions, as in the decoder.")]
WeightDropout = Annotated[float, typer.Option("--dropout", min=0, max=0.99, help="Dropout on attention weights.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Measurements at least.")]
MeasureTraining = Annotated[
    bool, typer.Option("--train", help="Measure the training step instead, beside one made of torch's layers.")
]
MeasuredRecipe = Annotated[
    str | None, typer.Option("--config", "-c", help="--train: recipe. (default: the phrasebook, a 4+4-layer model)")
]
Steps = Annotated[int, typer.Option("--steps", min=1, help="--train: steps in a measurement.")]

MeasureDecoding = Annotated[
    bool, typer.Option("--decode", help="Measure how fast a run translates instead, greedily and with a beam of 5.")
]
OtherEngine = Annotated[
    Engine | None, typer.Option("--engine", help="--decode: beside it, with the same weights. (only ctranslate2)")
]
Src = Annotated[Path | None, typer.Option("--src", help="--decode: lines to translate. (default: the run's test set)")]
Ref = Annotated[Path | None, typer.Option("--ref", help="--decode: their references.")]

_OF_ATTENTION = {
    *("seq_len", "kernels", "flash", "heads", "head_dim", "batch", "dtype", "causal", "padding", "dropout", "plot")
}
_OF_TRAINING = {"config", "overrides", "steps"}
_OF_DECODING = {"run", "engine", "src", "ref"}


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
    plot: Plot = None,
    repeats: Repeats = 10,
    train: MeasureTraining = False,
    config: MeasuredRecipe = None,
    overrides: Overrides = None,
    steps: Steps = 10,
    decode: MeasureDecoding = False,
    run: Run = None,
    engine: OtherEngine = None,
    src: Src = None,
    ref: Ref = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure attention (time, memory and error of the kernels), the training step (--train) or decoding (--decode)."""
    note = note_on_stderr(quiet or as_json)
    if decode:
        _refuse_given(context, _OF_ATTENTION | _OF_TRAINING | {"train", "device"}, "with --decode")
        _bench_decoding(chosen_run(run, note), engine, (src, ref), repeats, note, as_json)
        return
    _refuse_given(context, _OF_DECODING, "without --decode")
    if train:
        _refuse_given(context, _OF_ATTENTION, "with --train")
        from transformer_cli.commands import bench_training

        request = bench_training.TrainingBenchRequest(config, tuple(overrides or ()), steps, repeats, device)
        bench_training.print_report(bench_training.run_training_bench(request, note), as_json)
        return
    _refuse_given(context, _OF_TRAINING, "without --train")
    shape = {"heads": heads, "head_dim": head_dim, "batch": batch, "dtype": dtype, "causal": causal, "padding": padding}
    _bench_attention(
        seq_len, kernels, flash, plot, note, as_json, **shape, dropout=dropout, device=device, repeats=repeats
    )


def _bench_attention(
    seq_len: list[str] | None,
    kernels: str | None,
    flash: bool,
    plot: Path | None,
    note: Note,
    as_json: bool,
    **shape: Any,
) -> None:
    from transformer_cli.commands import bench as command
    from transformer_cli.commands import bench_plot

    if plot is not None:
        bench_plot.check_plot(plot)
    lengths = command.lengths(seq_len) if seq_len else command.DEFAULT_LENGTHS
    report = command.run_bench(command.BenchRequest(lengths, command.chosen_kernels(kernels, flash), **shape), note)
    command.print_report(report, as_json)
    if plot is not None and report.rows:
        bench_plot.write_plot(report, plot)
    if report.interrupted:
        raise typer.Exit(130)


def _bench_decoding(
    run: Path, engine: Engine | None, text: tuple[Path | None, Path | None], repeats: int, note: Note, as_json: bool
) -> None:
    from transformer_cli.commands import bench_decoding as command

    request = command.DecodingBenchRequest(run, *text, engine is not None, repeats)
    command.print_report(command.run_decoding_bench(request, note), as_json)


def _refuse_given(context: typer.Context, names: set[str], where: str) -> None:
    """Refuse options that mean nothing here, but only if they were given: their defaults harm nobody.

    Raises:
        typer.BadParameter: one was.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is not None and source.name != "DEFAULT":
            raise typer.BadParameter(f"{parameter.opts[0]} means nothing {where}")
