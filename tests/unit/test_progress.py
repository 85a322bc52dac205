import io

import pytest
from rich.console import Console

from transformer_cli.training.progress import PlainProgress, RichProgress, TrainRecord, ValidationRecord, clock
from transformer_cli.training.validation import Validation

RECORD = TrainRecord(50, 1.25, 3.14159, 0.001, 0.7, 12_345.6, 2, 400, 125.0)
FOUND = ValidationRecord(
    100,
    Validation(2.0, 7.39, 12.345, "nrefs:1|tok:13a", [("[a]", "[b]", "[/c]")], 0.1),
    "beam 1, length penalty 1",
    True,
)


def told(progress):
    progress.start(0, 400, is_timed=False)
    progress.stepped(50, 400)
    progress.logged(RECORD)
    progress.validated(FOUND)
    progress.stop()


def test_plain_lines_hold_the_figures_and_no_carriage_return():
    lines = []
    told(PlainProgress(lines.append))
    text = "\n".join(lines)
    assert "step 50/400  epoch 1.25  loss 3.142  lr 1.00e-03  12,346 tokens/s  2 skipped  2:05 left" in lines
    assert "validation at step 100: loss 2.000  perplexity 7.39  BLEU 12.35  (best so far)" in text
    assert "nrefs:1|tok:13a  beam 1, length penalty 1" in text
    assert not any("\n" in line or "\r" in line for line in lines)


def test_the_live_display_shows_brackets_of_sentences_as_text():
    screen = io.StringIO()
    told(RichProgress(Console(file=screen, force_terminal=True, width=160, color_system=None)))
    text = screen.getvalue()
    assert "step 50/400" in text
    assert "source      [a]" in text
    assert "translation [/c]" in text
    assert "nrefs:1|tok:13a" in text


def test_a_run_of_unknown_length_can_be_shown():
    lines = []
    progress = PlainProgress(lines.append)
    progress.start(0, None, is_timed=True)
    progress.start(7, 1_400, is_timed=True)
    progress.start(7, 1_400, is_timed=False)
    progress.logged(TrainRecord(50, 1.0, 3.0, 0.001, None, 1.0, 0, None, None))
    assert lines == [
        "training from step 0 until its time is up",
        "training from step 7 to step 1,400, or until its time is up",
        "training from step 7 to step 1,400",
        "step 50  epoch 1.00  loss 3.000  lr 1.00e-03  1 tokens/s",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (125, "2:05"), (3723, "1:02:03")])
def test_durations(seconds, text):
    assert clock(seconds) == text
