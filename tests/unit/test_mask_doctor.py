"""The mask doctor names every fault that is planted, and finds none in a sound model."""

import math
from collections.abc import Callable

import pytest
import torch
from model_rig import sentences, tiny_model
from torch import Tensor

from transformer_cli.inspection.mask_doctor import Finding, examine
from transformer_cli.model import attention, transformer
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.kernels import naive_attention
from transformer_cli.model.transformer import Transformer

PAD = 0


def batch() -> tuple[Tensor, Tensor]:
    """As many sentences as tokens, so that a mask on the wrong axis broadcasts without an error."""
    src, tgt = sentences(3, 3), sentences(3, 3, seed=1)
    tgt[2, 2:] = PAD
    return src, tgt


def diagnosis(model: Transformer) -> list[Finding]:
    return examine(model, *batch())


@pytest.mark.parametrize("norm_placement", ["pre", "post"])
@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sound_model_passes(norm_placement: str, implementation: str, positions: str, dtype: torch.dtype) -> None:
    model = tiny_model(norm_placement=norm_placement, attention=implementation, positions=positions, dtype=dtype)
    assert diagnosis(model) == []


def test_a_model_is_left_as_it_was() -> None:
    model = tiny_model(dropout=0.5).train()
    before = torch.get_rng_state()
    diagnosis(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 40])
def test_batches_of_any_shape(rows: int, length: int) -> None:
    assert examine(tiny_model(), sentences(rows, length), sentences(rows, length, seed=1)) == []


# Broken masks, each planted where such a fault would be made


def plant(kernel: Callable[..., tuple[Tensor, Tensor | None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all attentions compute with another kernel."""
    monkeypatch.setattr(attention, "IMPLEMENTATIONS", {"naive": kernel, "sdpa": kernel})


def off_by_one(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool, **rest: object):  # type: ignore[no-untyped-def]
    """The diagonal stands one too far to the right: every token sees the next one, which it shall predict."""
    if causal:
        mask = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool).tril(1)
    return naive_attention(query, key, value, mask, **rest)  # type: ignore[arg-type]


def maximum_of_masks(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool, **rest: object
):  # type: ignore[no-untyped-def]
    """The larger of a padding mask of 0 and 1 and a future mask of 0 and -inf is the padding mask: no future is hidden."""
    if causal:
        padding = torch.zeros(1, 1, 1, key.size(-2))
        future = torch.full((query.size(-2), key.size(-2)), -math.inf).triu(1)
        mask = torch.maximum(padding, future) >= 0
    return naive_attention(query, key, value, mask, **rest)  # type: ignore[arg-type]


def forgotten(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool, **rest: object):  # type: ignore[no-untyped-def]
    """No causal mask at all."""
    return naive_attention(query, key, value, mask, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", [off_by_one, maximum_of_masks, forgotten])
def test_sight_of_the_future(kernel: Callable[..., tuple[Tensor, Tensor]], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(kernel, monkeypatch)
    found = diagnosis(tiny_model())
    assert [(f.place, f.what) for f in found] == [
        (f"decoder layer {number}, masked self-attention,", "sees the future") for number in (1, 2)
    ]
    assert "output 1 has a gradient" in found[0].evidence


def test_only_the_broken_layer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    broken = model.decoder.layers[1].self_attn
    whole = MultiHeadAttention.forward

    def forward(self: MultiHeadAttention, *args: Tensor, causal: bool = False, **rest: bool) -> object:
        return whole(self, *args, causal=causal and self is not broken, **rest)

    monkeypatch.setattr(MultiHeadAttention, "forward", forward)
    (found,) = diagnosis(model)
    assert str(found).startswith("decoder layer 2, masked self-attention, sees the future")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda ids, pad: (ids == pad)[:, None, None, :], id="inverted booleans"),
        pytest.param(lambda ids, pad: torch.ones_like(ids, dtype=torch.bool)[:, None, None, :], id="no mask"),
        pytest.param(lambda ids, pad: (ids != pad)[:, None, :, None], id="hides queries"),
        pytest.param(lambda ids, pad: (ids != pad)[None, None, :, :], id="sentences as queries"),
    ],
)
def test_sight_of_padding(broken: Callable[[Tensor, int], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "padding_mask", broken)
    found = diagnosis(tiny_model())
    assert {f.place for f in found if f.what == "sees padding"} >= {
        "encoder layer 1, self-attention,",
        "decoder layer 1, cross-attention,",
    }


def test_rows_without_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        transformer, "padding_mask", lambda ids, pad: torch.zeros_like(ids, dtype=torch.bool)[:, None, None]
    )
    found = diagnosis(tiny_model())
    assert "encoder layer 1, self-attention, sees nothing: 100% of the real tokens attend to no token at all" in map(
        str, found
    )


def test_nan_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """-inf added to every score of a row makes it NaN."""

    def unsafe(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool, **_: object):  # type: ignore[no-untyped-def]
        scores = query @ key.transpose(-2, -1)
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(0 if causal else scores.size(-1))
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return weights @ value, weights

    plant(unsafe, monkeypatch)
    found = diagnosis(tiny_model())
    assert ("decoder layer 1, masked self-attention,", "computes no numbers") in [(f.place, f.what) for f in found]


def test_the_mask_of_another_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The masks of the batch in another order: some sentence is cut where its neighbour ends."""
    monkeypatch.setattr(transformer, "padding_mask", lambda ids, pad: (ids != pad).roll(1, 0)[:, None, None, :])
    assert diagnosis(tiny_model())[0].place == "encoder layer 1, self-attention,"


def test_attention_that_looks_at_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(query: Tensor, *args: Tensor | None, **rest: object):  # type: ignore[no-untyped-def]
        return naive_attention(torch.zeros_like(query), *args, **rest)  # type: ignore[arg-type]

    src = tgt = sentences(3, 6)
    plant(blind, monkeypatch)
    found = examine(tiny_model(), src, tgt)
    assert {f.what for f in found} == {"is the same in every sentence"}


def test_sight_of_the_future_beside_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    norm = model.decoder.norm
    norm.register_forward_hook(lambda _, __, output: output - output.mean(1, keepdim=True))
    (found,) = diagnosis(model)
    assert (found.place, found.what) == ("the decoder", "sees the future")
    assert "through no attention" in found.evidence
