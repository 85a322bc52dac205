import pytest
import torch
from torch import nn

from transformer_cli.training import optimizer as adamw


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(5, 4)
        self.inner = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.output = nn.Linear(4, 5, bias=False)
        self.output.weight = self.tokens.weight

    def forward(self, ids):
        return self.output(self.norm(self.inner(self.tokens(ids))))


def stepped(model, optimizer, steps=3):
    for step in range(steps):
        torch.manual_seed(step)
        model(torch.tensor([0, 1, 2])).square().sum().backward()
        adamw.set_learning_rate(optimizer, 0.01)
        optimizer.step()
        optimizer.zero_grad()


def test_only_matrices_decay_and_no_embedding_tables():
    model = Toy()
    groups = adamw.build_optimizer(model, 0.1).param_groups
    assert [p is model.inner.weight for p in groups[0]["params"]] == [True]
    assert groups[0]["weight_decay"] == 0.1
    assert {id(p) for p in groups[1]["params"]} == {
        id(p) for p in (model.tokens.weight, model.inner.bias, model.norm.weight, model.norm.bias)
    }
    assert groups[1]["weight_decay"] == 0.0


def test_two_identical_runs_are_bit_identical():
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        model = Toy()
        stepped(model, adamw.build_optimizer(model, 0.1))
        results.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*results)


def test_stored_moments_continue_bit_by_bit():
    torch.manual_seed(0)
    model, fresh = Toy(), Toy()
    optimizer = adamw.build_optimizer(model, 0.1)
    stepped(model, optimizer)
    stored = {name: tensor.clone() for name, tensor in adamw.optimizer_tensors(model, optimizer).items()}
    fresh.load_state_dict(model.state_dict())
    restored = adamw.build_optimizer(fresh, 0.1)
    adamw.restore_optimizer(fresh, restored, stored)
    stepped(model, optimizer)
    stepped(fresh, restored)
    for a, b in zip(model.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("clip", "expected"), [(None, 5.0), (1.0, 1.0), (10.0, 5.0)])
def test_clipping_returns_the_norm_before_it(clip, expected):
    model = nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    norm = adamw.gradient_norm(model)
    adamw.clip_gradients(model, norm, clip)
    assert norm.item() == pytest.approx(5.0)
    assert model.weight.grad.norm().item() == pytest.approx(expected, rel=1e-5)
