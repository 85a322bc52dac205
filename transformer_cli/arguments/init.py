"""``tfm init``: what can be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.arguments.shared import Debug

Source = Annotated[str, typer.Option("--src", help="Source text file, one sentence a line.")]
Target = Annotated[str, typer.Option("--tgt", help="Target text file, aligned line by line.")]
SrcLang = Annotated[str | None, typer.Option("--src-lang", help="Language code. (default: the file's ending)")]
TgtLang = Annotated[str | None, typer.Option("--tgt-lang", help="Language code. (default: the file's ending)")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Recipe to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing recipe.")]


def init(
    src: Source,
    tgt: Target,
    src_lang: SrcLang = None,
    tgt_lang: TgtLang = None,
    output: Output = Path("my.yaml"),
    overwrite: Overwrite = False,
    debug: Debug = False,
) -> None:
    """Write a commented recipe for your own two text files."""
    from transformer_cli.commands import init as command

    typer.echo(command.write_recipe(src, tgt, src_lang, tgt_lang, output, overwrite))
