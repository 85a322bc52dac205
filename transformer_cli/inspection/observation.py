"""A model at work on a piece of a batch: what each of its attentions gets, and what it makes of it.

Legend: B batch, S source length, T target length, D d_model, H heads.

What that says about the model is for ``mask_doctor.py`` to judge.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention, recorded_weights
from transformer_cli.model.transformer import Transformer

_SENTENCES, _TOKENS = 3, 12  # of the batch: enough to see every fault


class Side(NamedTuple):
    """The queries or the keys of an attention."""

    ids: Tensor  # [B, T] or [B, S]
    real: Tensor  # the same shape, True where there is no padding


class Call(NamedTuple):
    """What one attention was given, and what it made of it."""

    inputs: tuple[Tensor, Tensor, Tensor]  # query [B, T, D], key and value [B, S, D]
    mask: Tensor | None
    causal: bool
    output: Tensor  # [B, T, D]


def places(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return every attention of a model by the name that a reader knows, from the first layer on."""
    found = {}
    for number, encoder_layer in enumerate(model.encoder.layers, 1):
        found[f"encoder layer {number}, self-attention,"] = encoder_layer.self_attn
    for number, decoder_layer in enumerate(model.decoder.layers, 1):
        found[f"decoder layer {number}, masked self-attention,"] = decoder_layer.self_attn
        found[f"decoder layer {number}, cross-attention,"] = decoder_layer.cross_attn
    return found


@contextmanager
def awake(model: Transformer) -> Iterator[None]:
    """Fill matrices of zeros (``model.zero_init``) with random numbers meanwhile: they would hide what is seen."""
    asleep = [weight for weight in model.parameters() if weight.dim() > 1 and not weight.any()]
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in asleep:
            weight.copy_(torch.randn(weight.shape, generator=generator) * weight.size(-1) ** -0.5)
    try:
        yield
    finally:
        with torch.no_grad():
            for weight in asleep:
                weight.zero_()


def excerpt(ids: Tensor, pad_id: int) -> Tensor:
    """Return the start of ids ``[B, S]``, its first sentence cut to half, so that there are padding and two lengths."""
    chosen = ids[:_SENTENCES, :_TOKENS]
    chosen = torch.cat([chosen, chosen])[: max(2, len(chosen))]  # a copy; a batch of one stands beside itself
    chosen = chosen[:, : int((chosen != pad_id).sum(1).max())]
    chosen[0, -(-chosen.size(1) // 2) :] = pad_id
    return chosen


def observe(
    model: Transformer, src: Tensor, tgt_in: Tensor
) -> tuple[dict[nn.Module, Call], dict[MultiHeadAttention, Tensor], Tensor]:
    """Run the model as it trains; return what each attention got, its weights, and the hidden states ``[B, T, D]``."""
    calls: dict[nn.Module, Call] = {}

    def record(module: nn.Module, args: tuple[Any, ...], settings: dict[str, Any], output: Any) -> None:
        mask = args[3] if len(args) > 3 else settings.get("mask")
        calls[module] = Call(args[:3], mask, settings.get("causal", False), output[0])

    attentions = list(places(model).values())
    handles = [attention.register_forward_hook(record, with_kwargs=True) for attention in attentions]
    try:
        with torch.no_grad():
            hidden = model.decode(tgt_in, model.encode(src), src)
    finally:
        for handle in handles:
            handle.remove()
    with torch.no_grad(), recorded_weights(attentions) as weights:
        model.decode(tgt_in, model.encode(src), src)
    return calls, weights, hidden
