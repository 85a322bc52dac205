import pytest
import torch
from decoding_rig import config, transformer
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.batch_decoder import BatchDecoder, length_groups
from transformer_cli.decoding.model_steps import canonical_length, canonical_places
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError
from transformer_cli.runtime import Runtime


def test_canonical_length() -> None:
    assert [canonical_length(n, None) for n in (1, 8, 9, 17, 24, 25)] == [8, 8, 16, 24, 24, 32]
    assert [canonical_length(n, 30) for n in (1, 16, 25, 30)] == [8, 16, 30, 30]


@given(st.integers(1, 200), st.integers(1, 200))
def test_canonical_places(n: int, width: int) -> None:
    places = canonical_places(n, width)
    assert places >= n
    assert places * width % 8 == 0
    assert places * width >= 16
    assert not any(m * width % 8 == 0 and m * width >= 16 for m in range(n, places))


@given(st.lists(st.sampled_from([16, 32, 48, 800]), max_size=40), st.integers(1, 9), st.integers(1, 200))
def test_groups_hold_every_sentence_once_within_the_budget(
    lengths: list[int], batch_size: int, batch_tokens: int
) -> None:
    groups = length_groups(lengths, batch_size, batch_tokens)
    assert sorted(number for group, _ in groups for number in group) == list(range(len(lengths)))
    for group, n_places in groups:
        longest = max(lengths[number] for number in group)
        assert lengths[group[0]] == longest
        assert n_places == max(1, min(batch_size, batch_tokens // longest))
        assert all(2 * lengths[number] > longest for number in group[n_places:])


def test_a_few_long_sentences_share_places_with_shorter_ones() -> None:
    assert length_groups([16] * 10, 4, 1000) == [(list(range(10)), 4)]
    assert length_groups([16, 48, 16, 16], 3, 1000) == [([1, 0, 2], 3), ([3], 3)]
    assert length_groups([32, 48, 32, 24], 2, 1000) == [([1, 0, 2], 2), ([3], 2)]


def test_a_wide_model_is_searched_on_one_thread_and_the_threads_come_back() -> None:
    seen = []
    for d_ff in (64, 1024):
        model = transformer(config(model={"d_ff": d_ff}))
        model.encoder.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        BatchDecoder(model, Runtime.resolve("cpu")).search([Source([5, 3])], DecodeSettings(beam_size=1))
        assert torch.get_num_threads() == 2
        torch.set_num_threads(before)
    assert seen == [2, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"beam_size": 0},
        {"n_best": 0},
        {"batch_size": 0},
        {"batch_tokens": -1},
        {"look_every": 0},
        {"min_length": -1},
        {"length_penalty": float("nan")},
        {"length_penalty": -0.1},
        {"max_length_ratio": 0.0},
        {"no_repeat_ngram": -2},
        {"temperature": 0.0},
        {"top_k": -1},
        {"top_p": 0.0},
        {"seed": -1},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        DecodeSettings(**wrong)  # type: ignore[arg-type]


def test_more_translations_than_hypotheses_are_refused() -> None:
    with pytest.raises(UserError, match="n-best 4, beam size 3"):
        DecodeSettings(beam_size=3, n_best=4)


def test_settings_come_from_the_recipe_but_for_what_is_given() -> None:
    recipe = config(decode={"beam_size": 7, "length_penalty": 0.4, "min_length": 2, "no_repeat_ngram": 3}).decode
    settings = DecodeSettings.from_config(recipe)
    assert (settings.beam_size, settings.length_penalty, settings.max_length_ratio) == (7, 0.4, 1.0)
    assert (settings.min_length, settings.no_repeat_ngram, settings.n_best) == (2, 3, 1)
    assert settings.but({"beam_size": None, "min_length": None}) == settings
    given_ = settings.but({"beam_size": 2, "n_best": 2, "length_penalty": 0.0, "batch_size": 3, "batch_tokens": None})
    assert (given_.beam_size, given_.n_best, given_.length_penalty) == (2, 2, 0.0)
    assert (given_.batch_size, given_.batch_tokens) == (3, DecodeSettings.batch_tokens)
    assert settings.max_length(7) == 17
    assert "beam 7" in settings.describe()
    assert "3-gram" in settings.describe()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_that_breaks_harms_nobody_after_it(beam_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities that one sentence leaves in its place are not met by the sentence that takes it."""
    model = transformer(config(), weights=2.5)
    decoder, how = BatchDecoder(model, Runtime.resolve("cpu")), DecodeSettings(beam_size=beam_size, batch_size=16)
    sound = [Source([*[20 + n] * 12, 3]) for n in range(40)]
    expected = decoder.search(sound, how)
    encode, seen = model.encode, []

    def breaking(src: torch.Tensor, kept: torch.Tensor | None = None) -> torch.Tensor:
        memory = encode(src, kept)
        memory[(src == 11).any(-1)] = float("inf")
        seen.append(bool((src == 11).any()))
        return memory

    monkeypatch.setattr(model, "encode", breaking)
    broken = [Source([*[11] * 20, 3]) for _ in range(8)]  # longer: not all of it is overwritten
    mixed = [source for pair in zip(broken, sound[:8], strict=True) for source in pair] + sound[8:]
    found = decoder.search(mixed, how)
    assert any(seen)
    assert all(found[number] == [] for number in range(0, 16, 2))
    assert [found[number] for number in (*range(1, 16, 2), *range(16, 48))] == expected


def test_required_phrases_widen_the_beam_of_their_own_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    model = transformer(config())
    made = model.new_cache
    monkeypatch.setattr(model, "new_cache", lambda n, k, *rest: widths.append(k) or made(n, k, *rest))
    asked = [Source([5, 3]), Source([6, 3], required=[[20, 21]]), Source([7, 3])]
    found = BatchDecoder(model, Runtime.resolve("cpu")).search(asked, DecodeSettings(beam_size=3, max_length_ratio=0.1))
    assert sorted(widths) == [3, 5]
    assert "20, 21" in str(found[1][0].tokens)


def test_wide_beams_get_fewer_places(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[int] = []
    model = transformer(config())
    made = model.new_cache
    monkeypatch.setattr(model, "new_cache", lambda n, *rest: places.append(n) or made(n, *rest))
    for beam_size in (5, 256):
        how = DecodeSettings(beam_size=beam_size, max_length_ratio=0.1, batch_tokens=10**6)
        BatchDecoder(model, Runtime.resolve("cpu")).search([Source([5 + n, 3]) for n in range(100)], how)
    assert places == [104, 8]


def test_copies_of_weights_serve_all_searches_where_weights_are_fixed_and_follow_them_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, how = transformer(config(), weights=2.0), DecodeSettings(beam_size=2)
    fixed, free = (BatchDecoder(model, Runtime.resolve("cpu"), fixed=fixed) for fixed in (True, False))
    pack, packed = model.packed_layers, []
    monkeypatch.setattr(model, "packed_layers", lambda: packed.append(1) or pack())
    sources = [Source([5, 6, 3]), Source([7, 3])]
    first = fixed.search(sources, how)
    assert fixed.search(sources, how) == first == free.search(sources, how)
    assert len(packed) == 2
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.w_2.weight.mul_(-3)
    assert free.search(sources, how) != first
    assert len(packed) == 3
