"""Computing a part again in the backward pass: the same bits, the same masks, less memory."""

from contextlib import nullcontext

import pytest
import torch
from model_rig import TINY, sentences
from torch import Tensor
from training_rig import runtime

from transformer_cli.config import ModelConfig
from transformer_cli.model.dropout import dropout, dropout_stream, random_bytes
from transformer_cli.model.recompute import recomputing
from transformer_cli.model.transformer import Transformer, choose_recomputation
from transformer_cli.runtime import seed_stream

MASKED = {"attention_dropout": 0.2}  # there is a mask to draw again inside attention
SPARSE = {"encoder": "sparse", "decoder": "sparse"}
KINDS = {
    "sdpa": {},
    "sdpa-dropout": MASKED,
    "naive-post": MASKED | {"attention": "naive", "norm_placement": "post", "word_dropout": 0.1},
    "qk-norm-swiglu": {"qk_norm": True, "activation": "swiglu", "tie_embeddings": "none"},
    **{kind: MASKED | {"positions": kind} for kind in ("rotary", "transformer_xl", "t5", "alibi")},
    "rotary-window": MASKED | {"positions": "rotary", "attention": SPARSE, "sparse": {"window": 1, "global_tokens": 1}},
    "bigbird": MASKED | {"attention": SPARSE, "sparse": {"pattern": "bigbird", "window": 1, "block": 2}},
    "linformer": MASKED | {"attention": {"encoder": "linformer"}, "linformer_rank": 4},
}


def step(kind: dict, what: str, amp: str = "off", own_stream: bool = True) -> tuple[Tensor, list[Tensor], list[int]]:
    """Return loss, gradients and what the dropout stream gives next."""
    seed_stream(1, "weights")
    model = Transformer(ModelConfig.model_validate(TINY | {"dropout": 0.3} | kind), 17, 17).train()
    choose_recomputation(model, what)
    seed_stream(1, "dropout")
    with dropout_stream(1) if own_stream else nullcontext():
        with runtime(amp).autocast():
            loss = model(sentences(3, 7), sentences(3, 6, seed=1)).square().mean()
        loss.backward()
        return loss, [p.grad for p in model.parameters()], random_bytes(16).tolist()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("what", ["attention", "layer"])
@pytest.mark.parametrize(("amp", "own_stream"), [("off", True), ("bf16", True), ("off", False)])
def test_loss_gradients_and_stream_are_bitwise_those_of_keeping_everything(
    kind: dict, what: str, amp: str, own_stream: bool
) -> None:
    loss, gradients, following = step(kind, "none", amp, own_stream)
    again, gradients_again, following_again = step(kind, what, amp, own_stream)
    assert torch.equal(loss, again)
    assert all(torch.equal(a, b) for a, b in zip(gradients, gradients_again, strict=True))
    assert following == following_again


def kept_bytes(what: str, **settings: object) -> int:
    """Bytes that a forward pass keeps for its backward pass, parameters not counted."""
    model = Transformer(ModelConfig.model_validate(TINY | {"dropout": 0.3} | settings), 17, 17).train()
    choose_recomputation(model, what)
    own, kept = {p.untyped_storage().data_ptr() for p in model.parameters()}, {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(sentences(3, 32), sentences(3, 32)).sum()
    return sum(size for size, _ in kept.values())


def test_less_is_kept() -> None:
    everything, attention, layer = (kept_bytes(what, attention="naive") for what in ("none", "attention", "layer"))
    scores = (
        6 * (3 * 2 * 32 * 32) * 4
    )  # of six attentions, in float32: the weights, and masks of a quarter of their size
    assert attention <= everything - 1.5 * scores
    assert layer < everything / 5


def test_what_is_kept_does_not_grow_with_the_inside_of_a_layer() -> None:
    assert kept_bytes("layer") == kept_bytes("layer", d_ff=200)
    assert kept_bytes("none") < kept_bytes("none", d_ff=200)
    assert kept_bytes("attention", attention="naive") < kept_bytes("attention", attention="naive", d_ff=200)


def test_the_second_computation_happens_and_draws_the_same_mask() -> None:
    seen = []

    def part(x: Tensor) -> Tensor:
        y = dropout(x, 0.5)
        seen.append(y.detach())
        return y.square()

    x = torch.ones(1000, requires_grad=True)
    y = recomputing(part)(x)
    dropout(torch.ones(1000), 0.5)  # the stream moves on in between
    y.sum().backward()
    assert len(seen) == 2
    assert torch.equal(*seen)
    assert torch.equal(x.grad, 4 * seen[0])  # d/dx (m x)^2 = 2 m^2 x, with m of 0 or 2


def test_without_gradients_nothing_is_computed_twice() -> None:
    calls = []
    with torch.no_grad():
        recomputing(lambda x: calls.append(x) or x)(torch.ones(3))
    assert len(calls) == 1


def test_the_choice_can_be_taken_back() -> None:
    model = Transformer(ModelConfig.model_validate(TINY), 17, 17)
    for what in ("attention", "layer", "none"):
        choose_recomputation(model, what)
        modules = [module for module in model.modules() if getattr(module, "recompute", False)]
        assert len(modules) == {"attention": 2 + 2 * 2, "layer": 2, "none": 0}[what]
