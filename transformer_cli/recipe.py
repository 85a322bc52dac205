"""From a YAML recipe and dotted overrides to a checked ``Config``.

Scalars are read as text, so that the schema decides what they are: PyYAML alone would read ``no`` as False,
``1e-4`` as text, ``1:30`` as 90 and ``010`` as 8. Errors name file, line and column.
"""

import difflib
import os
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from transformer_cli.config import Config
from transformer_cli.errors import ConfigError
from transformer_cli.shipped import shipped, shipped_recipes
from transformer_cli.wording import counted, kind_of, shortened

Path_ = tuple[str, ...]
Without = Callable[[Collection[Path_]], dict[str, Any]]  # the recipe's values, without the overrides of some keys
_MOST_VALUES = 100_000
_NULLS = {"", "~", "null", "Null", "NULL"}


def load_recipe(name: str, overrides: Iterable[str] = ()) -> Config:
    """Load a recipe by path or shipped name and apply ``section.key=value`` overrides.

    Raises:
        ConfigError: the file is missing, is not a YAML mapping, or describes no valid experiment.
    """
    path = find_recipe(name)
    values, places = read_yaml(path)
    given = []
    for override in overrides:
        key, value = parse_override(override)
        given.append((key, value))
        places = {k: v for k, v in places.items() if k[: len(key)] != key} | {key: f"-s {shortened(override)}"}

    def without(keys: Collection[Path_]) -> dict[str, Any]:
        return _overridden(values, [(key, value) for key, value in given if key not in keys])

    return _checked(without, places, str(path))


def find_recipe(name: str) -> Path:
    """Return the recipe's file: a path as it is, else one of the shipped recipes, with or without ``.yaml``.

    Raises:
        ConfigError: there is no such file.
    """
    candidates = [Path(name), shipped("configs") / name, shipped("configs") / f"{name}.yaml"]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None and os.path.exists(name):
        raise ConfigError("is a folder" if Path(name).is_dir() else "is no file", where=name, expected="a YAML file")
    if found is None:
        raise ConfigError(
            f"no recipe {name!r}",
            expected=f"a path, or one of {', '.join(shipped_recipes())}",
            hint="tfm init --src a.en --tgt a.de writes one for your own files",
        )
    return found


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[Path_, str]]:
    """Read a YAML mapping whose scalars stay text; return it with the place of every key.

    Raises:
        ConfigError: the file cannot be read, or is no such mapping.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=f"{path}, byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    places: dict[Path_, str] = {}
    values = _read(text, str(path), (), places)
    if not isinstance(values, dict):
        found = "an empty file" if values is None else f"a top-level {kind_of(values)}"
        raise ConfigError(
            "is not a recipe", where=f"{path}:1:1", got=found, expected="sections data, train, ... with keys"
        )
    return values, places


def parse_override(text: str) -> tuple[Path_, Any]:
    """Split ``section.key=value``; the value is YAML, so lists and mappings work.

    Raises:
        ConfigError: it has no key, or no ``=``, or the value is no YAML.
    """
    name, equals, value = text.partition("=")
    key = tuple(name.strip().split("."))
    if not equals or not all(key):
        raise ConfigError(
            f"cannot read the override {shortened(text)!r}", expected="section.key=value, e.g. train.lr=3e-4"
        )
    return key, _read(value, f"-s {shortened(text)}", key, {})


def to_yaml(config: Config) -> str:
    """Write every key of a resolved configuration; ``load_recipe`` reads it back to an equal one."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _checked(without: Without, places: dict[Path_, str], file: str) -> Config:
    """Check the values against the schema; every error names its place, value and what is allowed."""
    try:
        return Config.model_validate(without(()))
    except ValidationError as error:
        raise _explain(error, without, places, file) from None


def _read(text: str, where: str, at: Path_, places: dict[Path_, str]) -> Any:
    try:
        return _plain(_compose(text, where), at, where, places)
    except RecursionError:
        raise ConfigError("is nested too deeply, or refers to itself", where=where) from None


def _compose(text: str, where: str) -> yaml.Node | None:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise ConfigError(
            f"is not YAML: {error.problem or error.context}", where=place, hint=_yaml_hint(error)
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"is not YAML: {str(error).splitlines()[0]}", where=where) from None
    if _expanded_size(node, {}) > _MOST_VALUES:  # aliases of aliases: a few lines can stand for billions
        raise ConfigError(f"stands for more than {counted(_MOST_VALUES, 'value')}, aliases written out", where=where)
    return node


def _expanded_size(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Return how many values a node stands for, with its aliases written out; each node is counted once."""
    if node is None or isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        inner = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_expanded_size(part, known) for part in inner)
    return known[id(node)]


def _yaml_hint(error: yaml.MarkedYAMLError) -> str:
    tab = "\\t" in str(error.problem)
    return "indent with spaces, not tabs" if tab else "check indentation, quotes and colons near that line"


def _plain(node: yaml.Node | None, at: Path_, file: str, places: dict[Path_, str]) -> Any:
    if node is None:
        return None
    if isinstance(node, yaml.ScalarNode):
        return None if node.style is None and node.value in _NULLS else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, str(i)), file, places) for i, item in enumerate(node.value)]
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        mark = key_node.start_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError("a key must be a plain name", where=place)
        key = str(key_node.value)
        if key in mapping:
            raise ConfigError(f"key {'.'.join((*at, key))} is given twice", where=place, hint="keep one of them")
        places[(*at, key)] = place
        mapping[key] = _plain(value_node, (*at, key), file, places)
    return mapping


def _overridden(values: dict[str, Any], given: Iterable[tuple[Path_, Any]]) -> dict[str, Any]:
    changed = deepcopy(values)
    for key, value in given:
        _assign(changed, key, deepcopy(value))
    return changed


def _assign(values: dict[str, Any], key: Path_, value: Any) -> None:
    *parents, last = key
    for parent in parents:
        if not isinstance(values.get(parent), dict):
            # A short form (`attention: sdpa`, `test: null`) gives way to the mapping that the override asks for.
            values[parent] = (
                dict.fromkeys(("encoder", "decoder", "cross"), values[parent]) if _is_short_form(values, parent) else {}
            )
        values = values[parent]
    values[last] = value


def _is_short_form(values: dict[str, Any], parent: str) -> bool:
    return parent == "attention" and isinstance(values.get(parent), str)


def _explain(error: ValidationError, without: Without, places: dict[Path_, str], file: str) -> ConfigError:
    problems = error.errors(include_url=False)
    first = min(problems, key=lambda problem: problem["type"] == "missing")  # the misspelt key, not what it was to be
    path = _path(first)
    where = _place(first, without, places, file)
    name = ".".join(path) or "configuration"
    others = len({_given(problem, places) for problem in problems}) - 1
    more = f"{counted(others, 'more problem')}, told when this one is mended" if others else None
    if first["type"] == "extra_forbidden":
        hint = "; ".join([_nearest(path), *([more] if more else [])])
        return ConfigError(f"unknown key {name}", where=where, hint=hint)
    if first["type"] == "missing":
        return ConfigError(f"key {name} is missing", where=where, hint=more)
    if first["type"] == "value_error":
        return ConfigError(f"{name}: {first['ctx']['error']}", where=where, hint=more)
    return ConfigError(
        f"{name} is not valid", where=where, got=_shown(first["input"]), expected=_allowed(first), hint=more
    )


def _path(problem: ErrorDetails) -> Path_:
    return tuple(str(part) for part in problem["loc"] if part not in ("str", "int", "list[str]"))


def _given(problem: ErrorDetails, places: dict[Path_, str]) -> Path_:
    """Return the key that was given and is wrong: one value may be that of several keys (``attention: sdpa``)."""
    path = _path(problem)
    prefixes = [path[:n] for n in range(len(path), 0, -1)]
    return path if problem["type"] == "missing" else next((key for key in prefixes if key in places), path)


def _place(problem: ErrorDetails, without: Without, places: dict[Path_, str], file: str) -> str:
    """Return where a problem comes from: the overrides inside its key that make it, or the file.

    What a section refuses is often about two of its keys, and overrides of others are innocent: without one of those
    the problem stays, and with it alone there is none.
    """
    path = _path(problem)
    inside = [key for key, place in places.items() if place.startswith("-s ") and key[: len(path)] == path]
    if inside and not _is_found(problem, without, inside):
        others = {key: [other for other in inside if other != key] for key in inside}
        blamed = [
            key for key in inside if not _is_found(problem, without, [key]) or _is_found(problem, without, others[key])
        ]
        return " ".join(places[key] for key in blamed or inside)
    return next((places[path[:n]] for n in range(len(path), 0, -1) if path[:n] in places), file)


def _is_found(problem: ErrorDetails, without: Without, keys: Collection[Path_]) -> bool:
    try:
        Config.model_validate(without(keys))
    except ValidationError as error:
        return any((one["loc"], one["msg"]) == (problem["loc"], problem["msg"]) for one in error.errors())
    return False


def _shown(value: object) -> str:
    return "null" if value is None else shortened(repr(value))


def _allowed(detail: Any) -> str:
    message: str = detail["msg"]
    if detail["type"] in ("model_type", "dict_type"):
        return "a section with keys of its own"
    if detail["type"] == "int_parsing_size":
        return "a number of fewer digits"
    return message.removeprefix("Input should be ").replace("Input should have", "to have").split(", unable to ")[0]


def _nearest(path: Path_) -> str:
    """Return the valid key closest to an unknown one, sought in its section first and then everywhere."""
    section: Any = Config
    for part in path[:-1]:
        section = _section_of(section, part)
    siblings = {name: ".".join((*path[:-1], name)) for name in getattr(section, "model_fields", {})}
    everywhere = {full.rpartition(".")[2]: full for full in all_keys()}
    if path[-1] in everywhere:
        return f"did you mean {everywhere[path[-1]]}?"
    for names in (siblings, everywhere):
        if close := difflib.get_close_matches(path[-1], names, n=1, cutoff=0.6):
            return f"did you mean {names[close[0]]}?"
    return f"one of {', '.join(siblings)}"


def all_keys() -> list[str]:
    """Return the dotted name of every key, in the order of the schema."""
    return [f"{section}.{key}" for section in Config.model_fields for key in _section_of(Config, section).model_fields]


def _section_of(section: Any, part: str) -> Any:
    """Return the section that a key holds, or None if it holds a value or does not exist."""
    field = getattr(section, "model_fields", {}).get(part)
    options = [field.annotation, *get_args(field.annotation)] if field else []
    return next((option for option in options if isinstance(option, type) and issubclass(option, BaseModel)), None)
