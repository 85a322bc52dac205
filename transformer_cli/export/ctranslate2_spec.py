"""Our model as a specification of CTranslate2: the same function, written in that engine's names and layouts.

Legend: O outputs, I inputs of a matrix, H heads, K and Kv our head widths, W the one head width that CTranslate2 knows.

What differs from our layout:

* projections of one input are one matrix there, [Q; K; V] for self-attention and [K; V] for the memory;
* queries, keys and values of a head share one width: the narrower ones are filled up with zeros, which add nothing to
  a product and are multiplied away by zero columns of the output matrix;
* positions have their own file, ``ctranslate2_positions.py``.

Not here: files (``folder.py``), and search (``decoding/ctranslate2_engine.py``).
"""

from collections.abc import Callable
from copy import deepcopy
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.data.tokenizer import BOS, EOS, UNK, Tokenizer
from transformer_cli.errors import UserError
from transformer_cli.export.ctranslate2_positions import fill_distances, fill_table, looking_twice, position_settings
from transformer_cli.model.attention import head_widths
from transformer_cli.model.kernels import pattern_of
from transformer_cli.model.norms import EPS
from transformer_cli.model.positions import TransformerXLPositions
from transformer_cli.wording import spelled

if TYPE_CHECKING:
    from torch import nn

    from transformer_cli.model.attention import MultiHeadAttention
    from transformer_cli.model.head_norm import HeadNorm
    from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward
    from transformer_cli.model.transformer import Transformer


class _Refusal(NamedTuple):
    """What CTranslate2 cannot compute."""

    key: str
    found: Callable[[ModelConfig], bool]
    why: str
    instead: str


#: All other settings can be represented; ``tests/parity/test_ctranslate2_parity.py`` has each of them.
_REFUSED = (
    # Measured with 4.8.5: right in self-attention, in encoder-decoder attention before the split.
    _Refusal(
        "qk_norm",
        lambda c: c.qk_norm and c.n_heads > 1,
        "it normalises the queries of encoder-decoder attention over all heads together, not each head's",
        "model.qk_norm: false, or one head",
    ),
    _Refusal(
        "qk_norm",
        lambda c: c.qk_norm and _widths(c)[0] < _widths(c)[1],
        "its queries are as wide as its values, and a norm would count the zeros that fill them up",
        "model.qk_norm: false, or d_k at least as large as d_v",
    ),
    _Refusal(
        "attention.encoder",
        lambda c: c.attention.encoder == "linformer",
        "it has no mixtures of keys",
        "dense attention",
    ),
    _Refusal(
        "sparse.pattern",
        lambda c: _sparse(c) and (pattern_of(c.sparse).global_tokens > 0 or pattern_of(c.sparse).chooses_blocks),
        "of what attention sees it can be told the distances, and neither first tokens nor blocks",
        "window or dilated, with model.sparse.global_tokens: 0",
    ),
    # Its encoder and decoder add nothing to embeddings if their first attention has positions of any kind.
    _Refusal(
        "positions",
        lambda c: _sparse(c) and c.positions in ("sinusoidal", "learned"),
        "sparse attention is numbers for distances there, and beside those nothing is added to embeddings",
        "model.positions: rotary or none, or dense attention",
    ),
)


def refuse_unrepresentable(config: ModelConfig) -> None:
    """Check that CTranslate2 can compute the model exactly.

    Raises:
        UserError: it cannot; the key and its value are named.
    """
    for refusal in _REFUSED:
        if refusal.found(config):
            value = reduce(getattr, refusal.key.split("."), config)
            raise UserError(
                f"CTranslate2 cannot represent the model: {refusal.why}",
                got=f"model.{refusal.key}: {spelled(value)}",
                expected=refusal.instead,
                hint="train such a model, or translate with tfm",
            )


def specification(model: "Transformer", config: ModelConfig, tokenizer: Tokenizer, positions: int) -> Any:
    """Return a validated ``ctranslate2.specs.TransformerSpec`` that computes what the model computes.

    Args:
        model: on the CPU, in float32.
        config: the ``model`` section that it was made from.
        tokenizer: names the tokens.
        positions: how many there must be; learned positions bring their own number.

    Raises:
        UserError: see ``refuse_unrepresentable``.
    """
    from ctranslate2.specs import TransformerSpec, transformer_spec  # an optional package

    refuse_unrepresentable(config)
    model = deepcopy(model)  # quantising the specification overwrites its weights in place
    encoder = transformer_spec.TransformerEncoderSpec(num_layers=config.encoder_layers, **_stack(config, "encoder"))
    decoder = transformer_spec.TransformerDecoderSpec(num_layers=config.decoder_layers, **_stack(config, "decoder"))
    spec = TransformerSpec(encoder, decoder)
    encoder.embeddings[0].weight = model.src_embedding.tokens.weight
    decoder.embeddings.weight = model.tgt_embedding.tokens.weight  # times √d_model: the specification's default
    fill_table(encoder, model.src_embedding, positions)
    fill_table(decoder, model.tgt_embedding, positions)
    for layer_spec, layer in zip(encoder.layer, model.encoder.layers, strict=True):
        _fill_layer(layer_spec, layer)
        fill_distances(layer_spec.self_attention, layer.self_attn, positions, causal=False)
    for layer_spec, decoder_layer in zip(decoder.layer, model.decoder.layers, strict=True):
        _fill_layer(layer_spec, decoder_layer)
        fill_distances(layer_spec.self_attention, decoder_layer.self_attn, positions, causal=True)
        _fill_attention(layer_spec.attention, decoder_layer.cross_attn, decoder_layer.cross_attn_residual.norm)
    if config.norm_placement == "pre":
        _fill_norm(encoder.layer_norm, model.encoder.norm)
        _fill_norm(decoder.layer_norm, model.decoder.norm)
    decoder.projection.weight = model.output.weight
    _name_tokens(spec, tokenizer)
    spec.config.layer_norm_epsilon = EPS
    spec.validate()
    return spec


def _stack(config: ModelConfig, place: Literal["encoder", "decoder"]) -> dict[str, Any]:
    """Return the settings of a stack."""
    from ctranslate2.specs.common_spec import Activation

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
    return {
        "num_heads": config.n_heads,
        "pre_norm": config.norm_placement == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm == "rms",
        "qk_norm": config.qk_norm,
        "head_dim": max(_widths(config)),
        **position_settings(config, place),
    }


def _sparse(config: ModelConfig) -> bool:
    return "sparse" in (config.attention.encoder, config.attention.decoder)


def _widths(config: ModelConfig) -> tuple[int, int]:
    return head_widths(config.d_model, config.n_heads, config.d_k, config.d_v)


def _fill_layer(spec: Any, layer: "EncoderLayer | DecoderLayer") -> None:
    """Fill what the layers of both stacks have."""
    _fill_attention(spec.self_attention, layer.self_attn, layer.self_attn_residual.norm)
    _fill_feed_forward(spec.ffn, layer.feed_forward, layer.feed_forward_residual.norm)


def _fill_attention(spec: Any, attention: "MultiHeadAttention", norm: "nn.Module") -> None:
    heads, d_k = attention.n_heads, attention.d_k
    projections: list[tuple[Tensor, Tensor | None]] = [
        (layer.weight, layer.bias) for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
    ]
    if isinstance(attention.positions, TransformerXLPositions):
        projections[0] = looking_twice(*projections[0], attention.positions)
    width = max(len(weight) for weight, _ in projections) // heads
    q, k, v = (_widened(weight, bias, heads, width) for weight, bias in projections)
    inputs = [[q, k, v]] if len(spec.linear) == 2 else [[q], [k, v]]
    for linear, parts in zip(spec.linear, inputs, strict=False):
        linear.weight = torch.cat([weight for weight, _ in parts])
        linear.bias = torch.cat([bias for _, bias in parts])
    out = attention.out_proj
    spec.linear[-1].weight = _widened(out.weight.T, None, heads, width)[0].T.contiguous()
    if out.bias is not None:
        spec.linear[-1].bias = out.bias
    spec.head_dim = np.dtype("int32").type(width)
    spec.queries_scale = d_k**-0.5 if attention.scale is None else attention.scale
    _fill_norm(spec.layer_norm, norm)
    if attention.q_norm is not None and attention.k_norm is not None:
        spec.q_norm, spec.k_norm = _head_norm(attention.q_norm), _head_norm(attention.k_norm)


def _widened(weight: Tensor, bias: Tensor | None, heads: int, width: int) -> tuple[Tensor, Tensor]:
    """Fill up every head's rows of weight ``[H * K, I]`` and bias ``[H * K]`` with zeros to W rows."""

    def fill(rows: Tensor) -> Tensor:
        per_head = rows.detach().reshape(heads, -1, *rows.shape[1:])  # [H, K, ...]
        filled: Tensor = per_head.new_zeros(heads, width, *rows.shape[1:])
        filled[:, : per_head.size(1)] = per_head
        return filled.flatten(0, 1)  # [H * W, ...]

    return fill(weight), fill(weight.new_zeros(len(weight)) if bias is None else bias)


def _fill_feed_forward(spec: Any, feed_forward: "FeedForward", norm: "nn.Module") -> None:
    if feed_forward.activation == "swiglu":
        _fill_linear(spec.linear_0, feed_forward.w_g)
        _fill_linear(spec.linear_0_noact, feed_forward.w_1)
    else:
        _fill_linear(spec.linear_0, feed_forward.w_1)
    _fill_linear(spec.linear_1, feed_forward.w_2)
    _fill_norm(spec.layer_norm, norm)


def _fill_linear(spec: Any, linear: "nn.Linear") -> None:
    spec.weight = linear.weight
    if linear.bias is not None:
        spec.bias = linear.bias


def _fill_norm(spec: Any, norm: "nn.Module") -> None:
    spec.gamma = norm.weight
    if hasattr(spec, "beta"):
        spec.beta = norm.bias


def _head_norm(norm: "HeadNorm") -> Any:
    """Return a norm of CTranslate2's, where LayerNorm needs the bias that ours has not."""
    from ctranslate2.specs.common_spec import LayerNormSpec

    spec = LayerNormSpec(rms_norm=norm.kind == "rms")
    spec.gamma = norm.weight
    if norm.kind == "layer":
        spec.beta = torch.zeros_like(norm.weight)
    return spec


def _name_tokens(spec: Any, tokenizer: Tokenizer) -> None:
    spec.register_source_vocabulary(tokenizer.src_pieces(range(tokenizer.src_vocab_size)))
    spec.register_target_vocabulary(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
    unk, bos, eos = tokenizer.tgt_pieces([UNK, BOS, EOS])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unk, bos, eos
    spec.config.decoder_start_token = bos
