"""``tfm eval``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import (
    AsJson,
    BatchSize,
    BatchTokens,
    BeamSize,
    Debug,
    Device,
    EarlyStopping,
    LengthNormalization,
    LengthPenalty,
    Quiet,
    Run,
    Shortlist,
    To,
)
from transformer_cli.commands.eval.request import MOST_RESAMPLES
from transformer_cli.commands.shared.notes import note_on_stderr

Split = Annotated[
    str | None, typer.Option("--split", help="test, dev or train; handwritten of the phrasebook. (default: test)")
]
Source = Annotated[Path | None, typer.Option("--src", help="Source file to translate, instead of a split.")]
References = Annotated[list[Path] | None, typer.Option("--ref", help="Reference file; repeatable.")]
Hypotheses = Annotated[Path | None, typer.Option("--hyp", help="Score this file; nothing is translated.")]
Metrics = Annotated[str, typer.Option("--metrics", help="Some of bleu,chrf,ter.")]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Ignore case.")]
Tokenize = Annotated[
    str | None, typer.Option("--tokenize", help="BLEU's tokenizer. (default: that of the target language)")
]
TgtLang = Annotated[
    str | None, typer.Option("--tgt-lang", help="Target language. (default: the run's, or the reference's ending)")
]
Bootstrap = Annotated[
    int,
    typer.Option("--bootstrap", min=0, max=MOST_RESAMPLES, help="Resamples of the 95 % confidence interval; 0: none."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the translations here.")]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="Hypothesis file or run: paired bootstrap test against it.")
]
Details = Annotated[bool, typer.Option("--details", help="BLEU by length, and the ten worst lines.")]
Baseline = Annotated[
    bool, typer.Option("--baseline", help="The score of the nearest training sentences' translations beside it.")
]

Calibrate = Annotated[bool, typer.Option("--calibrate", help="Fit the run's confidence to these lines: --split dev.")]


def evaluate(
    run: Run = None,
    split: Split = None,
    src: Source = None,
    refs: References = None,
    hyp: Hypotheses = None,
    to: To = None,
    metrics: Metrics = "bleu",
    lowercase: Lowercase = False,
    tokenize: Tokenize = None,
    tgt_lang: TgtLang = None,
    n_bootstrap: Bootstrap = 1000,
    output: Output = None,
    compare: Compare = None,
    details: Details = False,
    baseline: Baseline = False,
    calibrate: Calibrate = False,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    length_normalization: LengthNormalization = None,
    early_stopping: EarlyStopping = None,
    shortlist: Shortlist = None,
    batch_size: BatchSize = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score a run on a split, on your files, or score a file of translations."""
    options = locals()  # the request knows each by the name that it has here
    from transformer_cli.commands.eval import job as command

    for name in ("as_json", "quiet", "debug"):
        del options[name]
    options |= {"refs": tuple(refs or ()), "metrics": tuple(metrics.replace(" ", "").split(","))}
    command.print_report(command.run_eval(command.EvalRequest.of(options), note_on_stderr(quiet)), as_json)
