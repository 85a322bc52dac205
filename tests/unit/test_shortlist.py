"""Which pieces a line's translation is made of, and that a search with lists is a search among them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from decoding_rig import config, sentences, tokenizer, transformer
from torch import Tensor

from transformer_cli.checkpoint.tensor_files import to_bytes
from transformer_cli.config import TokenizerConfig
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.decoding.model_steps import ModelSteps
from transformer_cli.decoding.own_output import OwnOutput
from transformer_cli.decoding.phrases import Phrases
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.scoring import Pair, score_pairs
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.shortlist import SHORTLIST, Shortlist
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError, UserError
from transformer_cli.runtime import Runtime

CPU = Runtime.resolve("cpu")
V = tokenizer().tgt_vocab_size
HOW = DecodeSettings(beam_size=3, max_length_ratio=0.5, shortlist=True)
SEARCHES = [{"beam_size": 1}, {"beam_size": 3}, {"sampling": True}, {"sampling": True, "top_p": 0.9, "top_k": 20}]
SEARCHES += [{"no_repeat_ngram": 1, "min_length": 3}]


def asked(n: int, seed: int = 1, longest: int = 8) -> list[Source]:
    ids = tokenizer().encode_src(sentences(n, seed=seed, longest=longest))
    return [Source([*one, EOS], number=(number, 0)) for number, one in enumerate(ids)]


def listed(sources: Sequence[Source], sizes: Sequence[int] = (20, 33, 48, 60)) -> list[Source]:
    """Give each its own random list, a function of its number."""
    return [replace(one, listed=own_list(one.number[0], sizes[one.number[0] % len(sizes)])) for one in sources]


def own_list(number: int, size: int) -> np.ndarray:
    chosen = random.Random(number).sample(range(4, V), size)
    return np.array([0, 1, 2, 3, *sorted(chosen)])


def small() -> Shortlist:
    """Every source piece adds the two pieces behind it."""
    ids = np.arange(V, dtype=np.int32)
    return Shortlist(np.arange(10), np.stack([(ids + 1) % V, (ids + 2) % V], axis=1))


def whole() -> Shortlist:
    return Shortlist(np.arange(V), np.full((V, 1), -1, dtype=np.int32))


# The list of a line


def test_it_is_learned_from_pairs_with_what_every_line_may_need() -> None:
    tokens = tokenizer()
    words = {word: tokens.encode_tgt([word])[0][0] for word in ("rot", "see", "hund", "weg")}
    rot, see, hund, weg = words.values()
    sides = [([50, EOS], [rot, EOS]), ([51, EOS], [see, EOS]), ([50, 51, EOS], [rot, see, EOS]), ([52], [hund] * 9)]
    arrays = [[np.array(ids, dtype=np.int32) for ids in side] for side in zip(*sides, strict=True)]
    made = Shortlist.fitted(TokenizedPairs(*arrays), tokens, per_piece=2, frequent=1)
    pieces = tokens.tgt_pieces(range(V))
    always = [number for number, piece in enumerate(pieces) if piece.startswith("<0x")]
    assert len(always) == 256
    assert made.always.tolist() == sorted([0, 1, 2, 3, *always, hund])  # the most frequent
    assert made.of([50]).tolist() == sorted({*made.always.tolist(), rot, EOS})
    assert made.of([50, 51, 50]).tolist() == sorted({*made.always.tolist(), rot, see, EOS})
    assert made.of([99]).tolist() == made.always.tolist()  # never seen
    assert weg not in made.of([50, 51, 52])
    assert weg not in Shortlist.fitted(TokenizedPairs(*arrays), tokens, per_piece=2, frequent=V).always


def test_a_list_is_the_union_of_those_of_its_pieces() -> None:
    made = small()
    assert made.of([20, 40, 20]).tolist() == [*range(10), 21, 22, 41, 42]
    assert made.of([V - 1]).tolist() == list(range(10))


def test_it_comes_back_from_a_run(tmp_path: Path) -> None:
    path = small().save(tmp_path, tokenizer())
    assert path == tmp_path / SHORTLIST
    again = Shortlist.load(tmp_path, tokenizer())
    assert again.of([20]).tolist() == small().of([20]).tolist()
    assert again.fingerprint == small().fingerprint != whole().fingerprint


def other_tokenizer() -> Tokenizer:
    text = sentences(100, seed=9)
    return train_tokenizer(TokenizerConfig(vocab_size=380, character_coverage=1.0), text, text, lambda _: None)


def test_what_is_no_shortlist_of_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"tfm shortlist --run {tmp_path}"):
        Shortlist.load(tmp_path, tokenizer())
    small().save(tmp_path, other_tokenizer())
    with pytest.raises(RunError, match="another tokenizer"):
        Shortlist.load(tmp_path, tokenizer())
    always, of_pieces = torch.arange(10), torch.zeros(V, 2, dtype=torch.int32)
    for tensors in (
        {"always": always},
        {"always": always[1:], "of_pieces": of_pieces},
        {"always": torch.cat([always, always[:1]]), "of_pieces": of_pieces},
        {"always": always, "of_pieces": of_pieces[1:]},
        {"always": always, "of_pieces": of_pieces.long()},
        {"always": always, "of_pieces": of_pieces + V},
        {"always": always[None], "of_pieces": of_pieces},
    ):
        (tmp_path / SHORTLIST).write_bytes(to_bytes(tensors, tokenizer().sha256))
        with pytest.raises(RunError, match="is no shortlist"):
            Shortlist.load(tmp_path, tokenizer())


# The output layer


def test_each_place_gets_the_log_probabilities_among_its_own() -> None:
    torch.manual_seed(0)
    weight, hidden = torch.randn(V, 32), torch.randn(16, 3, 32)
    lists = [own_list(number, 20 + number) for number in range(16)]
    output = OwnOutput(weight, 16, 39)
    output.admit(list(range(16)), lists)
    found = output.log_probs(hidden).view(16, 3, -1)
    assert found.size(2) == 48
    for place, own in enumerate(lists):
        expected = (hidden[place].double() @ weight[torch.from_numpy(own)].double().t()).log_softmax(-1)
        assert torch.allclose(found[place, :, : len(own)].double(), expected, atol=1e-5)
        assert (found[place, :, len(own) :] == -torch.inf).all()
        ids = output.ids(torch.tensor([[3, 4, len(own) - 1]] * 16))[place]
        assert ids.tolist() == own[[3, 4, -1]].tolist()


def bits(weight: Tensor, hidden: Tensor, lists: Sequence[np.ndarray], longest: int) -> list[Tensor]:
    """Return the log-probabilities of the first three places."""
    output = OwnOutput(weight, len(hidden), longest)
    output.admit(list(range(len(lists))), lists)
    return [output.log_probs(hidden).view(len(hidden), -1)[place, : len(lists[place])] for place in range(3)]


@pytest.mark.parametrize("width", [32, 96, 128, 512])
def test_no_bit_of_a_place_depends_on_the_lists_of_others(width: int) -> None:
    torch.manual_seed(width)
    weight, hidden = torch.randn(V, width), torch.randn(24, 1, width)
    mine = [own_list(number, 17 + 9 * number) for number in range(3)]
    alone = bits(weight, hidden, mine, 40)
    for others, longest in ([own_list(9, 5)], 60), ([own_list(n, 90) for n in range(9, 20)], 200), ([np.arange(V)], V):
        beside = bits(weight, hidden, [*mine, *others], longest)
        assert all(torch.equal(one, other) for one, other in zip(alone, beside, strict=True))


# The search


@pytest.mark.parametrize("changes", SEARCHES, ids=str)
def test_a_list_that_holds_the_whole_vocabulary_changes_nothing(changes: dict[str, object]) -> None:
    decoder, how = BatchDecoder(transformer(config(), weights=2.0), CPU), HOW.but(changes)
    expected = decoder.search(asked(12), how)
    assert decoder.search([replace(one, listed=np.arange(V)) for one in asked(12)], how) == expected


@pytest.mark.parametrize("changes", SEARCHES, ids=str)
def test_translations_are_made_of_their_lists_whatever_the_batch(changes: dict[str, object]) -> None:
    decoder, how = BatchDecoder(transformer(config(), weights=2.5), CPU), HOW.but(changes)
    sources = listed(asked(24, longest=6))
    expected = decoder.search(sources, how)
    assert len({tuple(found[0].tokens) for found in expected}) > 12
    for source, found in zip(sources, expected, strict=True):
        assert all(set(one.tokens) <= set(source.listed.tolist()) for one in found)  # type: ignore[union-attr]
    order = random.Random(3).sample(range(24), 24)
    for size, refill in (7, True), (50, False):
        again = decoder.search([sources[n] for n in order], how.but({"batch_size": size, "refill": refill}))
        assert again == [expected[n] for n in order]
    assert [decoder.search([source], how)[0] for source in sources[:4]] == expected[:4]


def among(model: torch.nn.Module, source: Source, found: Finished) -> list[float]:
    """Return the log-probabilities of tokens among those of a list, from a pass over the whole translation."""
    own = torch.from_numpy(source.listed)
    src, tgt_in = torch.tensor([list(source.ids)]), torch.tensor([[2, *found.tokens]])
    with torch.no_grad():
        log_probs = model(src, tgt_in)[0][:, own].log_softmax(-1)  # [T, L]
    at = np.searchsorted(source.listed, [*found.tokens, EOS])  # type: ignore[arg-type]
    return log_probs[torch.arange(len(at)), torch.from_numpy(at)].tolist()


def test_log_probabilities_are_those_among_the_list() -> None:
    model = transformer(config(), weights=2.0)
    sources = listed(asked(10))
    for source, found in zip(sources, BatchDecoder(model, CPU).search(sources, HOW), strict=True):
        assert found[0].log_probs == pytest.approx(among(model, source, found[0]), abs=1e-4)
        over_all = score_pairs([model], CPU, [Pair(list(source.ids), found[0].tokens)], HOW)[0]
        assert sum(over_all.log_probs) < sum(found[0].log_probs)


def test_several_models_and_a_place_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (transformer(config(), weights=2.0, seed=seed) for seed in range(2))
    sources = listed(asked(12, longest=6))
    together = BatchDecoder(first, CPU, [second])
    expected = together.search(sources, HOW)
    assert together.search(sources, HOW.but({"batch_size": 3})) == expected
    assert expected != BatchDecoder(first, CPU).search(sources, HOW)
    alone, encode = BatchDecoder(first, CPU).search(sources, HOW), first.encode
    broken = replace(sources[0], ids=[11] * 9)
    monkeypatch.setattr(
        first, "encode", lambda src: encode(src).masked_fill((src == 11).any(-1)[:, None, None], torch.inf)
    )
    found = BatchDecoder(first, CPU).search([broken, *sources], HOW.but({"batch_size": 3}))
    assert found == [[], *alone]


def test_a_sentence_without_a_list_is_searched_as_ever() -> None:
    steps = BatchDecoder(transformer(config()), CPU)._steps(transformer(config()), asked(2), 16, 1)
    assert isinstance(steps, ModelSteps)
    assert steps._own is None


# Wishes


def translator(shortlist: Shortlist | None = None) -> Translator:
    model = transformer(config(), weights=2.0)
    return Translator.of_model(model, tokenizer(), config(), CPU, shortlist=shortlist)


def test_what_is_wished_comes_out_though_it_is_not_in_the_list() -> None:
    subject, lines = translator(small()), ["hund weg", "katze", "ein boot"]
    wanted = "wald"
    ids = tokenizer().encode_tgt([wanted])[0]
    assert not set(ids) & set(small().of(tokenizer().encode_src(lines[:1])[0]).tolist())
    glossary = subject.wishes.glossary({"hund": wanted})
    found = subject.translate_window(lines, HOW, phrases=Phrases(glossary, None))
    free = subject.translate_window(lines, HOW)
    assert wanted in found[0].text
    assert wanted not in free[0].text
    assert found[1:] == free[1:]
    prefixed = subject.translate_window(lines, HOW, prefixes=[wanted, None, None])
    assert prefixed[0].hypotheses[0].tokens[: len(ids)] == tokenizer().tgt_pieces(ids)
    assert prefixed[1:] == free[1:]


def test_what_is_forbidden_stays_away_by_the_numbers_of_the_list() -> None:
    surfaces = [b"", b"", b"", b"", b"a", b"b", b"ab", b"c"]
    automaton = ForbiddenPhrases(["ab"], surfaces)
    assert automaton.blocked(0) == [6]
    own = automaton.among([0, 1, 2, 3, 4, 6, 7])
    assert (own.blocked(0), automaton.blocked(0)) == ([5], [6])
    assert own.step(0, 4) == automaton.step(0, 4) != 0
    subject, lines = translator(small()), sentences(6, seed=3, longest=4)
    free = subject.translate_window(lines, HOW)
    said = {piece for one in free for piece in one.hypotheses[0].tokens if len(piece) == 2}
    assert said
    phrases = sorted(piece.replace("\u2581", " ") for piece in said)
    found = subject.translate_window(lines, HOW, phrases=Phrases(None, subject.wishes.forbid(phrases)))
    assert not any(phrase in f" {one.text}"[1:] for one in found for phrase in phrases)


def test_translators_with_and_without_a_shortlist() -> None:
    lines = sentences(6, seed=3, longest=4)
    plain = HOW.but({"shortlist": False})
    assert translator(whole()).translate_window(lines, HOW) == translator().translate_window(lines, plain)
    assert translator(small()).translate_window(lines, HOW) != translator().translate_window(lines, plain)
    assert translator(small()).translate_window(lines, plain) == translator().translate_window(lines, plain)
    with pytest.raises(UserError, match="our own engine"):
        translator().translate_window(lines, HOW)
    assert "shortlist" in HOW.describe()
    assert "shortlist" not in plain.describe()
