"""Gives torch's own modules our weights, and compares what both compute.

A twin is a pair: our parameters, and torch's one parameter that holds them stacked (torch keeps W_Q, W_K and W_V in one).
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import DecoderLayer, EncoderLayer

Twins = Iterator[tuple[list[nn.Parameter], nn.Parameter]]

#: Largest difference allowed, in outputs and in gradients.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def attention_twins(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Twins:
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    yield [p.weight for p in projections], theirs.in_proj_weight
    if theirs.in_proj_bias is not None:
        yield [p.bias for p in projections], theirs.in_proj_bias
    yield from _same_names(ours.out_proj, theirs.out_proj)


def layer_twins(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> Twins:
    yield from attention_twins(ours.self_attn, theirs.self_attn)
    residuals = [ours.self_attn_residual, ours.feed_forward_residual]
    if isinstance(ours, DecoderLayer):
        yield from attention_twins(ours.cross_attn, theirs.multihead_attn)
        residuals.insert(1, ours.cross_attn_residual)
    for number, residual in enumerate(residuals, start=1):
        yield from _same_names(residual.norm, getattr(theirs, f"norm{number}"))
    yield from _same_names(ours.feed_forward.w_1, theirs.linear1)
    yield from _same_names(ours.feed_forward.w_2, theirs.linear2)


def stack_twins(ours: nn.Module, theirs: nn.Module) -> Twins:
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):
        yield from layer_twins(our_layer, their_layer)
    yield from _same_names(ours.norm, theirs.norm)


def _same_names(ours: nn.Module, theirs: nn.Module) -> Twins:
    for name, parameter in theirs.named_parameters():
        yield [ours.get_parameter(name)], parameter


def torch_settings(config: ModelConfig) -> dict[str, object]:
    """What torch's layers are called with to be like ours."""
    return {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "norm_first": config.norm_placement == "pre",
        "bias": config.bias,
        "batch_first": True,
    }


@torch.no_grad()
def copy_weights(twins: Twins) -> None:
    for ours, theirs in twins:
        theirs.copy_(torch.cat(ours))


def assert_same(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], inputs: Sequence[Tensor], twins: Twins
) -> None:
    """Compare outputs, and the gradients of a random function of them for inputs and parameters."""
    tolerance = TOLERANCE[inputs[0].dtype]

    def assert_close(left: Tensor, right: Tensor) -> None:
        torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)

    our_inputs, their_inputs = ([x.detach().clone().requires_grad_() for x in inputs] for _ in range(2))
    our_out, their_out = ours(*our_inputs), theirs(*their_inputs)
    assert_close(our_out, their_out)
    direction = torch.randn_like(our_out)
    for out in (our_out, their_out):
        (out * direction).sum().backward()
    for our_input, their_input in zip(our_inputs, their_inputs, strict=True):
        assert_close(our_input.grad, their_input.grad)
    for our_parameters, their_parameter in twins:
        assert_close(torch.cat([parameter.grad for parameter in our_parameters]), their_parameter.grad)
