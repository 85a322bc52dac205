"""Which files of a run folder are a run's own: what a command writes there by itself. All others are a user's.

Not here: which of them are needed (``run_folder.py``).
"""

import re
from pathlib import Path

from transformer_cli.errors import RunError
from transformer_cli.wording import counted

_NAMED = 5  # files in a message
_OWN = re.compile(
    r"""
    (\.tmp-)?                                           # what an interrupted write has left, see durable.py; also below
    ( (run|confidence)\.json | config\.yaml | train\.log | tokenizer(\.src|\.tgt)?\.model
    | (model|single|shortlist)\.safetensors | (metrics|samples|scores)\.jsonl )
    | \.lock
    | checkpoints/ (\.tmp-((old|doomed)-)?)? step-\d+/ (\.tmp-)? ( (model|ema|optimizer)\.safetensors | state\.json )
    | (checkpoints/step-\d+/)? (\.tmp-(old-)?)? ctranslate2/    # an export, see export/folder.py
      (\.tmp-)?
      ( export\.json | README\.txt | model\.bin | config\.json | \w+_vocabulary\.json | tokenizer(\.src|\.tgt)?\.model )
    """,
    re.VERBOSE,
)


def foreign_files(run: Path, part: Path) -> list[str]:
    """Return what is not a run's own, as paths relative to the run.

    Args:
        run: the run folder.
        part: a file or a folder of it, or the run itself: where to look.
    """
    inside = [part] if part.is_file() or (part.is_symlink() and part != run) else part.rglob("*")
    files = [path.relative_to(run).as_posix() for path in inside if path.is_symlink() or not path.is_dir()]
    return sorted(name for name in files if not _OWN.fullmatch(name))


def refuse_foreign(folder: Path) -> None:
    """Check that a run folder which is to be replaced holds nothing but what belongs to a run.

    Raises:
        RunError: it holds something else, which would be lost.
    """
    if names := foreign_files(folder, folder):
        more = [f"and {len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
        raise RunError(
            "holds files that are not of a run, and would be lost",
            where=str(folder),
            got=f"{counted(len(names), 'file')}: {', '.join([*names[:_NAMED], *more])}",
            hint="move them to another place, or choose another folder with --run",
        )
