import copy
import random

import pytest
import torch
from decoding_rig import config, sentences, tokenizer, transformer

from transformer_cli.config import Config
from transformer_cli.data.tokenizer import BOS, EOS
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.pool import length_norm
from transformer_cli.decoding.scorer import Scorer
from transformer_cli.decoding.scoring import _ROWS, Pair, _chunks, score_pairs
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.errors import UserError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

HOW = DecodeSettings(beam_size=3, max_length_ratio=1.0)
CPU = Runtime.resolve("cpu")


def pronounced(max_length: int = 40, **model: object) -> tuple[Transformer, Config]:
    how = config(model=model, data={"max_length": max_length})
    return transformer(how, weights=2.0), how


def pairs(n: int, seed: int, longest: int = 9) -> list[Pair]:
    texts = tokenizer().encode_src(sentences(2 * n, seed=seed, longest=longest))
    return [Pair([*src, EOS], tgt) for src, tgt in zip(texts[:n], texts[n:], strict=True)]


@pytest.mark.parametrize(
    "model",
    [{}, {"norm_placement": "post"}, {"positions": "learned"}, {"attention": "naive", "qk_norm": True}],
    ids=str,
)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"beam_size": 1, "no_repeat_ngram": 2},
        {"sampling": True, "top_k": 3},
        {"length_normalization": "plain", "length_penalty": 0.6},
    ],
    ids=str,
)
def test_what_a_search_found_scores_what_it_said(model: dict[str, object], changes: dict[str, object]) -> None:
    subject, _ = pronounced(**model)
    settings = HOW.but(changes)
    asked = [Source(pair.src, number=(n, 0)) for n, pair in enumerate(pairs(7, seed=3))]
    found = BatchDecoder(subject, CPU).search(asked, settings)
    flat = [(source, one) for source, several in zip(asked, found, strict=True) for one in several]
    assert len(flat) >= 7
    again = score_pairs([subject], CPU, [Pair(source.ids, one.tokens) for source, one in flat], settings)
    for (_, one), scored in zip(flat, again, strict=True):
        assert scored.tokens == one.tokens
        assert scored.log_probs == pytest.approx(one.log_probs, abs=1e-5)
        assert scored.score == pytest.approx(one.score, abs=1e-5)


def test_values_are_the_models_own_in_float64() -> None:
    subject, _ = pronounced()
    exact = copy.deepcopy(subject).double()
    asked = pairs(5, seed=4)
    for pair, scored in zip(asked, score_pairs([subject], CPU, asked, HOW), strict=True):
        logits = exact(torch.tensor([pair.src]), torch.tensor([[BOS, *pair.tgt]]))[0].detach()
        expected = logits.log_softmax(-1).gather(1, torch.tensor([*pair.tgt, EOS])[:, None])[:, 0]
        assert scored.log_probs == pytest.approx(expected.tolist(), abs=2e-5)
        assert scored.score == pytest.approx(float(expected.sum()) / length_norm(len(expected), HOW), abs=1e-4)


@pytest.mark.parametrize(
    "model", [{}, {"d_model": 96, "n_heads": 3, "d_ff": 100, "positions": "learned", "max_length": 21}], ids=str
)
def test_a_pair_does_not_depend_on_its_batch(model: dict[str, object]) -> None:
    subject, _ = pronounced(**model)
    asked = pairs(40, seed=5, longest=18)
    assert len({(len(pair.src) > 16, len(pair.tgt) >= 16) for pair in asked}) > 2  # padded to different lengths
    expected = score_pairs([subject], CPU, asked, HOW)
    order = random.Random(1).sample(range(40), 40)
    for changes in ({"batch_size": 1}, {"batch_size": 3}, {"batch_tokens": 64}):
        found = score_pairs([subject], CPU, [asked[n] for n in order], HOW.but(changes))
        assert found == [expected[n] for n in order]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    assert score_pairs([subject], CPU, asked[:9], HOW) == expected[:9]
    torch.set_num_threads(before)


def test_no_chunk_of_rows_is_small() -> None:
    for n in (16, 504, 512, 520, 1016, 1024, 1032, 4096):
        sizes = [len(chunk) for chunk in _chunks(torch.zeros(n, 1))]
        assert sum(sizes) == n
        assert min(sizes) >= min(n, _ROWS)
        assert max(sizes) < 2 * _ROWS


def test_a_model_in_training_stays_as_it_is() -> None:
    subject, _ = pronounced(dropout=0.3)
    asked = pairs(2, seed=6)
    expected = score_pairs([subject], CPU, asked, HOW)
    assert score_pairs([subject.train()], CPU, asked, HOW) == expected
    assert subject.training


def test_text_is_scored_by_its_ids_and_two_blank_lines_score_nothing() -> None:
    subject, how = pronounced()
    lines = [*sentences(6, seed=7, longest=6), " "]
    targets = [*sentences(6, seed=8, longest=60), ""]
    scored = Scorer([subject], tokenizer(), how, CPU).score(lines, targets, HOW)
    ids = zip(tokenizer().encode_src(lines[:6]), tokenizer().encode_tgt(targets[:6]), strict=True)
    expected = score_pairs([subject], CPU, [Pair([*src, EOS], tgt) for src, tgt in ids], HOW)
    assert [(one.score, one.log_probs) for one in scored[:6]] == [(one.score, one.log_probs) for one in expected]
    assert [(one.source, one.target) for one in scored] == list(zip(lines, targets, strict=True))
    assert scored[0].tokens == tokenizer().tgt_pieces(expected[0].tokens)
    assert (scored[-1].score, scored[-1].tokens, scored[-1].log_probs) == (0.0, [], [])


def test_one_blank_side_is_scored() -> None:
    subject, how = pronounced()
    without_source, without_target = Scorer([subject], tokenizer(), how, CPU).score(["", "hund"], ["hund", ""], HOW)
    assert without_source.score < 0 < len(without_source.tokens)
    assert (without_target.tokens, len(without_target.log_probs)) == ([], 1)


def test_learned_positions_have_an_end() -> None:
    subject, how = pronounced(positions="learned")
    scorer = Scorer([subject], tokenizer(), how, CPU)
    scorer.check("hund", "katze")
    for pair in (("hund " * 50, "katze"), ("hund", "katze " * 50)):
        with pytest.raises(UserError, match="longer than the model's positions"):
            scorer.check(*pair)
    subject, how = pronounced()
    Scorer([subject], tokenizer(), how, CPU).check("hund " * 50, "katze " * 50)


def test_a_line_of_which_all_looks_at_all_has_an_end_too() -> None:
    scorer = Scorer([transformer(config())], tokenizer(), config(), CPU)
    scorer.check("q" * 4000, "q" * 4000)
    for src, tgt, side in (("q" * 100_000, "q", "source"), ("q", "q" * 100_000, "target")):
        with pytest.raises(UserError, match=f"the {side} is longer than what is scored as a whole") as raised:
            scorer.check(src, tgt)
        assert raised.value.hint
