"""The command line: parse, call one function, print its report.

Nothing heavy is imported here: torch, datasets, sacrebleu, numpy and the configuration are loaded by the command
that needs them, so that ``tfm --help`` answers at once. Results go to stdout, everything else to stderr.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli import __version__
from transformer_cli.commands.boundary import run_guarded
from transformer_cli.commands.options import (
    AsJson,
    BatchSize,
    BatchTokens,
    BeamSize,
    Causal,
    Choice,
    Choose,
    Debug,
    Device,
    Dtype,
    Flash,
    Format,
    HeadDim,
    Heads,
    LengthPenalty,
    MaxRatio,
    MeasuredRecipe,
    MeasureTraining,
    Mono,
    Overrides,
    OwnPairs,
    PairsOutput,
    Quiet,
    Repeats,
    Run,
    Runs,
    SeqLen,
    Sequences,
    Steps,
    Tag,
    WeightDropout,
    refuse_given,
)
from transformer_cli.commands.text_arguments import TextCommand

app = typer.Typer(
    name="tfm",
    help="Train, run, score and measure a Transformer translator.",
    epilog="Start here: tfm train --config base.yaml, then tfm translate 'Where is the station?'",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"tfm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    config: Annotated[
        str | None, typer.Option("--config", "-c", help="Recipe: a YAML file, or the name of a shipped one.")
    ] = None,
    overrides: Overrides = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder to write. (default: runs/<recipe>-<UTC time>)")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run (--run, or the newest one).")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run folder.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print configuration, data, parameters and a time estimate; train nothing."),
    ] = False,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a translator from a recipe, or continue a run."""
    from transformer_cli.commands import plan
    from transformer_cli.commands import train as command

    request = command.TrainRequest(config, tuple(overrides or ()), run, resume, overwrite, device, quiet)
    if dry_run and resume:
        raise typer.BadParameter("--dry-run plans a new run; it does not go with --resume")
    if dry_run:
        plan.print_plan(plan.plan_training(request), as_json)
    else:
        command.print_report(command.run_training(request), as_json)


@app.command(cls=TextCommand)
def translate(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Sentences; without any, --input or stdin is read.")
    ] = None,
    run: Run = None,
    input_path: Annotated[
        str | None, typer.Option("--input", "-i", help="File to translate line by line (.gz too); - is stdin.")
    ] = None,
    output_path: Annotated[str, typer.Option("--output", "-o", help="File to write (.gz too); - is stdout.")] = "-",
    to: Annotated[str | None, typer.Option("--to", help="Target language, if the run has data.more_targets.")] = None,
    beam_size: BeamSize = None,
    n_best: Annotated[int, typer.Option("--n-best", min=1, help="Translations per line, at most the beam size.")] = 1,
    length_penalty: LengthPenalty = None,
    max_length_ratio: Annotated[
        float | None, typer.Option("--max-length-ratio", min=0.01, help="Target tokens per source token (plus 10).")
    ] = None,
    min_length: Annotated[
        int | None, typer.Option("--min-length", min=0, help="Least target tokens of a translation.")
    ] = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    output_format: Annotated[
        Format, typer.Option("--format", help="Lines of text, of tab-separated values, or of JSON.")
    ] = Format.text,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate text, a file or stdin: one line in, one line out, in order."""
    from transformer_cli.commands import translate as command

    if as_json and output_format is not Format.text:
        raise typer.BadParameter("--json prints one document; it does not go with --format")
    command.run_translate(
        command.TranslateRequest(
            texts=tuple(text or ()),
            run=run,
            input_path=input_path,
            output_path=output_path,
            search={
                "beam_size": beam_size,
                "length_penalty": length_penalty,
                "max_length_ratio": max_length_ratio,
                "min_length": min_length,
                "batch_size": batch_size,
                "batch_tokens": batch_tokens,
            },
            n_best=n_best,
            output_format="json" if as_json else output_format.value,
            device=device,
            quiet=quiet,
            to=to,
        )
    )


@app.command("eval")
def evaluate(
    run: Run = None,
    split: Annotated[
        str | None, typer.Option("--split", help="test, dev or train; handwritten of the phrasebook. (default: test)")
    ] = None,
    src: Annotated[Path | None, typer.Option("--src", help="Source file to translate, instead of a split.")] = None,
    ref: Annotated[list[Path] | None, typer.Option("--ref", help="Reference file; repeatable.")] = None,
    hyp: Annotated[Path | None, typer.Option("--hyp", help="Score this file; nothing is translated.")] = None,
    metrics: Annotated[str, typer.Option("--metrics", help="Some of bleu,chrf,ter.")] = "bleu",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    tokenize: Annotated[
        str | None, typer.Option("--tokenize", help="BLEU's tokenizer. (default: that of the target language)")
    ] = None,
    tgt_lang: Annotated[
        str | None, typer.Option("--tgt-lang", help="Target language. (default: the run's, or the reference's ending)")
    ] = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", min=0, help="Resamples of the 95 % confidence interval; 0: none.")
    ] = 1000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the translations here.")] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", help="Hypothesis file or run: paired bootstrap test against it.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="BLEU by length, and the ten worst lines.")] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="The score of the nearest training sentences' translations beside it.")
    ] = False,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score a run on a split, on your files, or score a file of translations."""
    from rich.console import Console

    from transformer_cli.commands import eval as command
    from transformer_cli.commands.notes import note_on_stderr

    request = command.EvalRequest(
        run=run,
        split=split,
        src=src,
        refs=tuple(ref or ()),
        hyp=hyp,
        metrics=tuple(metrics.replace(" ", "").split(",")),
        lowercase=lowercase,
        tokenize=tokenize,
        tgt_lang=tgt_lang,
        n_bootstrap=bootstrap,
        output=output,
        beam_size=beam_size,
        length_penalty=length_penalty,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        device=device,
        compare=compare,
        details=details,
        baseline=baseline,
    )
    report = command.run_eval(request, note_on_stderr(quiet))
    if as_json:
        typer.echo(command.as_json(report))
    else:
        command.render(report, Console())


@app.command()
def augment(
    runs: Runs,
    output: PairsOutput,
    mono: Mono = None,
    pairs: OwnPairs = None,
    tag: Tag = None,
    choose: Choice = Choose.score,
    max_ratio: MaxRatio = 2.0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make more training pairs: back-translate target text, or distil your own pairs."""
    from transformer_cli.commands import augment as command

    search = {"beam_size": beam_size, "length_penalty": length_penalty}
    report = command.run_augment(
        command.AugmentRequest(
            mono=mono,
            pairs=pairs,
            runs=tuple(runs),
            output=output,
            search=search | {"batch_size": batch_size, "batch_tokens": batch_tokens},
            tag=tag,
            choose=choose.value,
            max_ratio=max_ratio,
            device=device,
            quiet=quiet,
        )
    )
    if as_json:
        typer.echo(command.as_json(report))


@app.command()
def bench(
    context: typer.Context,
    seq_len: SeqLen = None,
    flash: Flash = False,
    heads: Heads = 8,
    head_dim: HeadDim = 64,
    batch: Sequences = 1,
    dtype: Dtype = None,
    causal: Causal = False,
    dropout: WeightDropout = 0.0,
    repeats: Repeats = 10,
    train: MeasureTraining = False,
    config: MeasuredRecipe = None,
    overrides: Overrides = None,
    steps: Steps = 10,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure attention (time, memory and error of the kernels), or the training step (--train)."""
    from rich.console import Console

    from transformer_cli.commands.notes import note_on_stderr

    attention = {"seq_len", "flash", "heads", "head_dim", "batch", "dtype", "causal", "dropout"}
    unused, where = (attention, "with") if train else ({"config", "overrides", "steps"}, "without")
    refuse_given(context, unused, f"{where} --train")
    note = note_on_stderr(quiet or as_json)
    if train:
        from transformer_cli.commands import bench_training

        request = bench_training.TrainingBenchRequest(config, tuple(overrides or ()), steps, repeats, device)
        steps_report = bench_training.run_training_bench(request, note)
        if as_json:
            typer.echo(bench_training.as_json(steps_report))
        else:
            bench_training.render(steps_report, Console())
        return
    from transformer_cli.commands import bench as command

    report = command.run_bench(
        seq_lens=seq_len or command.DEFAULT_LENGTHS,
        flash=flash,
        heads=heads,
        head_dim=head_dim,
        batch=batch,
        dtype=dtype,
        causal=causal,
        dropout=dropout,
        device=device,
        repeats=repeats,
        note=note,
    )
    if as_json:
        typer.echo(command.as_json(report))
    else:
        command.render(report, Console())


@app.command()
def runs(
    root: Annotated[Path, typer.Argument(help="Folder of run folders.")] = Path("runs"),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the runs: date, languages, steps, dev BLEU, size, finished or not."""
    from transformer_cli.commands import runs as command

    command.print_runs(command.list_runs(root), root, as_json)


@app.command()
def init(
    src: Annotated[str, typer.Option("--src", help="Source text file, one sentence a line.")],
    tgt: Annotated[str, typer.Option("--tgt", help="Target text file, aligned line by line.")],
    src_lang: Annotated[
        str | None, typer.Option("--src-lang", help="Language code. (default: the file's ending)")
    ] = None,
    tgt_lang: Annotated[
        str | None, typer.Option("--tgt-lang", help="Language code. (default: the file's ending)")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Recipe to write.")] = Path("my.yaml"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing recipe.")] = False,
    debug: Debug = False,
) -> None:
    """Write a commented recipe for your own two text files."""
    from transformer_cli.commands import init as command

    typer.echo(command.write_recipe(src, tgt, src_lang, tgt_lang, output, overwrite))


def main(argv: list[str] | None = None) -> None:
    """Run ``tfm``; exit with 0, 1 (the run failed), 2 (the user's mistake) or 128 + a signal's number."""
    if argv is None and sys.getfilesystemencoding() != "utf-8":
        # LC_ALL=C: start anew in UTF-8 mode, or file names with other letters could not even be opened.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "transformer_cli", *sys.argv[1:]])
    arguments = _utf8_arguments() if argv is None else argv
    command = typer.main.get_command(app)
    debug = "--debug" in arguments
    sys.exit(run_guarded(lambda: command(arguments, prog_name="tfm", standalone_mode=False), debug=debug))


def _utf8_arguments() -> list[str]:
    """Return the arguments as text; bytes that are no UTF-8 arrive as surrogates and become U+FFFD."""
    return [os.fsencode(argument).decode("utf-8", "replace") for argument in sys.argv[1:]]


if __name__ == "__main__":
    main()
