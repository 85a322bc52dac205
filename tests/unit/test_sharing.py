"""When more processes are called, and that it changes nothing."""

from collections.abc import Sequence

import pytest
import torch
from decoding_rig import config, sentences, transformer, translator

from transformer_cli.decoding import sharing
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.sharing import SharedTranslator, workers_pay
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator

HOW = DecodeSettings(beam_size=1)


@pytest.fixture(scope="module")
def small() -> Translator:
    return translator(transformer(config()), config())


@pytest.mark.parametrize("pay", [True, False])
def test_only_a_long_job_calls_for_workers_and_once(
    small: Translator, monkeypatch: pytest.MonkeyPatch, pay: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sharing, "workers_pay", lambda *_: pay)
    shared = SharedTranslator(small, lambda n: asked.append(n) or small, n_cores=3, long_enough=10)  # type: ignore[func-returns-value]
    short, long = sentences(9, longest=4), sentences(10, longest=4)
    for lines in (short, long, long):
        assert shared.translate_window(lines, HOW, 5) == small.translate_window(lines, HOW, 5)
        assert asked == ([3] if pay and lines is long else [])


def test_wishes_reach_the_translator_and_close_ends_that_which_took_over(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, object]] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        def translate_window(self, *asked: object) -> list[Translation]:
            told.append((self.name, asked))
            return []

        def close(self) -> None:
            told.append((self.name, "closed"))

    monkeypatch.setattr(sharing, "workers_pay", lambda *_: True)
    shared = SharedTranslator(Noting("one"), lambda _: Noting("many"), n_cores=2, long_enough=2)  # type: ignore
    for lines in (["a"], ["a", "b"]):
        shared.translate_window(lines, HOW, 7, ["prefix"], "phrases")
    shared.close()
    rest = (HOW, 7, ["prefix"], "phrases")
    assert told == [("one", (["a"], *rest)), ("many", (["a", "b"], *rest)), ("many", "closed")]


def test_one_core_never_measures(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "workers_pay", lambda *_: pytest.fail("nothing to decide"))
    shared = SharedTranslator(small, lambda _: pytest.fail("no workers"), n_cores=1, long_enough=1)
    assert shared.translate_window(["ein hund."], HOW) == small.translate_window(["ein hund."], HOW)


@pytest.mark.parametrize(("one_thread", "expected"), [(1.9, False), (1.7, True), (1.0, True)])
def test_processes_pay_if_a_thread_each_is_faster_than_all_threads(
    monkeypatch: pytest.MonkeyPatch, one_thread: float, expected: bool
) -> None:
    now, threads, seen = [0.0], torch.get_num_threads(), list[list[str]]()
    window = [str(number) for number in range(2100)]

    class Clocked:
        def translate_window(self, lines: Sequence[str], settings: DecodeSettings) -> list[Translation]:
            seen.append(list(lines))
            now[0] += 1.0 if torch.get_num_threads() == 2 else one_thread
            return []

    torch.set_num_threads(2)
    monkeypatch.setattr(sharing.time, "perf_counter", lambda: now[0])
    try:
        assert workers_pay(Clocked(), window, HOW, 2) is expected  # type: ignore[arg-type]
        assert seen == [window[::32][:64]] * 3  # lines from all over; the first time warms up
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
