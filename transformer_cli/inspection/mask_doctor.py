"""The mask doctor: does a model see what it must not see?

Legend: B batch, S source length, T target length, D d_model, H heads.

A wrong mask gives a beautiful loss and useless translations, so it is looked for before the first step. Nothing here
reads a mask: the model is asked what its outputs depend on, attention by attention, with the inputs that each one
gets in a real batch. So it does not matter how a mask was built, or which kernel computes with it.

Whether a *training* is sound is asked in ``health.py``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_cli.decoding.model_steps import evaluating
from transformer_cli.model.attention import MultiHeadAttention, recorded_weights
from transformer_cli.model.transformer import Transformer

_SENTENCES, _TOKENS = 3, 12  # of the batch: enough to see every fault; a model of d_model 512, 6 + 6, takes 0.7 s
_TOLERANCE = 1e-3  # of the usual size of an output: kernels add in another order beside other sentences


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, where, and how one can tell."""

    place: str
    what: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.place} {self.what}: {self.evidence}"


class Call(NamedTuple):
    """What one attention was given, and what it made of it."""

    inputs: tuple[Tensor, Tensor, Tensor]  # query [B, T, D], key and value [B, S, D]
    mask: Tensor | None
    causal: bool
    output: Tensor  # [B, T, D]


def examine(model: Transformer, src: Tensor, tgt_in: Tensor) -> list[Finding]:
    """Look for sight of the future, of padding, of other sentences, and for blindness.

    Args:
        model: left as it is: its weights, its mode, and torch's random generator.
        src: source ids ``[B, S]``, padded at the end; the first few sentences and tokens are looked at.
        tgt_in: target ids ``[B, T]``, starting with BOS, padded at the end.

    Returns:
        What is wrong, from the first layer on; an empty list if nothing is.
    """
    src, tgt_in = _excerpt(src, model.pad_id), _excerpt(tgt_in, model.pad_id)
    real = {"source": src != model.pad_id, "target": tgt_in != model.pad_id}
    with evaluating(model), torch.enable_grad():
        calls, weights, hidden = _observe(model, src, tgt_in)
        findings = []
        for place, attention in places(model).items():
            queries = real["source" if place.startswith("encoder") else "target"]
            keys = real["target" if "masked" in place else "source"]
            call = calls[attention]
            findings += _judge(place, attention, call, weights[attention], queries, keys)
        return findings or _judge_whole(model, src, tgt_in, hidden)


def places(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return every attention of a model by the name that a reader knows, from the first layer on."""
    found = {}
    for number, encoder_layer in enumerate(model.encoder.layers, 1):
        found[f"encoder layer {number}, self-attention,"] = encoder_layer.self_attn
    for number, decoder_layer in enumerate(model.decoder.layers, 1):
        found[f"decoder layer {number}, masked self-attention,"] = decoder_layer.self_attn
        found[f"decoder layer {number}, cross-attention,"] = decoder_layer.cross_attn
    return found


def _excerpt(ids: Tensor, pad_id: int) -> Tensor:
    """Return the start of the batch, its first sentence cut to half, so that there is padding and another length."""
    chosen = ids[:_SENTENCES, :_TOKENS]
    chosen = torch.cat([chosen, chosen])[: max(2, len(chosen))]  # a batch of one: beside itself
    chosen = chosen[:, : int((chosen != pad_id).sum(1).max())].clone()
    chosen[0, -(-chosen.size(1) // 2) :] = pad_id
    return chosen


def _observe(
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


def _judge(
    place: str, attention: MultiHeadAttention, call: Call, weights: Tensor, queries: Tensor, keys: Tensor
) -> list[Finding]:
    """Say what is wrong with one attention; ``queries [B, T]`` and ``keys [B, S]`` are True for real tokens."""
    if not call.output[queries].isfinite().all():
        return [
            Finding(place, "computes no numbers", f"{_share(~call.output[queries].isfinite())} are NaN or infinite")
        ]
    if "masked" in place and (future := _future(place, attention, call)):
        return future  # the padding comes after all real tokens: it is seen with the future
    found = []
    if (seen := _padding_seen(attention, call, queries, keys)) > _TOLERANCE:
        found.append(Finding(place, "sees padding", f"other numbers there move its output by {seen:.2g}"))
    blind = weights.sum(-1).amax(1)[queries] == 0  # [real queries]
    if blind.any():
        found.append(Finding(place, "sees nothing", f"{_share(blind)} of the real tokens attend to no token at all"))
    if not found and (apart := _moved_by_neighbours(attention, call, queries, keys)) > _TOLERANCE:
        found.append(Finding(place, "sees other sentences", f"a sentence alone moves its output by {apart:.2g}"))
    if not found and (twin := _alike(call, weights, queries, keys)) is not None:
        found.append(Finding(place, "is the same in every sentence", f"sentences 1 and {twin} have equal weights"))
    return found


def _future(place: str, attention: MultiHeadAttention, call: Call) -> list[Finding]:
    """Look for a gradient from an output to a later input; it must be exactly zero."""
    x = call.inputs[0].detach().requires_grad_()
    output, _ = attention(x, x, x, call.mask, causal=call.causal)
    leak = _first_leak(output, x)
    if leak is None:
        return []
    early, late, size = leak
    return [Finding(place, "sees the future", f"output {early} has a gradient of {size:.2g} to input {late}")]


def _first_leak(output: Tensor, x: Tensor) -> tuple[int, int, float] | None:
    """Return the first output position, counted from 1, that depends on a later input; that input; the gradient.

    A gradient of all outputs before a position says whether any of them sees it or what follows: T - 1 backward
    passes, each for all sentences.
    """
    cotangent = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output)
    for late in range(1, output.size(1)):
        (gradient,) = torch.autograd.grad(output[:, :late], x, cotangent[:, :late], retain_graph=True)
        beyond = gradient[:, late:].abs().amax((0, 2))  # [T - late]
        if beyond.any():
            return late, late + 1 + int(beyond.argmax()), float(beyond.max())
    return None


def _padding_seen(attention: MultiHeadAttention, call: Call, queries: Tensor, keys: Tensor) -> float:
    """Return by how much a real output moves when the padding's inputs do, in units of a usual output."""
    if keys.all():
        return 0.0
    query, key, value = call.inputs
    noise = 10 * torch.randn(key.shape, generator=torch.Generator().manual_seed(2)).to(key) * ~keys[..., None]
    key_and_noise = key + noise
    same = query is key
    with torch.no_grad():
        moved, _ = attention(
            key_and_noise if same else query,
            key_and_noise,
            key_and_noise if value is key else value + noise,
            call.mask,
            causal=call.causal,
        )
    return _distance(moved, call.output, queries)


def _moved_by_neighbours(attention: MultiHeadAttention, call: Call, queries: Tensor, keys: Tensor) -> float:
    """Return by how much an output moves when its sentence stands alone, without padding and without a mask for it."""
    largest = 0.0
    for row in range(len(queries)):
        t, s = int(queries[row].sum()), int(keys[row].sum())
        query, key, value = call.inputs
        own_key = key[row : row + 1, :s]
        own_query = own_key if query is key else query[row : row + 1, :t]
        own_value = own_key if value is key else value[row : row + 1, :s]
        with torch.no_grad():
            alone, _ = attention(own_query, own_key, own_value, None, causal=call.causal)
        largest = max(largest, _distance(alone[0], call.output[row, :t], None))
    return largest


def _alike(call: Call, weights: Tensor, queries: Tensor, keys: Tensor) -> int | None:
    """Return the number of another sentence that is attended to in the same way, if all are that have other tokens."""
    twin, key = None, call.inputs[1]
    for row in range(1, len(weights)):
        t, s = (int((real[0] & real[row]).sum()) for real in (queries, keys))
        if s < 2 or torch.equal(key[0, :s], key[row, :s]):
            continue
        if not torch.equal(weights[0, :, :t, :s], weights[row, :, :t, :s]):
            return None
        twin = row + 1
    return twin


def _judge_whole(model: Transformer, src: Tensor, tgt_in: Tensor, hidden: Tensor) -> list[Finding]:
    """Look for what no attention is guilty of: the same questions to the decoder as a whole."""
    if not hidden[tgt_in != model.pad_id].isfinite().all():
        return [Finding("the decoder", "computes no numbers", "its output has NaN or infinite numbers")]
    embedded: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    handle = model.tgt_embedding.register_forward_hook(keep)
    try:
        output = model.decode(tgt_in, model.encode(src).detach(), src)
    finally:
        handle.remove()
    leak = _first_leak(output, embedded[0])
    if leak is None:
        return []
    early, late, size = leak
    evidence = f"output {early} has a gradient of {size:.2g} to input {late}, through no attention"
    return [Finding("the decoder", "sees the future", evidence)]


def _distance(a: Tensor, b: Tensor, rows: Tensor | None) -> float:
    """Return the largest difference of the real rows, in units of their usual size."""
    a, b = (a, b) if rows is None else (a[rows], b[rows])
    return float((a - b).abs().max() / b.std().clamp(min=1e-6))


def _share(which: Tensor) -> str:
    return f"{which.float().mean():.0%}"
