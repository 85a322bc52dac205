"""Options that several commands share, and those of commands that have many; nothing heavy is imported here."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How ``translate`` writes its lines."""

    text = "text"
    tsv = "tsv"
    jsonl = "jsonl"


class Choose(StrEnum):
    """Which candidate ``augment`` keeps."""

    score = "score"
    reference = "reference"


Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Override a key, e.g. train.lr=3e-4. Repeatable."),
]
Run = Annotated[
    Path | None, typer.Option("--run", help="Run folder, or one of its checkpoints/step-N. (default: the newest run)")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors, no progress or notes.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a user error too.")]
BeamSize = Annotated[
    int | None, typer.Option("--beam-size", "-b", min=1, help="Hypotheses kept per step; 1 is greedy.")
]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", min=0, help="Alpha of GNMT's length normalisation.")
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="Most sentences in a batch.")]
BatchTokens = Annotated[
    int | None, typer.Option("--batch-tokens", min=1, help="Most source tokens in a batch, padding included.")
]

# augment
Runs = Annotated[list[Path], typer.Option("--run", help="Run that translates; repeatable: each proposes translations.")]
PairsOutput = Annotated[str, typer.Option("--output", "-o", help="TSV to write: source, target; .gz is packed.")]
Mono = Annotated[
    str | None, typer.Option("--mono", help="Text of the target language, for back-translation; - is stdin.")
]
OwnPairs = Annotated[
    tuple[str, str] | None, typer.Option("--pairs", metavar="SRC TGT", help="Your own pairs, for distillation.")
]
Tag = Annotated[
    bool | None, typer.Option("--tag/--no-tag", help="Put <BT> before back-translated sources. (default: tag)")
]
Choice = Annotated[
    Choose, typer.Option("--choose", help="Keep the best score, or what is closest to the reference (chrF).")
]
MaxRatio = Annotated[
    float, typer.Option("--max-ratio", min=1, help="Drop pairs with a side so many times as long, in tokens.")
]

# bench
SeqLen = Annotated[
    list[int] | None, typer.Option("--seq-len", min=1, help="Sequence length; repeatable. (default: 512 and 1024)")
]
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


def refuse_given(context: typer.Context, names: set[str], where: str) -> None:
    """Refuse options that mean nothing here, but only if they were given: their defaults harm nobody.

    Raises:
        typer.BadParameter: one was.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is not None and source.name != "DEFAULT":
            raise typer.BadParameter(f"{parameter.opts[0]} means nothing {where}")
