"""Continuing a run: what must be as it was, what may differ, and where it goes on.

Resuming is exact on the same machine, torch and thread count. Elsewhere it works as well, but sums are taken in
another order and the last bits differ; that is said.
"""

from collections.abc import Callable, Sequence
from typing import Any

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.snapshot import CheckpointState
from transformer_cli.config import RESUMABLE, Config
from transformer_cli.errors import RunError
from transformer_cli.runtime import Runtime
from transformer_cli.training.data_order import batches_per_step
from transformer_cli.wording import counted

Settings = dict[str, dict[str, Any]]  # section -> key -> value

#: What the last bits of a result depend on.
_SAME = ("device", "amp", "threads", "world_size", "torch")


def last_state(run: RunFolder, note: Callable[[str], None]) -> CheckpointState | None:
    """Return the newest whole checkpoint, and take the run folder back to it.

    Returns:
        ``None`` if the run was stopped before its first checkpoint: it starts over.

    Raises:
        RunError: all checkpoints are damaged, or they are gone though there were some.
    """
    run.clean()
    state = run.newest_intact(note)
    if state is None and (run.steps() or run.info.get("step", 0)):
        what = "all checkpoints are damaged" if run.steps() else f"its checkpoints are gone, at step {run.info['step']}"
        hint = "a new run with -s train.init_from=RUN goes on from the weights that it has found"
        raise RunError(what, where=str(run.path), hint=hint)
    if state is None and run.config.train.init_from is not None:
        hint = "start it again with --overwrite"
        raise RunError("was stopped before train.init_from's weights were stored", where=str(run.path), hint=hint)
    if state is None:
        note("there is no checkpoint yet: the run starts over")
        run.truncate_records(0)
        return None
    is_owed = {"validation": not state.counters["validation"], "train": state.counters["interval_tokens"] > 0}
    run.truncate_records(state.step, [kind for kind in is_owed if is_owed[kind]])
    return state


def conditions(config: Config, runtime: Runtime, teachers_sha256: Sequence[str]) -> dict[str, object]:
    """Return what ``run.json`` keeps of a run under way, for its continuation to be compared with.

    The settings are kept here too, because ``config.yaml`` is edited by hand.
    """
    return {
        "batches_per_step": batches_per_step(config.train, runtime.world_size),
        "teachers_sha256": list(teachers_sha256),
        "settings": config.model_dump(mode="json"),
        "runtime": runtime.describe(),
    }


def differing_keys(new: Settings, old: Settings) -> list[str]:
    """Return the dotted names of the keys whose values differ; a key that only one of them knows does not."""
    return [
        f"{section}.{key}"
        for section in new
        for key, value in new[section].items()
        if key in old.get(section, {}) and value != old[section][key]
    ]


def refuse_changes(run: RunFolder, config: Config, world_size: int) -> None:
    """Check that only keys differ which a continued run may change.

    ``train.accumulate`` is one of them if the number of ranks changes the other way: a step stays what it is.

    Raises:
        RunError: names the others.
    """
    _refuse_other_steps(run, config, world_size)
    began = run.info.get("settings") or run.config.model_dump(mode="json")
    differing = differing_keys(config.model_dump(mode="json"), began)
    changed = [key for key in differing if key not in RESUMABLE | {"train.accumulate"}]
    if changed:
        raise RunError(
            "a continued run keeps its settings",
            where=str(run.path),
            got=f"other values for {', '.join(changed)}",
            expected=f"changes of {', '.join(sorted(RESUMABLE))} only",
            hint="for other settings start a new run; -s train.init_from=RUN takes the weights along",
        )


def _refuse_other_steps(run: RunFolder, config: Config, world_size: int) -> None:
    then = int(run.info.get("batches_per_step", run.config.train.accumulate))
    now = batches_per_step(config.train, world_size)
    if now != then:
        fits = f"-s train.accumulate={then // world_size}, or " if then % world_size == 0 else ""
        raise RunError(
            "a continued run keeps the number of batches in a step",
            where=str(run.path),
            got=f"{now}: train.accumulate {config.train.accumulate} on {counted(world_size, 'process', 'processes')}",
            expected=str(then),
            hint=f"{fits}another number of processes",
        )


def refuse_other_teachers(run: RunFolder, teachers_sha256: Sequence[str]) -> None:
    """Check that the teachers are those that the run began with; an older run has not noted them.

    Args:
        run: with what it has noted.
        teachers_sha256: of the weights of ``train.teachers``, as they are now.

    Raises:
        RunError: names the first that has changed.
    """
    for path, then, now in zip(
        run.config.train.teachers, run.info.get("teachers_sha256", []), teachers_sha256, strict=False
    ):
        if then != now:
            raise RunError(
                "a teacher has changed since this run began",
                where=f"train.teachers: {path}",
                got=f"weights with sha256 {now[:12]}",
                expected=f"{then[:12]}",
                hint="put its old weights back, or start a new run; a teacher that still trains changes with every "
                "best validation, one of its checkpoints (RUN/checkpoints/step-N) does not",
            )


def announce_differences(run: RunFolder, runtime: Runtime, note: Callable[[str], None]) -> None:
    """Say what makes a continued run differ in the last bits from an undisturbed one."""
    then, now = run.info.get("runtime"), runtime.describe()
    if isinstance(then, dict):
        for name in _SAME:
            if name in then and then[name] != now[name]:
                note(
                    f"warning: {name} was {then[name]} and is {now[name]} now: the result will differ in the last bits"
                )
