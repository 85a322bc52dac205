"""The mask doctor names every fault that is planted, and finds none in a sound model."""

import math
import time
from collections.abc import Callable

import pytest
import torch
from model_rig import sentences, tiny_model
from torch import Tensor

from transformer_cli.checkpoint import build_model
from transformer_cli.commands.mask_check import masks_of
from transformer_cli.config import ModelConfig
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.inspection.broken_masks import (
    Fault,
    forgotten,
    inverted,
    maximum,
    no_padding_mask,
    nothing_seen,
    of_another_sentence,
    off_by_one,
    planted,
    sentences_as_queries,
    too_strict,
    wrong_axis,
)
from transformer_cli.inspection.mask_doctor import Finding, examine
from transformer_cli.model import attention
from transformer_cli.model.kernels import naive_attention
from transformer_cli.model.transformer import Transformer
from transformer_cli.recipe import load_recipe

PAD = 0
EVERYWHERE = [
    *("encoder layer 1, self-attention,", "encoder layer 2, self-attention,"),
    *("decoder layer 1, masked self-attention,", "decoder layer 1, cross-attention,"),
    *("decoder layer 2, masked self-attention,", "decoder layer 2, cross-attention,"),
]
MASKED = [place for place in EVERYWHERE if "masked" in place]
#: The ways to compute attention, each wherever it can be; narrow enough to hide something of short sentences.
KERNELS: dict[str, dict[str, object]] = {kernel: {"attention": kernel} for kernel in ("naive", "sdpa", "flash")}
KERNELS["linformer"] = {"attention": {"encoder": "linformer"}, "linformer_rank": 3}
for pattern in ({"window": 2}, {"pattern": "dilated", "window": 2}, {"pattern": "blocks", "block": 2}):
    KERNELS[f"sparse {pattern.get('pattern', 'window')}"] = {
        "attention": {"encoder": "sparse", "decoder": "sparse"},
        "sparse": pattern,
    }
KERNELS["sparse bigbird"] = {
    "attention": {"encoder": "sparse", "decoder": "sparse"},
    "sparse": {"pattern": "bigbird", "window": 1, "block": 2, "global_tokens": 1},
}
POSITIONS = ("sinusoidal", "learned", "rotary", "transformer_xl", "t5", "alibi", "none")


def can_be(kernel: str, positions: str) -> bool:
    """Whether the configuration takes the two together."""
    try:
        ModelConfig.model_validate(KERNELS[kernel] | {"positions": positions})
    except ValueError:
        return False
    return True


PAIRS = [(kernel, positions) for kernel in KERNELS for positions in POSITIONS if can_be(kernel, positions)]


def batch() -> tuple[Tensor, Tensor]:
    """As many sentences as tokens, so that a mask on the wrong axis broadcasts without an error."""
    src, tgt = sentences(3, 3), sentences(3, 3, seed=1)
    tgt[2, 2:] = PAD
    return src, tgt


def diagnosis(model: Transformer) -> list[Finding]:
    return examine(model, *batch())


def named(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.place, finding.what) for finding in findings]


@pytest.mark.parametrize(("kernel", "positions"), PAIRS)
def test_a_sound_model_passes_with_every_kernel_and_position(kernel: str, positions: str) -> None:
    model = tiny_model(positions=positions, dtype=torch.float32, **KERNELS[kernel])
    src, tgt = sentences(3, 9), sentences(3, 9, seed=1)
    src[1, 7:] = tgt[2, 5:] = PAD
    assert examine(model, src, tgt) == []


@pytest.mark.parametrize("norm_placement", ["pre", "post"])
@pytest.mark.parametrize("implementation", ["naive", "sdpa"])
@pytest.mark.parametrize("zero_init", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sound_model_passes(norm_placement: str, implementation: str, zero_init: bool, dtype: torch.dtype) -> None:
    settings = {"norm_placement": norm_placement, "attention": implementation, "zero_init": zero_init}
    assert diagnosis(tiny_model(dtype=dtype, **settings)) == []


@pytest.fixture(scope="module")
def base() -> Experiment:
    """What base.yaml makes; torch has done its first backward pass, for which it loads some packages."""
    experiment = prepare(load_recipe("base.yaml"), lambda note: None)
    assert masks_of(experiment) == []
    return experiment


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "positions"), PAIRS)
def test_a_real_model_and_its_first_batch_take_less_than_a_second(
    kernel: str, positions: str, base: Experiment
) -> None:
    """In CPU time; the model of base.yaml before its first step."""
    model = base.config.model.model_dump() | KERNELS[kernel] | {"positions": positions}
    config = base.config.model_copy(update={"model": ModelConfig.model_validate(model)})
    experiment = Experiment(
        config, base.corpus, base.tokenizer, base.train_pairs, base.dev_pairs, {}, build_model(config, base.tokenizer)
    )
    start = time.process_time()
    found = masks_of(experiment)
    taken = time.process_time() - start
    print(f"{kernel}, {positions}: {taken:.3f} s")
    assert found == []
    assert taken < 1


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"zero_init": True}])
def test_a_model_is_left_as_it_was(settings: dict[str, object]) -> None:
    model = tiny_model(**settings).train()
    before, weights = torch.get_rng_state(), {name: weight.clone() for name, weight in model.state_dict().items()}
    diagnosis(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 40])
def test_batches_of_any_shape(rows: int, length: int) -> None:
    assert examine(tiny_model(), sentences(rows, length), sentences(rows, length, seed=1)) == []


# Broken masks, each planted where such a fault would be made


@pytest.mark.parametrize("zero_init", [False, True])
@pytest.mark.parametrize("kernel", ["naive", "sdpa", "flash"])
@pytest.mark.parametrize(
    ("fault", "what", "where"),
    [
        (off_by_one, "sees the future", MASKED),
        (maximum, "sees the future", MASKED),
        (forgotten, "sees the future", MASKED),
        (too_strict, "sees nothing", MASKED),
        (inverted, "sees padding", [place for place in EVERYWHERE if "masked" not in place]),
        (no_padding_mask, "sees padding", [place for place in EVERYWHERE if "masked" not in place]),
        (wrong_axis, "sees padding", [place for place in EVERYWHERE if "masked" not in place]),
        (sentences_as_queries, "sees padding", [place for place in EVERYWHERE if "masked" not in place]),
        (of_another_sentence, "sees padding", [place for place in EVERYWHERE if "masked" not in place]),
        (nothing_seen, "sees nothing", [place for place in EVERYWHERE if "masked" not in place]),
    ],
)
def test_a_broken_mask_is_named_at_every_place(
    fault: Fault, what: str, where: list[str], kernel: str, zero_init: bool
) -> None:
    model = tiny_model(attention=kernel, zero_init=zero_init)
    with planted(model, fault):
        found = diagnosis(model)
    assert [finding.place for finding in found if finding.what == what] == where
    assert diagnosis(model) == []  # nothing stays behind


@pytest.mark.parametrize("fault", [off_by_one, no_padding_mask, nothing_seen, of_another_sentence])
@pytest.mark.parametrize("place", EVERYWHERE)
def test_only_the_broken_layer_is_named(fault: Fault, place: str) -> None:
    model = tiny_model()
    with planted(model, fault, where=place):
        found = diagnosis(model)
    touched = (fault is off_by_one) == ("masked" in place)
    assert {finding.place for finding in found} == ({place} if touched else set())


def test_the_evidence_names_output_and_input() -> None:
    model = tiny_model()
    with planted(model, off_by_one):
        first = str(diagnosis(model)[0])
    assert first.startswith("decoder layer 1, masked self-attention, sees the future: output 1 has a gradient of ")
    assert first.endswith(" to input 2")


def test_a_mask_that_cuts_off_a_real_token() -> None:
    """The padding begins one token too early: nothing is seen that must not be, but the neighbour's length matters."""

    def too_short(mask: Tensor | None, causal: bool, t: int, s: int) -> tuple[Tensor | None, bool]:
        return (None if mask is None else mask & mask.roll(-1, -1)), causal

    model = tiny_model()
    src, tgt = sentences(3, 6), sentences(3, 6, seed=1)
    with planted(model, too_short, where="cross"):
        found = examine(model, src, tgt)
    assert {finding.what for finding in found} == {"sees other sentences"}
    assert {finding.place for finding in found} == {place for place in EVERYWHERE if "cross" in place}


def plant(kernel: Callable[..., tuple[Tensor, Tensor | None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all attentions compute with another kernel."""
    monkeypatch.setattr(attention, "IMPLEMENTATIONS", {"naive": kernel, "sdpa": kernel})
    monkeypatch.setattr(attention, "naive_attention", kernel)


def test_nan_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """-inf added to every score of a row makes it NaN."""

    def unsafe(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, causal: bool, **_: object):  # type: ignore[no-untyped-def]
        scores = query @ key.transpose(-2, -1)
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(0 if causal else scores.size(-1))
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return weights @ value, weights

    plant(unsafe, monkeypatch)
    assert ("decoder layer 1, masked self-attention,", "computes no numbers") in named(diagnosis(tiny_model()))


def test_attention_that_looks_at_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(query: Tensor, *args: Tensor | None, **rest: object):  # type: ignore[no-untyped-def]
        return naive_attention(torch.zeros_like(query), *args, **rest)  # type: ignore[arg-type]

    src = tgt = sentences(3, 6)
    plant(blind, monkeypatch)
    found = examine(tiny_model(), src, tgt)
    assert named(found) == [(place, "is the same in every sentence") for place in EVERYWHERE]


# What no attention is guilty of


def test_words_that_never_arrive() -> None:
    """Positions alone: every sentence is attended to as every other, from the first layer on."""
    model = tiny_model()
    model.src_embedding.tokens.register_forward_hook(lambda _, __, output: output * 0)
    assert ("encoder layer 1, self-attention,", "is the same in every sentence") in named(diagnosis(model))


def test_sight_of_the_future_beside_attention() -> None:
    model = tiny_model()
    model.decoder.norm.register_forward_hook(lambda _, __, output: output - output.mean(1, keepdim=True))
    (found,) = diagnosis(model)
    assert (found.place, found.what) == ("the decoder", "sees the future")
    assert "through no attention" in found.evidence


def test_numbers_that_are_none_beside_attention() -> None:
    model = tiny_model()
    model.decoder.norm.register_forward_hook(lambda _, __, output: output / 0)
    assert named(diagnosis(model)) == [("the decoder", "computes no numbers")]


@pytest.mark.parametrize(
    "mixed",
    [
        pytest.param(lambda memory: memory[:1].expand_as(memory), id="the first sentence's memory for all"),
        pytest.param(lambda memory: memory - memory.mean(1, keepdim=True), id="a mean over padding"),
    ],
)
def test_sight_of_padding_and_neighbours_beside_attention(mixed: Callable[[Tensor], Tensor]) -> None:
    model = tiny_model()
    model.encoder.norm.register_forward_hook(lambda _, __, output: mixed(output))
    assert named(diagnosis(model)) == [("the model", "sees padding or other sentences")]


def test_a_decoder_that_reads_no_source() -> None:
    model = tiny_model()
    for layer in model.decoder.layers:
        layer.cross_attn.register_forward_hook(lambda _, __, output: (output[0] * 0, output[1]))
    found = diagnosis(model)
    assert found[-1] == Finding("the decoder", "is the same for every source", "another source moves no output")
