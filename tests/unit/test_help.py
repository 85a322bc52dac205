"""``--help`` names every option in whole on a terminal of 80 columns; all that take numbers are refused in one style."""

import re

import pytest
import typer
from typer.testing import CliRunner

from transformer_cli.cli import app, main

COMMANDS = typer.main.get_command(app).commands
NUMBERS = [
    (command.name, option)
    for command in COMMANDS.values()
    for option in command.params
    if option.type_descriptor.annotation in (int, float)
]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_no_option_is_cut(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [command.name, "--help"])
    words = set(done.stdout.split())
    names = {name for option in command.params for name in (*option.opts, *option.secondary_opts) if name[0] == "-"}
    assert done.exit_code == 0
    assert names
    assert names <= words
    assert max(map(len, done.stdout.splitlines())) == 80
    assert "[[" not in done.stdout
    assert not re.search(r"<=\d{8}", done.stdout)  # a bound that is only technical


def wrong_numbers(option):
    """Return numbers that an option does not take, and no number."""
    return [str(option.min - 1), "many", "nan", *([] if option.max is None else [str(option.max + 1)])]


@pytest.mark.parametrize(("command", "option"), NUMBERS, ids=lambda value: getattr(value, "name", value))
def test_all_numbers_are_refused_in_one_style(command, option, capsys):
    assert NUMBERS
    for wrong in wrong_numbers(option):
        with pytest.raises(SystemExit) as left:
            main([command, option.opts[0], wrong])
        first, got, expected, *rest = capsys.readouterr().err.splitlines()
        assert (left.value.code, first, rest) == (2, f"error: {option.opts[0]} is not valid", [])
        assert got == f"  got: {wrong}"
        kind = "a whole number" if option.type_descriptor.annotation is int else "a number"
        bounds = f"of at least {option.min}" if option.max is None else f"from {option.min} to {option.max}"
        assert expected == f"  expected: {kind} {bounds}"
