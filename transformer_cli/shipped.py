"""Where the recipes and the embedded corpus lie: inside an installed wheel, or beside the package in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """Return the shipped folder ``configs`` or ``data``.

    The wheel carries both under ``transformer_cli/_shipped``; a checkout has them at its top level.
    """
    in_wheel = _PACKAGE / "_shipped" / folder
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / folder


def shipped_recipes() -> list[str]:
    """Return the names of the shipped recipes, as ``--config`` takes them."""
    return sorted(path.name for path in shipped("configs").glob("*.yaml"))
