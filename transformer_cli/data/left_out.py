"""What became of the pairs that were read: the table of those that were left out, and the errors if none remain.

Not here: what leaves them out (``corpus.py``, ``filters.py``, ``batching.py``).
"""

from collections.abc import Mapping

from transformer_cli.config import DataConfig
from transformer_cli.errors import DataError

_PLACES = ("src", "tgt", "tsv", "jsonl", "hub")  # keys of a source that say where it is


def drop_table(read: int, dropped: Mapping[str, int]) -> str:
    """Render what became of the training pairs, one reason a line.

    Args:
        read: pairs that were read.
        dropped: reason -> pairs.
    """
    rows = {"read": read, **{f"- {reason}": count for reason, count in dropped.items()}}
    rows["left"] = read - sum(dropped.values())
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {count:>10,}" for name, count in rows.items())


def nothing_left(config: DataConfig, dropped: Mapping[str, int], n_dev: int) -> DataError:
    """Return the error of a run without training pairs: what became of all that were read, and what to change.

    Args:
        config: whether the dev set came from the training pairs.
        dropped: reason -> pairs.
        n_dev: pairs of the dev set.
    """
    hint = "the counts say which files, which data.filter or which data.max_length to change"
    if makes_dev(config):
        dropped = {**dropped, "taken out as the dev split": n_dev}
        hint += "; a data.dev of its own leaves them all, data.dev_size says how many are taken (one at least)"
    return DataError("no training pair is left", got="\n" + drop_table(sum(dropped.values()), dropped), hint=hint)


def dev_place(config: DataConfig) -> str:
    """Return where the dev pairs come from, in words."""
    if config.dev is None:
        return "data.train" if config.corpus is None else f"data.corpus {config.corpus}"
    given = config.dev.model_dump(exclude_none=True)
    return "data.dev: " + ", ".join(f"{key} {value}" for key, value in given.items() if key in _PLACES)


def makes_dev(config: DataConfig) -> bool:
    """Say whether the dev set is split off the training pairs."""
    return config.corpus is None and config.dev is None


def every_dev_pair_too_long(config: DataConfig) -> DataError:
    """Return the error of a dev set of which no pair can be used for the loss."""
    return DataError(
        "every dev pair is longer than data.max_length",
        where=dev_place(config),
        got=f"data.max_length {config.max_length}",
        hint="raise data.max_length, or give data.dev shorter pairs",
    )
