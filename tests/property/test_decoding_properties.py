"""What must hold for every line: its translation is its own, whatever is translated beside it, and however."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from decoding_rig import UncachedSteps, config, run_sentences, sentences, tokenizer, transformer, translator

from transformer_cli.config import Config
from transformer_cli.decoding.beam import BeamSearch
from transformer_cli.decoding.model_steps import ModelSteps, canonical_places, room_for_keys
from transformer_cli.decoding.search import search
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translation import Translation
from transformer_cli.decoding.translator import Translator
from transformer_cli.runtime import Runtime

# A freshly initialised model has ties everywhere; with larger weights its sentences end and differ, as if trained.
FRESH, PRONOUNCED = 1.0, 2.5
SPARSE = {"encoder": "sparse", "decoder": "sparse"}


def model_config(**changes: object) -> Config:
    shape = {"d_model": 128, "n_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2}
    return config(model=shape | changes)


def in_batches(
    translator: Translator, lines: list[str], batch_size: int, beam_size: int, *, refill: bool = True
) -> dict[str, Translation]:
    """Translate distinct lines, shuffled, in batches and windows of the given size."""
    shuffled = random.Random(batch_size).sample(lines, len(lines))
    settings = DecodeSettings(beam_size=beam_size, max_length_ratio=0.4, batch_size=batch_size, refill=refill)
    found = translator.stream(shuffled, settings, window=max(3 * batch_size, 20))
    return {translation.source: translation for translation in found}


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    yield
    torch.set_num_threads(before)


def assert_invariant(how: Config, weights: float, lines: list[str], beam_size: int, sample: int) -> None:
    """Compare text, tokens and scores; what takes long (single lines, two threads) is done for a sample."""
    subject = translator(transformer(how, weights=weights), how)
    lines = sorted(set(lines))
    with threads(1):
        expected = in_batches(subject, lines, 7, beam_size)
    assert len({translation.text for translation in expected.values()}) > len(lines) // (
        20 if weights > FRESH else 1000
    )
    for batch_size, n_threads, refill in [(1, 1, True), (5, 1, True), (50, 1, False), (50, 1, True), (50, 2, True)]:
        some = lines[:: -(-len(lines) // sample)] if batch_size < 5 or n_threads > 1 else lines
        with threads(n_threads):
            found = in_batches(subject, some, batch_size, beam_size, refill=refill)
        assert found == {line: expected[line] for line in some}, (batch_size, n_threads)


@pytest.mark.parametrize("weights", [FRESH, PRONOUNCED])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_line_does_not_depend_on_its_batch(weights: float, beam_size: int) -> None:
    """Equal results for batches of 1, 5, 7 and 50, shuffled, refilled or not, on one thread and two."""
    assert_invariant(model_config(), weights, sentences(60, seed=7, longest=8), beam_size, sample=10)


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": {"encoder": "linformer"}},
        {"attention": SPARSE, "sparse": {"pattern": "bigbird", "window": 2, "block": 3, "global_tokens": 1}},
        {"attention": SPARSE, "sparse": {"pattern": "blocks", "block": 2}},
    ],
    ids=["linformer", "bigbird", "blocks"],
)
def test_nor_does_it_with_another_attention(changes: dict[str, object]) -> None:
    assert_invariant(model_config(**changes), PRONOUNCED, sentences(24, seed=7, longest=8), beam_size=3, sample=4)


@pytest.mark.parametrize("positions", ["rotary", "transformer_xl", "t5"])
def test_nor_does_it_with_positions_inside_attention(positions: str) -> None:
    how = model_config(positions=positions, norm="rms")
    assert_invariant(how, PRONOUNCED, sentences(30, seed=7, longest=8), 2, sample=5)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("weights", [FRESH, PRONOUNCED])
@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_model": 256, "d_ff": 1024, "activation": "gelu"},
        {"d_model": 96, "n_heads": 3, "d_ff": 100, "activation": "swiglu", "norm_placement": "post"},
        {"attention": "naive", "bias": False, "positions": "learned"},
        {"positions": "transformer_xl"},
    ],
    ids=["default", "wide", "odd", "naive", "transformer-xl"],
)
def test_no_line_of_a_thousand_depends_on_its_batch(weights: float, beam_size: int, changes: dict[str, object]) -> None:
    n = 1000 if not changes else 300
    assert_invariant(model_config(**changes), weights, sentences(n, seed=8, longest=25), beam_size, sample=n)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "changes",
    [{"norm_placement": "pre"}, {"norm_placement": "post"}, {"attention": SPARSE, "sparse": {"window": 3}}],
    ids=["pre", "post", "sparse"],
)
def test_the_cache_changes_nothing(beam_size: int, changes: dict[str, object]) -> None:
    model = transformer(config(model=changes), weights=2.5)
    sources = [[*ids, 3] for ids in tokenizer().encode_src(sentences(9, seed=9, longest=10))]
    asked = [Source(source, cap=20) for source in sources]
    settings = DecodeSettings(beam_size=beam_size, n_best=beam_size)
    n_places, room = canonical_places(5, beam_size), room_for_keys(model, 48)
    with torch.inference_mode():
        steps = ModelSteps(model, n_places, beam_size, room, Runtime.resolve("cpu"))
        with_cache = search(steps, BeamSearch(n_places, 20, settings), asked, n_places)
        without = run_sentences(UncachedSteps(model), asked, settings)
    for ours, theirs in zip(with_cache, without, strict=True):
        assert [h.tokens for h in ours[:beam_size]] == [h.tokens for h in theirs[:beam_size]]
        assert [h.score for h in ours[:beam_size]] == pytest.approx([h.score for h in theirs[:beam_size]], abs=1e-5)
    assert len({tuple(h[0].tokens) for h in with_cache}) > 4
