"""Our model as a specification of CTranslate2: the same function, written in that engine's names and layouts.

Legend: O outputs, I inputs of a matrix, H heads, K and Kv our head widths, W the one head width that CTranslate2 knows.

What differs from our layout:

* projections of one input are one matrix there, [Q; K; V] for self-attention and [K; V] for the memory;
* queries, keys and values of a head share one width: the narrower ones are filled up with zeros, which add nothing to
  a product and are multiplied away by zero columns of the output matrix;
* positions are an explicit table, because its own sinusoids stand in another order and start at position 1.

Not here: files (``folder.py``), and search (``decoding/ctranslate2_engine.py``).
"""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.data.tokenizer import BOS, EOS, UNK, Tokenizer
from transformer_cli.errors import UserError
from transformer_cli.model.positions import LearnedPositions, sinusoidal_table

if TYPE_CHECKING:
    from torch import nn

    from transformer_cli.model.attention import MultiHeadAttention
    from transformer_cli.model.layers import DecoderLayer, EncoderLayer, FeedForward
    from transformer_cli.model.transformer import Embedding, Transformer


#: Keys, the values that can be represented, and why others cannot.
_UNREPRESENTABLE: tuple[tuple[str, tuple[object, ...], str], ...] = (
    # Measured with 4.8.5: right in self-attention, in encoder-decoder attention before the split.
    (
        "qk_norm",
        (False,),
        "it normalises the queries of encoder-decoder attention over all heads together, not each head's",
    ),
    (
        "positions",
        ("sinusoidal", "learned"),
        "a table that is added to the embeddings is the one way of positions that was tested",
    ),
    ("norm", ("layer",), "only LayerNorm was tested"),
)


def refuse_unrepresentable(config: ModelConfig) -> None:
    """Check that CTranslate2 can compute the model exactly; all other keys of the section it can.

    Raises:
        UserError: it cannot; the key and its value are named.
    """
    for key, kept, why in _UNREPRESENTABLE:
        value = getattr(config, key)
        if value not in kept:
            raise UserError(
                f"CTranslate2 cannot represent the model: {why}",
                got=f"model.{key}: {str(value).lower()}",
                expected=" or ".join(f"model.{key}: {str(one).lower()}" for one in kept),
                hint=f"train a model with model.{key}: {str(kept[0]).lower()}, or translate with tfm",
            )
    for place, chosen in config.attention.model_dump().items():
        if chosen in ("sparse", "linformer"):
            raise UserError(
                "CTranslate2 cannot represent the model: its attention sees all keys",
                got=f"model.attention.{place}: {chosen}",
                expected="naive, sdpa or flash",
                hint="train a model with dense attention, or translate with tfm",
            )


def specification(model: "Transformer", config: ModelConfig, tokenizer: Tokenizer, positions: int) -> Any:
    """Return a validated ``ctranslate2.specs.TransformerSpec`` that computes what the model computes.

    Args:
        model: on the CPU, in float32.
        config: the ``model`` section that it was made from.
        tokenizer: names the tokens.
        positions: rows of the table of sinusoids; learned positions bring their own number.

    Raises:
        UserError: see ``refuse_unrepresentable``.
    """
    from ctranslate2.specs import TransformerSpec, transformer_spec  # an optional package

    refuse_unrepresentable(config)
    model = deepcopy(model)  # quantising the specification overwrites its weights in place
    stack = _stack(config)
    encoder = transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.n_heads, **stack)
    decoder = transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.n_heads, **stack)
    spec = TransformerSpec(encoder, decoder)
    _fill_embedding(encoder.embeddings[0], encoder.position_encodings, model.src_embedding, positions)
    _fill_embedding(decoder.embeddings, decoder.position_encodings, model.tgt_embedding, positions)
    for layer_spec, layer in zip(encoder.layer, model.encoder.layers, strict=True):
        _fill_layer(layer_spec, layer)
    for layer_spec, decoder_layer in zip(decoder.layer, model.decoder.layers, strict=True):
        _fill_layer(layer_spec, decoder_layer)
        _fill_attention(layer_spec.attention, decoder_layer.cross_attn, decoder_layer.cross_attn_residual.norm)
    if config.norm_placement == "pre":
        _fill_norm(encoder.layer_norm, model.encoder.norm)
        _fill_norm(decoder.layer_norm, model.decoder.norm)
    decoder.projection.weight = model.output.weight
    _name_tokens(spec, tokenizer)
    spec.config.layer_norm_epsilon = model.decoder.layers[0].self_attn_residual.norm.eps
    spec.validate()
    return spec


def _stack(config: ModelConfig) -> dict[str, Any]:
    """Return what both stacks have in common."""
    from ctranslate2.specs.common_spec import Activation

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
    return {
        "pre_norm": config.norm_placement == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "head_dim": _head_width(config),
    }


def _head_width(config: ModelConfig) -> int:
    default = config.d_model // config.n_heads
    return max(config.d_k or default, config.d_v or default)


def _fill_embedding(spec: Any, position_spec: Any, embedding: "Embedding", positions: int) -> None:
    """Fill in tokens and positions; that the tokens are multiplied by √d_model is the specification's default."""
    spec.weight = embedding.tokens.weight
    if isinstance(embedding.positions, LearnedPositions):
        position_spec.encodings = embedding.positions.table.weight
    else:
        position_spec.encodings = sinusoidal_table(positions, embedding.tokens.embedding_dim).float()


def _fill_layer(spec: Any, layer: "EncoderLayer | DecoderLayer") -> None:
    """Fill what the layers of both stacks have."""
    _fill_attention(spec.self_attention, layer.self_attn, layer.self_attn_residual.norm)
    _fill_feed_forward(spec.ffn, layer.feed_forward, layer.feed_forward_residual.norm)


def _fill_attention(spec: Any, attention: "MultiHeadAttention", norm: "nn.Module") -> None:
    heads = attention.n_heads
    d_k, d_v = attention.q_proj.out_features // heads, attention.v_proj.out_features // heads
    width = max(d_k, d_v)
    q, k, v = (
        _widened(layer.weight, layer.bias, heads, width)
        for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    inputs = [[q, k, v]] if len(spec.linear) == 2 else [[q], [k, v]]
    for linear, parts in zip(spec.linear, inputs, strict=False):
        linear.weight = torch.cat([weight for weight, _ in parts])
        if attention.q_proj.bias is not None:
            linear.bias = torch.cat([bias for _, bias in parts])
    out = attention.out_proj
    spec.linear[-1].weight = _widened(out.weight.T, None, heads, width)[0].T.contiguous()
    if out.bias is not None:
        spec.linear[-1].bias = out.bias
    spec.queries_scale = d_k**-0.5 if attention.scale is None else attention.scale
    _fill_norm(spec.layer_norm, norm)


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
    spec.gamma, spec.beta = norm.weight, norm.bias


def _name_tokens(spec: Any, tokenizer: Tokenizer) -> None:
    spec.register_source_vocabulary(tokenizer.src_pieces(range(tokenizer.src_vocab_size)))
    spec.register_target_vocabulary(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
    unk, bos, eos = tokenizer.tgt_pieces([UNK, BOS, EOS])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unk, bos, eos
    spec.config.decoder_start_token = bos
