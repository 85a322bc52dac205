import pytest
import torch
from torch import nn
from training_rig import small_config, small_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.training import optimizer as optimizing


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


def stepped(model, optimizers, steps=3):
    for step in range(steps):
        torch.manual_seed(step)
        model(torch.tensor([0, 1, 2])).square().sum().backward()
        optimizing.set_learning_rate(optimizers, 0.01)
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()


def built(model, **train):
    return optimizing.build_optimizers(model, small_config(**train).train)


def test_only_matrices_decay_and_no_embedding_tables():
    model = Toy()
    (optimizer,) = built(model, weight_decay=0.1)
    groups = optimizer.param_groups
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
        stepped(model, built(model, weight_decay=0.1))
        results.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*results)


def test_stored_moments_continue_bit_by_bit():
    torch.manual_seed(0)
    model, fresh = Toy(), Toy()
    optimizers = built(model, weight_decay=0.1)
    stepped(model, optimizers)
    stored = {name: tensor.clone() for name, tensor in optimizing.optimizer_tensors(model, optimizers).items()}
    fresh.load_state_dict(model.state_dict())
    restored = built(fresh, weight_decay=0.1)
    optimizing.restore_optimizers(fresh, restored, stored)
    stepped(model, optimizers)
    stepped(fresh, restored)
    for a, b in zip(model.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("clip", "expected"), [(None, 5.0), (1.0, 1.0), (10.0, 5.0)])
def test_clipping_returns_the_norm_before_it(clip, expected):
    model = nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    norm = optimizing.gradient_norm(model)
    optimizing.clip_gradients(model, norm, clip)
    assert norm.item() == pytest.approx(5.0)
    assert model.weight.grad.norm().item() == pytest.approx(expected, rel=1e-5)


def transformer(**model):
    torch.manual_seed(0)
    return build_model(small_config(model=model), small_tokenizer())


def with_gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("tie", ["none", "all"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_muon_gets_the_matrices_inside_the_layers_and_adamw_everything_else(tie, positions):
    model = transformer(tie_embeddings=tie, positions=positions, activation="swiglu")
    adamw, muon = built(model, optimizer="muon")
    names = {id(p): name for name, p in model.named_parameters()}
    mine = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    rest = [names[id(p)] for group in adamw.param_groups for p in group["params"]]
    maps = ("q_proj", "k_proj", "v_proj", "out_proj", "w_1", "w_2", "w_g")
    assert mine == {name for name in names.values() if name.split(".")[-2:] in [[m, "weight"] for m in maps]}
    assert sorted([*mine, *rest]) == sorted(names.values())
    assert {"encoder.layers.0.feed_forward.w_g.weight", "decoder.layers.0.cross_attn.k_proj.weight"} <= mine
    assert not any("embedding" in name or name.startswith("output") for name in mine)


def test_both_rates_follow_the_schedule_in_a_constant_ratio():
    optimizers = built(transformer(), optimizer="muon", lr=0.01, muon_lr=0.03)
    for rate in (0.01, 0.0007):
        optimizing.set_learning_rate(optimizers, rate)
        adamw, muon = ([group["lr"] for group in optimizer.param_groups] for optimizer in optimizers)
        assert adamw == [rate] * len(adamw)
        assert muon == pytest.approx([3 * rate])


def test_without_a_rate_of_its_own_muon_has_that_of_adamw():
    optimizers = built(transformer(), optimizer="muon")
    optimizing.set_learning_rate(optimizers, 0.01)
    assert {group["lr"] for optimizer in optimizers for group in optimizer.param_groups} == {0.01}


def test_stored_momenta_continue_bit_by_bit():
    runs = []
    for is_stopped in (False, True):
        model = transformer()
        optimizers = built(model, optimizer="muon", weight_decay=0.1)
        for step in range(6):
            if is_stopped and step == 3:
                stored = {k: t.clone() for k, t in optimizing.optimizer_tensors(model, optimizers).items()}
                optimizers = built(model, optimizer="muon", weight_decay=0.1)
                optimizing.restore_optimizers(model, optimizers, stored)
            with_gradients(model, step)
            optimizing.set_learning_rate(optimizers, 0.01)
            for optimizer in optimizers:
                optimizer.step()
        runs.append([p.detach() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_a_matrix_is_stored_with_its_momentum_only():
    model = transformer()
    optimizers = built(model, optimizer="muon")
    with_gradients(model, 0)
    for optimizer in optimizers:
        optimizer.step()
    stored = optimizing.optimizer_tensors(model, optimizers)
    matrix, bias = "encoder.layers.0.feed_forward.w_1.weight", "encoder.layers.0.feed_forward.w_1.bias"
    assert [name for name in stored if name.endswith(matrix)] == [f"momentum.{matrix}"]
    assert {name.split(".")[0] for name in stored if name.endswith(bias)} == {"step", "exp_avg", "exp_avg_sq"}


def test_a_matrix_without_a_gradient_stays_and_the_others_move_alike():
    whole, partial = transformer(), transformer()
    for model in (whole, partial):
        with_gradients(model, 0)
    left_out = "decoder.layers.0.self_attn.q_proj.weight"
    dict(partial.named_parameters())[left_out].grad = None
    before = dict(partial.named_parameters())[left_out].detach().clone()
    for model in (whole, partial):
        optimizers = built(model, optimizer="muon", weight_decay=0.1)
        optimizing.set_learning_rate(optimizers, 0.01)
        optimizers[1].step()
    assert torch.equal(dict(partial.named_parameters())[left_out], before)
    for (name, a), b in zip(whole.named_parameters(), partial.parameters(), strict=True):
        assert name == left_out or torch.allclose(a, b, atol=1e-6)
