"""What a model says of a line does not depend on what is translated beside it, in which order, or by whom."""

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from toy_language import DEEDS, NUMBERS, THINGS

from transformer_cli.checkpoint import RunFolder, build_model
from transformer_cli.decoding.phrases import ANYTHING, Phrases
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator

SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam 5": {"beam_size": 5, "n_best": 3},
    "samples": {"beam_size": 4, "n_best": 4, "sampling": True, "seed": 3, "temperature": 1.5},
    "wishes": {"beam_size": 5},
}
STARTS = (None, "zwei", "Die")


def lines(n: int) -> list[str]:
    """Return different lines of one to three sentences; some words the model has never seen."""
    draw = random.Random(1)
    words = [list(of) for of in (NUMBERS, THINGS, DEEDS)]
    found: dict[str, None] = {}
    while len(found) < n:
        sentences = [" ".join(draw.choice(of) for of in words) + "." for _ in range(draw.randint(1, 3))]
        found[" ".join([*sentences, *["a boat?"] * (draw.random() < 0.2)])] = None
    return list(found)


class Asked:
    """Lines, each with its place in the input and what is wished of it."""

    def __init__(self, name: str, n: int, translator: Translator, **changes: float) -> None:
        self.lines, self.how = lines(n), DecodeSettings(**SEARCHES[name] | changes)  # type: ignore[arg-type]
        self.prefixes: list[str | None] = [None] * n
        self.phrases = ANYTHING
        if name == "wishes":
            self.prefixes = [STARTS[number % len(STARTS)] for number in range(n)]
            terms = translator.wishes.glossary({"cats": "Kater", "houses": "Hausboote"})
            self.phrases = Phrases(terms, translator.wishes.forbid(["schlafen", "Hunde f"]))

    def of(
        self, translator: Translator, order: Sequence[int], batch_size: int, *, refill: bool = True
    ) -> dict[int, Translation]:
        """Translate in windows; samples depend on a line's number, so only neighbours of the input share one."""
        how, found = self.how.but({"batch_size": batch_size, "refill": refill}), dict[int, Translation]()
        for window in self._windows(order, 2 * batch_size + 1):
            texts, prefixes = [self.lines[number] for number in window], [self.prefixes[number] for number in window]
            done = translator.translate_window(texts, how, window[0], prefixes, self.phrases)
            found |= zip(window, done, strict=True)
        return found

    def _windows(self, order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
        shuffled = list(order) != sorted(order)
        size = 1 if self.how.sampling and shuffled else size
        yield from (order[start : start + size] for start in range(0, len(order), size))


def assert_same(name: str, run: Path, shared: Translator | None, n: int, few: int, **changes: float) -> list[str]:
    """Translate n lines in many ways, a few of them where it takes long; return the translations."""
    alone = Translator.from_run(run, "cpu")
    asked = Asked(name, n, alone, **changes)
    order = list(range(n))
    shuffled = random.Random(2).sample(order, n)
    expected = asked.of(alone, order, 7)
    some = shuffled[:few] if asked.how.sampling else shuffled  # shuffled samples are drawn one by one
    for which, translator, batch_size, refill in (
        (some, alone, 50, True),
        (shuffled[:few], alone, 1, True),
        (order, alone, 7, False),
        *([(order, shared, 50, True), (shuffled[:few], shared, 7, True)] if shared else []),
    ):
        found = asked.of(translator, which, batch_size, refill=refill)
        assert found == {number: expected[number] for number in which}
    if name == "wishes":
        for number, translation in expected.items():
            assert translation.text.startswith(asked.prefixes[number] or "")
            assert not asked.phrases.said(translation.text)
        assert sum("Kater" in translation.text for translation in expected.values()) > n / 8
    return [translation.text for translation in expected.values()]


@pytest.fixture(scope="module")
def shared(run: Path) -> Iterator[Translator]:
    translator = Translator.from_run(run, "cpu", workers=2)
    yield translator
    translator.close()


@pytest.fixture(scope="module")
def fresh(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as if it had been stopped before its first step: everything is about equally probable."""
    folder = RunFolder.open(Path(shutil.copytree(run, tmp_path_factory.mktemp("fresh") / "run")))
    folder.save_model(dict(build_model(folder.config, folder.tokenizer).named_parameters()))
    return folder.path


@pytest.mark.parametrize("name", SEARCHES)
def test_lines_of_a_trained_run_are_their_own(name: str, run: Path, shared: Translator) -> None:
    texts = assert_same(name, run, shared, n=16, few=3)
    assert len(set(texts)) > 8


@pytest.mark.parametrize("name", SEARCHES)
def test_lines_of_a_fresh_run_are_their_own(name: str, fresh: Path) -> None:
    assert_same(name, fresh, None, n=10, few=2, max_length_ratio=0.5)


def test_long_translations_of_a_fresh_run_are_their_own(fresh: Path) -> None:
    """A wide beam looks at hundreds of columns, and hidden ones must not say how the products are cut."""
    texts = assert_same("beam 5", fresh, None, n=10, few=2, beam_size=8, max_length_ratio=6)
    assert max(map(len, texts)) > 200


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "n"), [(name, 300 if name == "wishes" else 1000) for name in SEARCHES])
def test_many_lines_of_a_trained_run_are_their_own(name: str, n: int, run: Path, shared: Translator) -> None:
    texts = assert_same(name, run, shared, n, few=n * 15 // 100)
    assert len(set(texts)) > len(NUMBERS) * len(THINGS) * len(DEEDS)  # more than learned by heart
