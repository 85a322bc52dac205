"""Batches computed side by side: the same gradients as one after the other."""

import threading

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.model.dropout import dropout, dropout_stream
from transformer_cli.training.replicas import Replicas


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1)).double()


def job(seed: int):
    def run(model: nn.Module) -> Tensor:
        x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        with dropout_stream(seed):
            loss = dropout(model(dropout(x, 0.5)), 0.5).square().sum()
        loss.backward()
        return loss.detach()

    return run


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_losses_and_gradients_are_those_of_one_after_the_other(count: int) -> None:
    alone, together = model(), model()
    jobs = [job(seed) for seed in range(5)]
    expected = Replicas(alone, 1).run(jobs)
    replicas = Replicas(together, count)
    for _ in range(2):  # the second time the copies must have no gradient left
        together.zero_grad()
        assert torch.equal(torch.stack(replicas.run(jobs)), torch.stack(expected))
    for mine, theirs in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-12, atol=1e-12)


def test_the_copies_follow_the_weights_and_cost_no_memory() -> None:
    net = model()
    replicas = Replicas(net, 2)
    net[0].weight.data = torch.zeros(3, 4, dtype=torch.float64)  # exchanged, as averaging does
    net[1].bias.data.fill_(2.0)
    seen: list[nn.Module] = []
    replicas.run([lambda m: seen.append(m) or m(torch.ones(4).double()).sum().detach()] * 2)
    assert len({id(m) for m in seen}) == 2  # two at a time never share gradients
    for copy in seen:
        assert [p.data_ptr() for p in copy.parameters()] == [p.data_ptr() for p in net.parameters()]


def test_an_error_in_one_thread_is_raised_after_the_others_have_ended() -> None:
    ended = threading.Event()

    def fail(_: nn.Module) -> Tensor:
        raise RuntimeError("not enough memory")

    def succeed(_: nn.Module) -> Tensor:
        ended.set()
        return torch.zeros(())

    with pytest.raises(RuntimeError, match="not enough memory"):
        Replicas(model(), 2).run([fail, succeed])
    assert ended.is_set()
