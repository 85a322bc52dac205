"""What the kernels of the attention laboratory need, drop and refuse; that they compute right is in parity."""

import math
import re
from types import SimpleNamespace

import pytest
import torch
from model_rig import TINY, sentences, tiny_model
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from transformer_cli.checkpoint.loading import refuse_unfit_device
from transformer_cli.config import Config, ModelConfig
from transformer_cli.config.combinations import REFUSED
from transformer_cli.errors import ConfigError, RunError
from transformer_cli.experiment import _refuse_other_architecture
from transformer_cli.model.attention import MultiHeadAttention, forced_flash_refusal
from transformer_cli.model.kernels import (
    Linformer,
    Pattern,
    SparseAttention,
    bigbird,
    blocks,
    dense,
    dilated,
    flash_attention,
    window,
)
from transformer_cli.model.kernels.sparse import _Tiling

LONG = 2048
PATTERNS = {
    "window": window(16, global_tokens=1),
    "dilated": dilated(16, 4),
    "bigbird": bigbird(16, global_tokens=4, block=16),
    "blocks": blocks(16),
}


class Largest(TorchDispatchMode):
    """Records the most numbers that one tensor holds."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                self.numbers = max(self.numbers, leaf.numel())
        return out


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_sparse_never_holds_a_quarter_of_all_pairs(pattern: Pattern, causal: bool, dropout: float) -> None:
    q, k, v = (torch.randn(1, 1, LONG, 4, requires_grad=True) for _ in range(3))
    mask = (torch.arange(LONG) < LONG - 5)[None, None, None]
    with Largest() as largest:
        output, _ = SparseAttention(pattern)(q, k, v, mask, causal=causal, dropout=dropout)
        output.sum().backward()
    assert LONG < largest.numbers < LONG * LONG / 4


def test_the_recorder_sees_all_pairs_of_a_dense_kernel() -> None:
    x = torch.randn(1, 1, LONG, 4)
    with Largest() as largest:
        SparseAttention(window(4)).naive(x, x, x)
    assert largest.numbers == LONG * LONG


@pytest.mark.parametrize(
    "kernel", [SparseAttention(window(3, global_tokens=1)), Linformer(4, 16)], ids=["sparse", "linformer"]
)
def test_dropout_acts_and_keeps_the_mean(kernel: SparseAttention | Linformer) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 16, 4) for _ in range(3))
    with torch.no_grad():
        plain, _ = kernel(q, k, v)
        drawn = torch.stack([kernel(q, k, v, dropout=0.3)[0] for _ in range(2000)])
    assert (drawn[0] - plain).abs().max() > 1e-3
    torch.testing.assert_close(drawn.mean(0), plain, rtol=0, atol=0.1)


@pytest.mark.parametrize("kernel", [SparseAttention(window(3)), Linformer(4, 16)], ids=["sparse", "linformer"])
def test_dropout_on_a_cpu_is_not_drawn_by_torch(
    kernel: SparseAttention | Linformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its generator is slow there, and all threads share it."""
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", None)
    kernel(*[torch.randn(1, 1, 16, 4)] * 3, dropout=0.3)


def test_a_short_window_is_cut_into_blocks_that_are_worth_a_product() -> None:
    """Blocks as short as the window are many small products: 2,048 tokens in 32 blocks of 64, not in 512 of 4."""
    x = torch.randn(1, 1, LONG, 4)
    assert [_Tiling.of(window(width), x, causal=False).n_blocks for width in (4, 64, 256)] == [32, 32, 8]
    assert _Tiling.of(window(500), x[:, :, :10], causal=False).reach == (0, 0)  # no blocks beside the only one


def test_sparse_refuses_other_shapes() -> None:
    x, shorter = torch.randn(1, 2, 6, 4), torch.randn(1, 2, 5, 4)
    with pytest.raises(ValueError, match="5 queries and 6 keys"):
        SparseAttention(window(1))(shorter, x, x)
    with pytest.raises(ValueError, match=r"a mask of keys \[B, 1, 1, 6\]"):
        SparseAttention(window(1))(x, x, x, torch.ones(1, 1, 6, 6, dtype=torch.bool))


def test_linformer_refuses_what_it_cannot_hide_and_longer_texts() -> None:
    x, kernel = torch.randn(1, 2, 6, 4), Linformer(3, 5)
    with pytest.raises(ValueError, match="cannot be causal"):
        kernel(x, x, x, causal=True)
    with pytest.raises(ValueError, match="ends at 5 tokens, got a sequence of 6"):
        kernel(x, x, x)
    with pytest.raises(ValueError, match="a mask of keys"):
        Linformer(3, 6)(x, x, x, torch.ones(1, 1, 6, 6, dtype=torch.bool))


def test_linformer_starts_with_mixtures_of_the_size_of_keys() -> None:
    torch.manual_seed(0)
    kernel, x = Linformer(64, 400), torch.randn(1, 1, 400, 64)
    assert (kernel.key_mix @ x).std().item() == pytest.approx(1, abs=0.1)
    assert kernel.value_mix.std().item() == pytest.approx(1 / math.sqrt(400), rel=0.1)


def test_a_sentence_of_padding_is_zero_after_linformer() -> None:
    x = torch.randn(1, 2, 6, 4)
    assert (Linformer(3, 6)(x, x, x, torch.zeros(1, 1, 1, 6, dtype=torch.bool))[0] == 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"dropout": 0.1}, "it knows no dropout, got 0.1"), ({"d_v": 6}, "one head width, got d_k 4 and d_v 6")],
)
def test_flash_refuses_by_name(settings: dict, reason: str) -> None:
    x, v = torch.randn(1, 2, 6, 4), torch.randn(1, 2, 6, settings.pop("d_v", 4))
    with pytest.raises(ValueError, match=reason):
        flash_attention(x, x, v, **settings)


def test_flash_allows_torch_no_other_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = []

    def spy(*_: object, **__: object) -> tuple[None, None]:
        allowed.append((torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()))
        return None, None

    monkeypatch.setattr(dense, "sdpa_attention", spy)
    flash_attention(*[torch.randn(1, 2, 6, 4)] * 3)
    assert allowed == [(True, False)]


def on_a_gpu(width: int, dtype: torch.dtype) -> SimpleNamespace:
    """Answers what is asked of a query on a GPU."""
    return SimpleNamespace(device=torch.device("cuda"), dtype=dtype, size=lambda _: width)


@pytest.mark.parametrize(
    ("dtype", "masked", "reason"),
    [
        (torch.bfloat16, False, None),
        (torch.float16, True, "no mask but a square causal one"),
        (torch.float32, False, "in 16 bits, got torch.float32"),
    ],
)
def test_what_flash_takes_on_a_gpu(dtype: torch.dtype, masked: bool, reason: str | None) -> None:
    query = on_a_gpu(8, dtype)
    found = dense._flash_limit(query, query, masked=masked, dropout=0.1)
    assert found is None if reason is None else reason in str(found)


@pytest.mark.parametrize(
    ("keys", "causal", "mask", "masked"),
    [
        (6, True, None, False),
        (8, True, None, True),
        (8, False, None, False),
        (6, False, torch.ones(1, 1, 1, 6).bool(), True),
    ],
)
def test_causality_beside_cached_keys_is_a_mask_for_flash(
    keys: int, causal: bool, mask: Tensor | None, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(dense, "_flash_limit", lambda *_, masked, dropout: told.append(masked))
    x, longer = torch.randn(1, 2, 6, 4), torch.randn(1, 2, keys, 4)
    flash_attention(x, longer, longer, mask, causal=causal)
    assert told == [masked]


def test_flash_has_no_kernel_for_other_devices() -> None:
    x = torch.empty(1, 2, 6, 4, device="meta")
    with pytest.raises(ValueError, match="there is none for the device meta"):
        flash_attention(x, x, x)


@pytest.mark.parametrize(
    ("attention", "device", "sixteen_bits", "reason"),
    [
        ("flash", "cpu", False, None),
        ("flash", "mps", True, "no flash kernel for the device mps"),
        ("flash", "cuda", True, "no padding mask, which attention.encoder needs"),
        ({"cross": "flash"}, "cuda", True, "no padding mask, which attention.cross needs"),
        ({"decoder": "flash"}, "cuda", True, None),
        ({"decoder": "flash"}, "cuda", False, "16 bits only"),
        ("sdpa", "cuda", False, None),
    ],
)
def test_flash_meets_a_device(attention: object, device: str, sixteen_bits: bool, reason: str | None) -> None:
    config = ModelConfig.model_validate({"attention": attention})
    found = forced_flash_refusal(config, device, sixteen_bits=sixteen_bits)
    assert found is None if reason is None else reason in str(found)


def test_a_device_that_cannot_is_refused_with_the_way_out() -> None:
    asked = {"data": {"train": {"src": "a", "tgt": "b"}}, "train": {"max_steps": 1}, "model": {"attention": "flash"}}
    config = Config.model_validate(asked)
    with pytest.raises(
        ConfigError, match=r"flash cannot be computed on the device cuda(.|\n)*hint: model.attention: sdpa"
    ):
        refuse_unfit_device(config, "cuda")
    refuse_unfit_device(config, "cpu")


def test_fine_tuning_may_change_the_pattern_but_not_whether_there_are_mixtures() -> None:
    def asked(**model: object) -> Config:
        train = {"max_steps": 1, "init_from": "runs/a"}
        return Config.model_validate({"data": {"train": {"src": "a", "tgt": "b"}}, "train": train, "model": model})

    sparse = asked(attention={"encoder": "sparse"}, sparse={"window": 8})
    _refuse_other_architecture(sparse, asked())
    with pytest.raises(RunError, match="another architecture"):
        _refuse_other_architecture(asked(attention={"encoder": "linformer"}), asked())


@pytest.mark.parametrize("model", [{"positions": "learned"}, {"attention": {"encoder": "linformer"}}, {}])
def test_fine_tuning_keeps_the_longest_sentence_where_positions_have_parameters(model: dict[str, object]) -> None:
    def asked(max_length: int) -> Config:
        data = {"train": {"src": "a", "tgt": "b"}, "max_length": max_length}
        return Config.model_validate({"data": data, "train": {"max_steps": 1, "init_from": "runs/a"}, "model": model})

    if not model:
        _refuse_other_architecture(asked(64), asked(128))
        return
    with pytest.raises(RunError, match="another architecture") as caught:
        _refuse_other_architecture(asked(64), asked(128))
    assert (caught.value.got, caught.value.expected) == ("data.max_length 64", "data.max_length 128")


# The table of what means nothing together

ROWS = {
    "attention.decoder: linformer": {"attention": {"decoder": "linformer"}},
    "attention.cross: linformer": {"attention": {"cross": "linformer"}},
    "attention.cross: sparse": {"attention": {"cross": "sparse"}},
    "attention: flash with attention_dropout": {"attention": {"encoder": "flash"}, "attention_dropout": 0.1},
    "attention: flash with d_k and d_v that differ": {"attention": "flash", "d_k": 8, "d_v": 16},
    "sparse without attention: sparse": {"sparse": {"window": 8}},
    "linformer_rank without attention: linformer": {"linformer_rank": 8},
    "positions: rotary with an odd d_k": {"positions": "rotary", "d_k": 5},
    "positions: transformer_xl with an odd d_model": {"positions": "transformer_xl", "d_model": 9, "n_heads": 3},
    "positions: t5, alibi or transformer_xl with flash, linformer or sparse self-attention": {
        "positions": "alibi",
        "attention": {"encoder": "linformer"},
    },
}


def test_every_row_of_the_table_is_tested() -> None:
    assert {row.names for row in REFUSED} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_refused_with_name_and_reason(name: str) -> None:
    row = next(row for row in REFUSED if row.names == name)
    told = "positions: alibi with attention.encoder: linformer" if row.given else name
    with pytest.raises(ValueError, match=re.escape(f"{told}: {row.why}")):
        ModelConfig.model_validate(ROWS[name])


@pytest.mark.parametrize("positions", ["t5", "alibi", "transformer_xl"])
@pytest.mark.parametrize(
    ("attention", "told"),
    [
        ("flash", "attention.encoder: flash and attention.decoder: flash"),
        ({"encoder": "linformer"}, "attention.encoder: linformer"),
        ({"decoder": "sparse"}, "attention.decoder: sparse"),
    ],
)
def test_a_refusal_names_what_was_given(positions: str, attention: object, told: str) -> None:
    with pytest.raises(ValueError, match=f"positions: {positions} with {told}: they add numbers"):
        ModelConfig.model_validate({"positions": positions, "attention": attention})


@pytest.mark.parametrize(
    "settings",
    [
        {"attention": {"encoder": "sparse", "decoder": "sparse"}, "sparse": {"window": 8}, "attention_dropout": 0.1},
        {"attention": {"encoder": "linformer"}, "linformer_rank": 8, "attention_dropout": 0.1},
        {"attention": "flash"},
    ],
    ids=str,
)
def test_what_means_something_is_taken(settings: dict) -> None:
    assert ModelConfig.model_validate(settings).attention.encoder != "sdpa"


@pytest.mark.parametrize(
    ("sparse", "named"),
    [
        ({"dilation": 3}, "dilation"),
        ({"pattern": "dilated", "block": 8}, "block"),
        ({"pattern": "bigbird", "dilation": 3}, "dilation"),
        ({"pattern": "blocks", "window": 8, "seed": 2}, "seed and window"),
    ],
    ids=str,
)
def test_a_key_that_the_pattern_does_not_read_is_refused(sparse: dict, named: str) -> None:
    with pytest.raises(ValueError, match=f"{named} would do nothing: pattern {sparse.get('pattern', 'window')}"):
        ModelConfig.model_validate({"attention": {"encoder": "sparse"}, "sparse": sparse})


# In the model


@pytest.mark.parametrize(
    "attention", ["flash", {"encoder": "sparse", "decoder": "sparse"}, {"encoder": "linformer"}], ids=str
)
def test_the_model_computes_with_its_kernels_and_shows_the_weights_of_the_same_output(attention: object) -> None:
    window = {"sparse": {"window": 2}} if "sparse" in str(attention) else {}
    model, src, tgt = tiny_model(attention=attention, **window), sentences(2, 9), sentences(2, 8, seed=1)
    src[0, 6:] = 0
    logits, heads = model(src, tgt), [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    x, mask = torch.randn(2, 9, TINY["d_model"], dtype=torch.float64), (src != 0)[:, None, None]
    own = model.encoder.layers[0].self_attn
    output, none = own(x, x, x, mask)
    shown, weights = own(x, x, x, mask, return_weights=True)
    torch.testing.assert_close(output, shown, rtol=0, atol=1e-10)
    assert none is None
    assert logits.isfinite().all()
    maps = model.attention_maps(src, tgt)
    assert {weights.shape[-1] for weights in maps["encoder"]} == {64 if "linformer" in str(attention) else 9}
    assert all((head.kernel is None) == (head.implementation in ("flash", "sdpa")) for head in heads)
    if "sparse" in str(attention):
        assert (maps["decoder"][0][:, :, 5, :3] == 0).all()
        assert weights[1, 0, 4].count_nonzero() == 5


def test_linformer_ends_where_its_mixtures_end() -> None:
    model = tiny_model(attention={"encoder": "linformer"})
    assert model.max_length == 64
    with pytest.raises(ValueError, match="linformer ends at 64 tokens, got a sequence of 65"):
        model.encode(sentences(1, 65))
