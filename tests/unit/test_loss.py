import pytest
import torch
from training_rig import runtime, small_config, small_pairs, small_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.data.batching import TokenizedPairs, collate
from transformer_cli.data.tokenizer import PAD
from transformer_cli.runtime import Runtime
from transformer_cli.training import chunked_head
from transformer_cli.training.loss import dev_loss, linear_cross_entropy, summed_loss
from transformer_cli.training.validation import is_better


def smoothed_by_hand(logits, targets, epsilon):
    """Szegedy et al. 2016, section 7: q = (1 - epsilon) * one-hot + epsilon / V."""
    log_p = logits.log_softmax(-1)
    total = 0.0
    for row, target in zip(log_p.flatten(0, 1), targets.flatten(), strict=True):
        if target != PAD:
            total -= (1 - epsilon) * row[target] + epsilon * row.mean()
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_loss_is_the_sum_over_tokens_that_are_not_padding(epsilon):
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 3, 7), torch.tensor([[4, 5, 3], [6, 3, PAD]])
    torch.testing.assert_close(summed_loss(logits, targets, epsilon), smoothed_by_hand(logits, targets, epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("n_rows", [1, 7, 70])  # less than a chunk, a whole one, several
def test_the_chunked_loss_has_the_value_and_the_gradients_of_the_plain_one(monkeypatch, epsilon, n_rows):
    monkeypatch.setitem(chunked_head._PART, "cpu", 16 * 50)
    monkeypatch.setitem(chunked_head._CHUNK, "cpu", 2 * 16 * 50)  # chunks of two parts, the last one shorter
    torch.manual_seed(0)
    hidden = torch.randn(n_rows, 3, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(50, 8, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 50, (n_rows, 3))  # PAD is among them
    targets[0, 0] = 1
    plain, chunked = (
        summed_loss(hidden @ weight.T, targets, epsilon), linear_cross_entropy(hidden, weight, targets, epsilon)
    )  # fmt: skip
    torch.testing.assert_close(chunked, plain, rtol=1e-12, atol=1e-12)
    expected = torch.autograd.grad(3 * plain, [hidden, weight])
    torch.testing.assert_close(torch.autograd.grad(3 * chunked, [hidden, weight]), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_positions", [1, 256, 300, 5000])
def test_a_small_vocabulary_does_not_fill_a_batch_up_with_rows(n_positions):
    rows, _ = chunked_head._sizes(torch.empty(n_positions, 8), n_classes=50)  # a part could hold 5,240
    assert n_positions <= rows < n_positions + 256
    assert chunked_head._sizes(torch.empty(n_positions, 8), n_classes=10**6) == (16, 16)


def test_the_chunked_loss_of_a_hopeless_token_is_exact():
    hidden, weight = torch.tensor([[200.0]]), torch.tensor([[1.0], [0.0], [0.0]])  # its probability underflows
    assert linear_cross_entropy(hidden, weight, torch.tensor([1])).item() == 200.0


def test_the_chunked_loss_under_autocast_is_close(monkeypatch):
    monkeypatch.setitem(chunked_head._PART, "cpu", 16 * 100)  # 30 rows are two parts, the second one not full
    torch.manual_seed(0)
    hidden, weight = torch.randn(30, 64, requires_grad=True), torch.randn(100, 64, requires_grad=True)
    targets = torch.randint(0, 100, (30,))
    expected = summed_loss(hidden @ weight.T, targets, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        got = linear_cross_entropy(hidden, weight, targets, 0.1)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=1e-2, atol=0.0)
    for low, exact in zip(
        torch.autograd.grad(got, [hidden, weight]), torch.autograd.grad(expected, [hidden, weight]), strict=True
    ):
        assert (low - exact).norm() < 0.02 * exact.norm()


def test_dev_loss_does_not_depend_on_the_batches():
    model, pairs = build_model(small_config(), small_tokenizer()), small_pairs(20)
    one_by_one = []
    model.eval()
    for i in range(20):
        batch = collate(TokenizedPairs(pairs.src[i : i + 1], pairs.tgt[i : i + 1]), [0])
        one_by_one.append(summed_loss(model(batch.src, batch.tgt_in), batch.tgt_out).item())
    expected = sum(one_by_one) / sum(len(tgt) for tgt in pairs.tgt)
    for batch_tokens in (1, 60, 10_000):
        assert dev_loss(model, pairs, runtime(), batch_tokens) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("amp", ["off", "bf16"])
def test_dev_loss_holds_no_more_logits_than_a_chunk(monkeypatch, amp):
    model, pairs, how = build_model(small_config(), small_tokenizer()), small_pairs(20), Runtime.resolve("cpu", amp)
    expected, n_rows, project = dev_loss(model, pairs, how, 10_000), [], type(model).project
    monkeypatch.setitem(chunked_head._CHUNK, "cpu", 16 * len(model.output.weight))
    monkeypatch.setattr(
        type(model), "project", lambda self, hidden: n_rows.append(len(hidden)) or project(self, hidden)
    )
    assert dev_loss(model, pairs, how, 10_000) == pytest.approx(expected, rel=1e-5)
    assert (max(n_rows), sum(n_rows)) == (16, sum(map(len, pairs.tgt)))


def test_dev_loss_draws_no_random_number_and_puts_the_mode_back():
    model = build_model(small_config(), small_tokenizer()).train()
    before = torch.get_rng_state()
    dev_loss(model, small_pairs(5), runtime(), 60)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training


@pytest.mark.parametrize(
    ("new", "old", "metric", "expected"),
    [
        ({"bleu": 1.0, "loss": 9.0}, None, "bleu", True),
        ({"bleu": 2.0, "loss": 9.0}, {"bleu": 1.0, "loss": 1.0}, "bleu", True),
        ({"bleu": 2.0, "loss": 9.0}, {"bleu": 1.0, "loss": 1.0}, "loss", False),
        ({"bleu": 1.0, "loss": 1.0}, {"bleu": 1.0, "loss": 1.0}, "loss", False),
        ({"bleu": 1.0, "loss": 1.0}, {"bleu": 1.0, "loss": 1.0}, "bleu", False),
        ({"bleu": 0.0, "loss": 5.0}, {"bleu": 0.0, "loss": 6.0}, "bleu", False),
        ({"bleu": 0.0, "loss": float("nan")}, {"bleu": 0.0, "loss": 5.0}, "loss", False),
        ({"bleu": 0.0, "loss": 5.0}, {"bleu": 0.0, "loss": float("nan")}, "loss", True),
    ],
)
def test_which_validation_is_better(new, old, metric, expected):
    assert is_better(new, old, metric) is expected
