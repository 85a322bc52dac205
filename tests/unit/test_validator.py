"""The validator reports what it measured and leaves the training alone."""

import math

import pytest
import torch
from torch import nn

from transformer_cli.config import Config
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.pairs import ParallelText
from transformer_cli.errors import DataError
from transformer_cli.evaluation import Validator, score
from transformer_cli.runtime import Runtime

CONFIG = Config.model_validate({"data": {"corpus": "phrasebook"}, "train": {"max_steps": 1}})
RUNTIME = Runtime(torch.device("cpu"), None, 1)
DEV = ParallelText([f"source {i}" for i in range(10)], [f"Das ist der Satz {i} ." for i in range(10)])


class Uniform(nn.Module):
    """Gives every token of a vocabulary of 50 the same probability."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.output = nn.Dropout(0.5), nn.Linear(4, 50, bias=False)
        nn.init.zeros_(self.output.weight)

    def encode(self, src: torch.Tensor) -> torch.Tensor:
        return src

    def decode(self, tgt_in: torch.Tensor, memory: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.ones(*tgt_in.shape, 4))

    def project(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.output(hidden)


@pytest.fixture(scope="module")
def pairs():
    import numpy as np

    return TokenizedPairs([np.array([5, 3], dtype=np.int32)] * 10, [np.array([6, 7, 3], dtype=np.int32)] * 10)


def test_reports_loss_bleu_and_the_same_samples(pairs):
    outputs = [*DEV.tgt[:6], *["Immer derselbe Satz ."] * 4]
    validator = Validator(DEV, pairs, CONFIG, lambda model, lines: outputs, RUNTIME)
    found = validator(Uniform(), 7)
    assert found.loss == pytest.approx(math.log(50), rel=1e-5)
    assert found.perplexity == pytest.approx(50, rel=1e-4)
    expected = score(outputs, [DEV.tgt], tgt_lang="de")[0]
    assert (found.bleu, found.signature) == (expected.value, expected.signature)
    assert found.repeated_share == 0.3  # 4 equal lines repeat one of them 3 times
    assert found.samples == [(DEV.src[i], DEV.tgt[i], outputs[i]) for i in (0, 3, 6)]


def test_leaves_mode_and_random_numbers_alone(pairs):
    model, seen = Uniform().train(), []

    def translate(model: nn.Module, lines: list[str]) -> list[str]:
        seen.append(model.training)
        return list(lines)

    state = torch.get_rng_state()
    Validator(DEV, pairs, CONFIG, translate, RUNTIME)(model, 1)
    assert seen == [False]
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_short_dev_set_has_as_many_samples(pairs):
    one = ParallelText(["a"], ["b"])
    found = Validator(one, pairs, CONFIG, lambda model, lines: ["c"], RUNTIME)(Uniform(), 1)
    assert found.samples == [("a", "b", "c")]


def test_dev_set_of_over_long_pairs_is_refused():
    with pytest.raises(DataError, match="every dev pair is longer"):
        Validator(DEV, TokenizedPairs([], []), CONFIG, lambda model, lines: [], RUNTIME)
