"""``--help`` names every option in whole on a terminal of 80 columns."""

import pytest
import typer
from typer.testing import CliRunner

from transformer_cli.cli import app

COMMANDS = typer.main.get_command(app).commands


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
