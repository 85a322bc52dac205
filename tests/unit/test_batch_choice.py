"""How much is put side by side: rows on a CPU, memory on a GPU."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from decoding_rig import config, transformer

from transformer_cli import checkpoint
from transformer_cli.commands.shared.batch_choice import Batch, search_settings, within
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError
from transformer_cli.model.cache import DecoderCache
from transformer_cli.runtime import Runtime

GIB = 2**30
SHAPE = config().model, 4000


def settings(**wanted: object) -> tuple[DecodeSettings, list[str]]:
    notes: list[str] = []
    return search_settings(config().decode, wanted, [Path("a"), Path("b")], "cpu", notes.append), notes


def test_numbers_are_taken_as_they_come_and_nothing_is_told() -> None:
    recipe = DecodeSettings.from_config(config().decode)
    assert settings() == settings(batch_tokens=None) == (recipe, [])
    assert settings(batch_tokens=7, beam_size=2) == (recipe.but({"batch_tokens": 7, "beam_size": 2}), [])


@pytest.mark.parametrize(("beam_size", "sentences"), [(1, 256), (3, 85), (5, 51), (1000, 1)])
def test_on_a_cpu_the_hypotheses_are_counted(beam_size: int, sentences: int) -> None:
    found, notes = settings(batch_tokens="auto", beam_size=beam_size)
    assert (found.batch_size, found.batch_tokens, found.beam_size) == (sentences, 4096, beam_size)
    assert notes == [f"side by side: at most {sentences} sentences, 4,096 source tokens (256 hypotheses on a CPU)"]


def test_a_number_of_sentences_stays_the_limit() -> None:
    assert settings(batch_tokens="auto", batch_size=20, beam_size=5)[0].batch_size == 20
    assert settings(batch_tokens="auto", batch_size=200, beam_size=5)[0].batch_size == 51


def test_other_wishes_stay() -> None:
    found, _ = settings(batch_tokens="auto", length_penalty=0.5, n_best=3)
    assert (found.length_penalty, found.n_best) == (0.5, 3)


def test_on_a_gpu_half_of_the_free_memory_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    place = SimpleNamespace(device=torch.device("cuda:1"))
    monkeypatch.setattr(Runtime, "resolve", lambda name: asked.append(name) or place)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: asked.append(device) or (24 * GIB, 80 * GIB))
    folder = SimpleNamespace(config=config(), tokenizer=SimpleNamespace(tgt_vocab_size=4000))
    monkeypatch.setattr(checkpoint, "open_model", lambda run: asked.append(run) or folder)
    notes: list[str] = []
    how = {"batch_tokens": "auto", "beam_size": 2}
    runs = [Path("a"), Path("b")]
    found = search_settings(config().decode, how, runs, "cuda:1", notes.append, processes=3)
    assert asked == ["cuda:1", place.device, *runs]
    expected = within(4 * GIB, [SHAPE] * 2, found)
    assert (found.batch_size, found.batch_tokens) == (expected.sentences, expected.tokens)
    assert "in 4.0 GiB" in notes[0]


def test_what_fits_grows_with_memory_and_shrinks_with_all_that_needs_it() -> None:
    how = DecodeSettings(beam_size=5)
    found = within(GIB, [SHAPE], how)
    assert within(0, [SHAPE], how) == Batch(1, 1)
    assert within(4 * GIB, [SHAPE], how).sentences // 4 == found.sentences
    needier = [
        within(GIB, [SHAPE, SHAPE], how),
        within(GIB, [SHAPE], how.but({"beam_size": 6})),
        within(GIB, [(config(model={"decoder_layers": 3}).model, 4000)], how),
        within(GIB, [(config(model={"d_k": 16}).model, 4000)], how),
    ]
    assert all(other.sentences < found.sentences and other.tokens < found.tokens for other in needier)
    assert within(GIB, [(SHAPE[0], 8000)], how).sentences < found.sentences
    assert within(GIB, [SHAPE], how.but({"max_length_ratio": 3.0})).tokens < found.tokens


def test_bytes_are_those_of_logits_caches_and_masks() -> None:
    shape = {"d_model": 32, "n_heads": 2, "d_k": 8, "d_v": 24, "decoder_layers": 3}
    column = 4 * 3 * 2 * (8 + 24)  # bytes, layers, heads, a key and a value
    position = 3 * (5 * column + 5 * 5 * (2 + 1) * 4)  # of a beam of 5, with a mask for each head and one for all
    sentence = 6 * 4 * 5 * 4000 + 32 * position
    token = 2 * column + 1.5 * position
    how = DecodeSettings(beam_size=5, max_length_ratio=1.5)
    found = within(2 * 1000 * sentence, [(config(model=shape).model, 4000)], how)
    assert found == Batch(1000, int(1000 * sentence / token))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_caches_of_a_search_fit_into_what_was_counted(monkeypatch: pytest.MonkeyPatch, beam_size: int) -> None:
    """Found by watching them grow: at their end, with sentences as long as the limit lets them be."""
    model = transformer(config())
    caches: list[DecoderCache] = []
    make = model.new_cache
    monkeypatch.setattr(model, "new_cache", lambda *sizes: caches.append(make(*sizes)) or caches[-1])
    n, length, vocab_size = 16, 40, model.output.out_features
    how = DecodeSettings(beam_size=beam_size, max_length_ratio=2.0, min_length=10**4)
    sources = [Source([*range(20, 20 + length - 1), 3])] * n
    BatchDecoder(model, Runtime.resolve("cpu")).search(sources, how)
    (cache,) = caches
    kept = sum(2 * 4 * layer.values.numel() for layer in [*cache.own, *cache.cross])
    kept += 4 * (cache._bias.numel() + cache._memory_bias.numel())
    rows = 4 * vocab_size * n * beam_size
    just_enough = next(
        free for free in range(0, GIB, 2**18) if _holds(within(free, [(SHAPE[0], vocab_size)], how), n, length)
    )
    assert kept + rows < just_enough < 40 * (kept + rows)


def _holds(batch: Batch, n: int, length: int) -> bool:
    return batch.sentences >= n and batch.tokens >= n * length


def test_a_beam_out_of_range_is_refused_before_anything_is_chosen() -> None:
    with pytest.raises(UserError, match="beam_size"):
        settings(batch_tokens="auto", beam_size=0)
