"""The mask doctor: does a model see what it must not see?

Legend: B batch, S source length, T target length, D d_model, H heads.

A wrong mask gives a beautiful loss and useless translations, so it is looked for before the first step. Nothing here
reads a mask: the model is asked what its outputs depend on, attention by attention, with the inputs that each one
gets in a real batch. So it does not matter how a mask was built, or which kernel computes with it.

How a model is watched is in ``observation.py``; whether a *training* is sound is asked in ``health.py``.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.decoding.model_steps import evaluating
from transformer_cli.inspection.observation import Call, Side, awake, excerpt, observe, places
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.transformer import Transformer

_ROUNDING = 1e-6  # of a weight
_TOLERANCE = 1e-3  # of the usual size of an output: kernels add in another order beside other sentences


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, where, and how one can tell."""

    place: str
    what: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.place} {self.what}: {self.evidence}"


def examine(model: Transformer, src: Tensor, tgt_in: Tensor) -> list[Finding]:
    """Look for sight of the future, of padding, of other sentences, and for blindness.

    Args:
        model: left as it is: its weights, its mode, and torch's random generator.
        src: source ids ``[B, S]``, padded at the end; the first few sentences and tokens are looked at.
        tgt_in: target ids ``[B, T]``, starting with BOS, padded at the end.

    Returns:
        What is wrong, from the first layer on; an empty list if nothing is.
    """
    src, tgt_in = excerpt(src, model.pad_id), excerpt(tgt_in, model.pad_id)
    source, target = Side(src, src != model.pad_id), Side(tgt_in, tgt_in != model.pad_id)
    with evaluating(model), awake(model), torch.enable_grad():
        calls, weights, hidden = observe(model, src, tgt_in)
        findings = []
        for place, attention in places(model).items():
            queries = source if place.startswith("encoder") else target
            keys = target if "masked" in place else source
            findings += _judge(place, attention, calls[attention], weights[attention], (queries, keys))
        return findings or _judge_whole(model, src, tgt_in, hidden)


def _judge(
    place: str, attention: MultiHeadAttention, call: Call, weights: Tensor, sides: tuple[Side, Side]
) -> list[Finding]:
    """Say what is wrong with one attention of these queries to these keys."""
    real, keys = sides[0].real, sides[1].real
    if not call.output[real].isfinite().all():
        return [Finding(place, "computes no numbers", f"{_share(~call.output[real].isfinite())} are NaN or infinite")]
    if "masked" in place and (future := _future(place, attention, call)):
        return future  # the padding comes after all real tokens: it is seen with the future
    found = []
    if (seen := _padding_seen(attention, call, real, keys)) > _TOLERANCE:
        found.append(Finding(place, "sees padding", f"other numbers there move its output by {seen:.2g}"))
    blind = weights.sum(-1).amax(1)[real] == 0  # [real queries]
    if blind.any():
        found.append(Finding(place, "sees nothing", f"{_share(blind)} of the real tokens attend to no token at all"))
    if not found and (apart := _moved_by_neighbours(attention, call, real, keys)) > _TOLERANCE:
        found.append(Finding(place, "sees other sentences", f"a sentence alone moves its output by {apart:.2g}"))
    if not found and (twin := _alike(weights, *sides)) is not None:
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
    cotangent = _cotangent(output)
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


def _alike(weights: Tensor, queries: Side, keys: Side) -> int | None:
    """Return the number of another sentence that is attended to in the same way, if all are that have other tokens."""
    twin = None
    for row in range(1, len(weights)):
        t, s = (int((side.real[0] & side.real[row]).sum()) for side in (queries, keys))
        if s < 2 or torch.equal(keys.ids[0, :s], keys.ids[row, :s]):
            continue
        # As shares of what both have: beside more keys each gets less.
        both = weights[0, :, :t, :s], weights[row, :, :t, :s]
        ours, theirs = (part / part.sum(-1, keepdim=True).clamp(min=1e-9) for part in both)
        if (ours - theirs).abs().max() > _ROUNDING:
            return None
        twin = row + 1
    return twin


def _judge_whole(model: Transformer, src: Tensor, tgt_in: Tensor, hidden: Tensor) -> list[Finding]:
    """Look for what no attention is guilty of: the same questions to the model as a whole."""
    real = tgt_in != model.pad_id
    if not hidden[real].isfinite().all():
        return [Finding("the decoder", "computes no numbers", "its output has NaN or infinite numbers")]
    with torch.no_grad():
        memory = model.encode(src)
    if (leak := _leak_of_decoder(model, memory, src, tgt_in)) is not None:
        early, late, size = leak
        evidence = f"output {early} has a gradient of {size:.2g} to input {late}, through no attention"
        return [Finding("the decoder", "sees the future", evidence)]
    with torch.no_grad():
        if (apart := max(_moved_alone(model, src, tgt_in, hidden, row) for row in (0, 1))) > _TOLERANCE:
            evidence = f"a sentence alone moves its output by {apart:.2g}, through no attention"
            return [Finding("the model", "sees padding or other sentences", evidence)]
        other = src.roll(1, 0)
        if not torch.equal(other, src) and torch.equal(model.decode(tgt_in, memory.roll(1, 0), other), hidden):
            return [Finding("the decoder", "is the same for every source", "another source moves no output")]
    return []


def _leak_of_decoder(model: Transformer, memory: Tensor, src: Tensor, tgt_in: Tensor) -> tuple[int, int, float] | None:
    """Return what ``_first_leak`` does, of the decoder for the second sentence, which is whole.

    The sentence stands there once for each position, so that one backward pass tells of all; T - 1 of them through all
    layers would take as long as the rest of the examination.
    """
    length = int((tgt_in[1] != model.pad_id).sum())
    late = torch.arange(1, length, device=src.device)[:, None]  # [T - 1, 1]
    if not len(late):
        return None
    embedded: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    copies = (ids[1:2].expand(len(late), *ids.shape[1:]) for ids in (tgt_in[:, :length], memory, src))
    handle = model.tgt_embedding.register_forward_hook(keep)
    try:
        output = model.decode(*copies)  # [T - 1, T, D]
    finally:
        handle.remove()
    before = torch.arange(length, device=src.device) < late  # [T - 1, T]
    (gradient,) = torch.autograd.grad(output, embedded[0], _cotangent(output) * before[..., None])
    beyond = gradient.abs().amax(2) * ~before
    if not beyond.any():
        return None
    first = int(beyond.any(1).int().argmax())
    return first + 1, int(beyond[first].argmax()) + 1, float(beyond[first].max())


def _cotangent(output: Tensor) -> Tensor:
    return torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output)


def _moved_alone(model: Transformer, src: Tensor, tgt_in: Tensor, hidden: Tensor, row: int) -> float:
    """Return by how much the model's output moves when a sentence stands alone."""
    s, t = (int((ids[row] != model.pad_id).sum()) for ids in (src, tgt_in))
    own = src[row : row + 1, :s]
    alone = model.decode(tgt_in[row : row + 1, :t], model.encode(own), own)
    return _distance(alone[0], hidden[row, :t], None)


def _distance(a: Tensor, b: Tensor, rows: Tensor | None) -> float:
    """Return the largest difference of the real rows, in units of their usual size."""
    a, b = (a, b) if rows is None else (a[rows], b[rows])
    return float((a - b).abs().max() / b.std().clamp(min=1e-6))


def _share(which: Tensor) -> str:
    return f"{which.float().mean():.0%}"
