"""The clocks of a run: what it says of the time that is left."""

from types import SimpleNamespace

import pytest

from transformer_cli.training.journal import Journal


@pytest.mark.parametrize(
    ("total", "budget", "left"),
    [(30, None, 80.0), (30, 60.0, 40.0), (12, 60.0, 8.0), (None, 60.0, 40.0), (None, None, None), (30, 15.0, 0.0)],
)
def test_no_more_time_is_left_than_the_budget_has(
    monkeypatch: pytest.MonkeyPatch, total: int | None, budget: float | None, left: float | None
) -> None:
    journal = Journal(SimpleNamespace(append_log=print), SimpleNamespace(stepped=lambda *_: None), print)
    for step in range(1, 6):  # of a run that was continued after step 5
        journal.stepped(step + 5, total, 1, 1.0)
    monkeypatch.setattr(Journal, "elapsed", 20.0)
    assert journal.seconds_left(10, total, budget) == left
