"""``tfm init``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import Debug
from transformer_cli.errors import UserError

Source = Annotated[str | None, typer.Option("--src", help="Source text file, one sentence a line.")]
Target = Annotated[str | None, typer.Option("--tgt", help="Target text file, aligned line by line.")]
Tsv = Annotated[str | None, typer.Option("--tsv", help="Or both in one file: source, a tab, target.")]
Jsonl = Annotated[str | None, typer.Option("--jsonl", help="Or JSON lines, with a field for each language code.")]
SrcLang = Annotated[str | None, typer.Option("--src-lang", help="Language code. (default: the ending of --src)")]
TgtLang = Annotated[str | None, typer.Option("--tgt-lang", help="Language code. (default: the ending of --tgt)")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="<path>", help="Recipe to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing recipe.")]


def init(
    src: Source = None,
    tgt: Target = None,
    tsv: Tsv = None,
    jsonl: Jsonl = None,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    output: Output = "my.yaml",
    overwrite: Overwrite = False,
    debug: Debug = False,
) -> None:
    """Write a commented recipe for your own sentence pairs."""
    files = {"src": src, "tgt": tgt, "tsv": tsv, "jsonl": jsonl}
    given = {kind: file for kind, file in files.items() if file is not None}
    if tuple(given) not in {("src", "tgt"), ("tsv",), ("jsonl",)}:
        got = " ".join(f"--{kind} {file}" for kind, file in given.items()) or "no file"
        raise UserError("the pairs are in two files or in one", got=got, expected="--src and --tgt, --tsv, or --jsonl")
    for kind, file in [*given.items(), ("output", output)]:
        if not file:
            raise UserError("the name of a file is empty", got=f"--{kind} ''")
    from transformer_cli.commands import init as command

    typer.echo(command.write_recipe(given, (src_lang, tgt_lang), Path(output), overwrite))
