"""``tfm demo``: the list, a report as text, JSON and picture, the heads of a run, and what is refused."""

from pathlib import Path

import pytest
import torch
from command_line import Tfm

from transformer_cli.demos import cost, order  # noqa: F401 - replaced below by name
from transformer_cli.demos.catalogue import DEMOS
from transformer_cli.demos.report import DemoReport, Wish


def test_without_a_name_the_demos_are_listed(tfm: Tfm) -> None:
    done = tfm("demo")
    assert done.code == 0
    assert [line.split()[0] for line in done.lines] == list(DEMOS)


def test_text_json_and_picture(tfm: Tfm, tmp_path: Path) -> None:
    picture = tmp_path / "order.png"
    done = tfm("demo", "order", "--json", "-o", picture)
    assert done.json["demo"] == "order"
    assert done.json["tables"][0]["rows"][0]["positions"] == "none"
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = tfm("demo", "order", "-q")
    assert again.code == 0
    assert again.lines[0] == done.json["claim"]
    assert again.err == ""


def test_heads_of_a_run(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "heads.svg"
    found = tfm("demo", "heads", "--run", run, "--json", "-o", picture).json
    heads, types = (table["rows"] for table in found["tables"])
    assert sum(row["heads"] for row in types) == len(heads)
    assert {row["type"] for row in heads} == {row["type"] for row in types}
    drawn = found["settings"]
    assert drawn["translation"] == tfm("translate", "--run", run, drawn["drawn"]).lines[0]
    assert found["shown"][-1].startswith(f"drawn: {drawn['drawn']!r}, translated {drawn['translation']!r}")
    assert picture.read_text(encoding="utf-8").lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["order", "--run", "x"], "looks at no run"),
        (["order", "-o", "x.txt"], "a plot is a picture"),
        (["heads"], "no run with a model was found"),
        (["heads", "--run", "x"], "x"),
        (["order", "--seed", "-1"], "--seed"),
        (["colour"], "colour"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tfm: Tfm, arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tfm("demo", *arguments)
    assert done.code == 2
    assert told in done.err
    assert done.out == b""


@pytest.mark.parametrize(("name", "threads"), [("order", 1), ("cost", 2)])
def test_one_thread_computes_what_is_not_timed(
    tfm: Tfm, monkeypatch: pytest.MonkeyPatch, name: str, threads: int
) -> None:
    found = []

    def demonstrate(wish: Wish) -> DemoReport:
        found.append(torch.get_num_threads())
        return DemoReport(name, "a claim", "a source", [], [], lambda figure: None)

    monkeypatch.setattr(f"transformer_cli.demos.{name}.demonstrate", demonstrate)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert tfm("demo", name).code == 0
        assert (found, torch.get_num_threads()) == ([threads], 2)
    finally:
        torch.set_num_threads(before)
