"""Which run a command works on, told to the user when it was not named."""

from contextlib import suppress
from pathlib import Path

from transformer_cli.commands.shared.notes import Note
from transformer_cli.errors import RunError
from transformer_cli.wording import counted


def chosen_run(given: Path | None, note: Note) -> Path:
    """Return the given run, or the newest one that has a model; say which, and whether it is unfinished.

    Raises:
        RunError: no run was given and there is none.
    """
    if given is not None:
        return given
    from transformer_cli.checkpoint import newest_run, read_info  # loads torch, which an exported folder does not need

    path = newest_run()
    info = read_info(path)
    finished = info["status"] == "finished"
    total = counted(info["total_steps"], "step") if info["total_steps"] else "? steps"
    progress = counted(info["step"], "step") if finished else f"unfinished: {info['step']:,} of {total}"
    note(f"using {path}, the newest run ({progress})")
    return path


def folder_of(run: Path) -> Path:
    """Return the run folder of a run or of one of its checkpoints."""
    resolved = run.resolve()
    return resolved.parent.parent if resolved.parent.name == "checkpoints" else run


def newest_started_run(root: Path = Path("runs")) -> Path:
    """Return the run that was created last, with or without a model: the one to continue.

    Raises:
        RunError: there is none.
    """
    from transformer_cli.checkpoint import read_info, run_folders

    found = []
    for path in run_folders(root):
        with suppress(RunError):
            found.append((str(read_info(path)["created"]), path))
    if not found:
        raise RunError("no run to continue was found", where=str(root), hint="name it: --resume --run DIR")
    return max(found)[1]
