import random
from pathlib import Path

import pytest
import torch
from decoding_rig import (
    N_SPECIAL,
    TableModel,
    config,
    exhaustive,
    run_search,
    sentences,
    settings,
    tokenizer,
    transformer,
)
from torch import Tensor

from transformer_cli.checkpoint import RunFolder, build_model
from transformer_cli.config import Config, TokenizerConfig
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.ensemble import EnsembleSteps, mean_log_probs
from transformer_cli.decoding.scorer import Scorer
from transformer_cli.decoding.scoring import Pair, score_pairs
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError, UserError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime

CPU = Runtime.resolve("cpu")
HOW = DecodeSettings(beam_size=3, max_length_ratio=0.5)


class MeanTable(TableModel):
    """The oracle: the mean of the probabilities of several tables."""

    def __init__(self, tables: list[TableModel]) -> None:
        super().__init__(0, tables[0].vocab_size)
        self.tables = tables

    def log_probs(self, row: tuple[int, ...]) -> Tensor:
        return torch.stack([table.log_probs(row).double().exp() for table in self.tables]).mean(0).log().float()


def members() -> list[Transformer]:
    """Models of different shapes, one with learned positions."""
    shapes = [
        {},
        {"d_model": 48, "n_heads": 2, "decoder_layers": 1, "positions": "learned"},
        {"norm_placement": "post"},
    ]
    return [transformer(config(model=shape), weights=2.0, seed=n) for n, shape in enumerate(shapes)]


def asked(n: int, seed: int = 1, longest: int = 8) -> list[Source]:
    ids = tokenizer().encode_src(sentences(n, seed=seed, longest=longest))
    return [Source([*one, EOS], number=(number, 0)) for number, one in enumerate(ids)]


@pytest.mark.parametrize("n_members", [2, 3])
def test_the_search_finds_the_best_under_the_mean_of_probabilities(n_members: int) -> None:
    caps = [1, 2, 3, 4]
    for seed in range(3):
        tables = [TableModel(10 * seed + n, N_SPECIAL + 3, 1.5) for n in range(n_members)]
        how = settings(beam_size=27, n_best=3)
        found = run_search(EnsembleSteps(tables), caps, how, n_places=2)
        for sentence, cap in enumerate(caps):
            expected = exhaustive(MeanTable(tables), sentence, cap, how)[:3]
            ours = found[sentence][: len(expected)]
            assert [h.tokens for h in ours] == [h.tokens for h in expected]
            assert [h.score for h in ours] == pytest.approx([h.score for h in expected], abs=1e-3)


def test_one_model_alone_is_left_as_it_is() -> None:
    log_probs = torch.randn(3, 5).log_softmax(-1)
    assert mean_log_probs([log_probs]) is log_probs
    assert torch.allclose(mean_log_probs([log_probs] * 3), log_probs, atol=1e-6)
    assert mean_log_probs([torch.tensor([-torch.inf, 0.0])] * 2).tolist() == [-torch.inf, 0.0]


def test_a_model_and_its_copy_translate_as_it_does_alone() -> None:
    model = members()[0]
    alone = BatchDecoder(model, CPU).search(asked(8), HOW)
    twice = BatchDecoder(model, CPU, [model]).search(asked(8), HOW)
    for one, two in zip(alone, twice, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in two]
        assert [h.score for h in one] == pytest.approx([h.score for h in two], abs=1e-5)


@pytest.mark.parametrize("changes", [{}, {"sampling": True}, {"beam_size": 1}], ids=str)
def test_models_of_any_shape_answer_together_whatever_the_batch(changes: dict[str, object]) -> None:
    first, *others = members()
    together, how, sources = BatchDecoder(first, CPU, others), HOW.but(changes), asked(20)
    expected = together.search(sources, how)
    order = random.Random(2).sample(range(20), 20)
    for size in (1, 6):
        found = together.search([sources[n] for n in order], how.but({"batch_size": size}))
        assert found == [expected[n] for n in order]
    alone = [BatchDecoder(model, CPU).search(sources, how) for model in (first, *others)]
    assert all(expected != of_one for of_one in alone)
    flat = [(source, one) for source, several in zip(sources, expected, strict=True) for one in several]
    scored = score_pairs([first, *others], CPU, [Pair(source.ids, one.tokens) for source, one in flat], how)
    for (_, one), again in zip(flat, scored, strict=True):
        assert again.log_probs == pytest.approx(one.log_probs, abs=1e-5)


def test_the_fewest_positions_are_the_limit() -> None:
    first, *others = members()
    far = HOW.but({"min_length": 1000, "max_length_ratio": 20.0})
    found = BatchDecoder(first, CPU, others).search(asked(2, longest=9), far)
    assert {len(several[0].tokens) for several in found} == {39}


def saved(folder: Path, how: Config, tokens: Tokenizer | None = None, seed: int = 0) -> Path:
    run = RunFolder.create(folder, how, tokens or tokenizer(), {}, overwrite=False)
    run.save_model(dict(transformer(how, weights=2.0, seed=seed).named_parameters()))
    return folder


def test_runs_of_one_tokenizer_and_languages_translate_and_score_together(tmp_path: Path) -> None:
    runs = [saved(tmp_path / str(n), config(), seed=n) for n in range(2)]
    together = Translator.from_runs(runs)
    lines = sentences(5, seed=6, longest=5)
    found = list(together.stream(lines, HOW))
    models = [transformer(config(), weights=2.0, seed=n) for n in range(2)]
    ids = [[*one, EOS] for one in tokenizer().encode_src(lines)]
    expected = BatchDecoder(models[0], CPU, models[1:]).search([Source(one) for one in ids], HOW)
    assert [one.hypotheses[0].score for one in found] == [several[0].score for several in expected]
    scored = Scorer.from_runs(runs).score(lines, lines, HOW)
    again = score_pairs(models, CPU, [Pair(one, one[:-1]) for one in ids], HOW)
    assert [one.score for one in scored] == [one.score for one in again]


def test_runs_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    first = saved(tmp_path / "first", config())
    text = sentences(100, seed=9)
    other = train_tokenizer(TokenizerConfig(vocab_size=380, character_coverage=1.0), text, text, lambda _: None)
    how = config()
    run = RunFolder.create(tmp_path / "other", how, other, {}, overwrite=False)
    run.save_model(dict(build_model(how, other).named_parameters()))
    with pytest.raises(UserError, match="different tokenizers") as caught:
        Translator.from_runs([first, run.path])
    assert other.sha256[:16] in str(caught.value)
    german = saved(tmp_path / "german", config(data={"src_lang": "de", "tgt_lang": "en"}))
    with pytest.raises(UserError, match="different languages"):
        Translator.from_runs([first, german])
    with pytest.raises(RunError):
        Translator.from_runs([first, tmp_path / "none"])
