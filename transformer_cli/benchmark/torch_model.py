"""Our model assembled from torch's own parts: what our training step is compared with.

``nn.TransformerEncoderLayer`` and ``nn.TransformerDecoderLayer`` in torch's stacks, ``nn.Dropout`` at the same places
(none on attention weights), ``F.cross_entropy``, torch's clipping. Only the positions are ours: one addition, which
torch has no module for. The weights can be copied over, so that both models compute the same.

Legend: B batch, S source length, T target length, D d_model, V vocabulary.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from transformer_cli.errors import UserError
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import DecoderLayer, EncoderLayer
from transformer_cli.model.transformer import Embedding, Transformer

if TYPE_CHECKING:
    from transformer_cli.config import ModelConfig
    from transformer_cli.data.batching import Batch

#: Pairs of our parameters and torch's one parameter that holds them stacked: torch keeps W_Q, W_K and W_V in one.
Twins = Iterator[tuple[list[Tensor], Tensor]]


def torch_settings(config: "ModelConfig") -> dict[str, Any]:
    """Return what torch's layers are called with to be like ours.

    Raises:
        UserError: torch's layers cannot be.
    """
    unlike = {
        "activation swiglu": config.activation == "swiglu",
        "d_k or d_v": config.d_k is not None or config.d_v is not None,
        "attention sparse or linformer": not {"sparse", "linformer"}.isdisjoint(config.attention.model_dump().values()),
        "attention_scale": config.attention_scale is not True,
        "positions inside attention": config.positions not in ("sinusoidal", "learned", "none"),
        "norm rms": config.norm == "rms",
        "bias false, which takes the biases of the norms away too": not config.bias,
        "attention_dropout": config.attention_dropout > 0,
        "word_dropout": config.word_dropout > 0,
        "qk_norm": config.qk_norm,
    }
    if refused := [name for name, is_so in unlike.items() if is_so]:
        raise UserError(
            "torch's own layers have no counterpart of this model",
            got=", ".join(refused),
            hint="compare a model without it: -s model.positions=sinusoidal in place of rotary ones, and so on",
        )
    return {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": config.dropout_at("residual"),
        "activation": config.activation,
        "norm_first": config.norm_placement == "pre",
        "batch_first": True,
    }


class TorchEmbedding(nn.Module):
    """Embeddings times √d_model plus positions, then dropout, with torch's dropout."""

    def __init__(self, ours: Embedding, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(ours.tokens.num_embeddings, ours.tokens.embedding_dim)
        self.positions = copy.deepcopy(ours.positions)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids ``[B, T]`` as ``[B, T, D]``."""
        x: Tensor = self.dropout(self.positions(self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)))
        return x


class TorchTransformer(nn.Module):
    """The twin of a model of ours, with a copy of its weights."""

    def __init__(self, ours: Transformer, config: "ModelConfig") -> None:
        """Make the twin.

        Raises:
            UserError: torch's layers cannot compute what the model does.
        """
        super().__init__()
        settings, pre = torch_settings(config), config.norm_placement == "pre"
        self.pad_id = ours.pad_id
        self.src_embedding = TorchEmbedding(ours.src_embedding, config.dropout_at("embedding"))
        self.tgt_embedding = TorchEmbedding(ours.tgt_embedding, config.dropout_at("embedding"))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**settings),
            config.encoder_layers,
            nn.LayerNorm(config.d_model) if pre else None,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**settings),
            config.decoder_layers,
            nn.LayerNorm(config.d_model) if pre else None,
        )
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # torch's layers put their dropout on the attention weights as well
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = config.dropout_at("feed_forward")  # between the two matrices
        self.output = nn.Linear(config.d_model, ours.output.out_features, bias=False)
        if config.tie_embeddings == "all":
            self.src_embedding.tokens.weight = self.tgt_embedding.tokens.weight
        if config.tie_embeddings != "none":
            self.output.weight = self.tgt_embedding.tokens.weight
        copy_weights(model_twins(ours, self))
        self.to(ours.output.weight.device)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits ``[B, T, V]`` for source ids ``[B, S]`` and target ids ``[B, T]`` that start with BOS."""
        padding, length = src == self.pad_id, tgt_in.size(1)  # torch's masks: True = hidden
        future = torch.ones(length, length, dtype=torch.bool, device=src.device).triu(1)
        memory = self.encoder(self.src_embedding(src), src_key_padding_mask=padding)
        hidden = self.decoder(
            self.tgt_embedding(tgt_in), memory, tgt_mask=future, tgt_is_causal=True, memory_key_padding_mask=padding
        )
        logits: Tensor = self.output(hidden)
        return logits


class TorchStep:
    """One update of the weights as one would write it with torch alone."""

    def __init__(
        self,
        model: TorchTransformer,
        optimizer: Optimizer,
        *,
        label_smoothing: float,
        clip_norm: float | None,
        autocast: AbstractContextManager[Any],
    ) -> None:
        self.model, self._optimizer, self._autocast = model.train(), optimizer, autocast
        self._label_smoothing, self._clip_norm = label_smoothing, clip_norm

    def __call__(self, window: Sequence["Batch"], rate: float) -> float:
        """Update the weights by the batches of a window; return its loss per target token."""
        n_tokens = sum(batch.n_tokens for batch in window)
        losses = [self._backward(batch, n_tokens) for batch in window]
        norm = nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None])
        if self._clip_norm is not None:
            nn.utils.clip_grads_with_norm_(self.model.parameters(), self._clip_norm, norm)
        loss, _ = torch.stack([torch.stack(losses).sum(), norm]).tolist()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return float(loss)

    def _backward(self, batch: "Batch", n_tokens: int) -> Tensor:
        with self._autocast:
            logits = self.model(batch.src, batch.tgt_in)
        loss = F.cross_entropy(
            logits.float().flatten(0, -2),
            batch.tgt_out.flatten(),
            ignore_index=self.model.pad_id,
            reduction="sum",
            label_smoothing=self._label_smoothing,
        )
        loss = loss / n_tokens
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


@torch.no_grad()
def copy_weights(twins: Twins) -> None:
    """Give torch's parameters the values of ours."""
    for ours, theirs in twins:
        theirs.copy_(torch.cat(ours))


def model_twins(ours: Transformer, theirs: TorchTransformer) -> Twins:
    """Pair all parameters of the two models; shared ones come more than once."""
    for name in ("src_embedding", "tgt_embedding", "output"):
        yield from _same_names(getattr(ours, name), getattr(theirs, name))
    for name in ("encoder", "decoder"):
        yield from stack_twins(getattr(ours, name), getattr(theirs, name))


def stack_twins(ours: nn.Module, theirs: nn.Module) -> Twins:
    """Pair the parameters of two encoders or two decoders."""
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):  # type: ignore[arg-type]
        yield from layer_twins(our_layer, their_layer)
    if theirs.norm is not None:
        yield from _same_names(ours.norm, theirs.norm)  # type: ignore[arg-type]


def layer_twins(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> Twins:
    """Pair the parameters of two layers."""
    yield from attention_twins(ours.self_attn, theirs.self_attn)  # type: ignore[arg-type]
    residuals = [ours.self_attn_residual, ours.feed_forward_residual]
    if isinstance(ours, DecoderLayer):
        yield from attention_twins(ours.cross_attn, theirs.multihead_attn)  # type: ignore[arg-type]
        residuals.insert(1, ours.cross_attn_residual)
    for number, residual in enumerate(residuals, start=1):
        yield from _same_names(residual.norm, getattr(theirs, f"norm{number}"))
    yield from _same_names(ours.feed_forward.w_1, theirs.linear1)  # type: ignore[arg-type]
    yield from _same_names(ours.feed_forward.w_2, theirs.linear2)  # type: ignore[arg-type]


def attention_twins(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Twins:
    """Pair the parameters of two attentions."""
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    yield [p.weight for p in projections], theirs.in_proj_weight
    if theirs.in_proj_bias is not None:
        yield [p.bias for p in projections], theirs.in_proj_bias
    yield from _same_names(ours.out_proj, theirs.out_proj)


def _same_names(ours: nn.Module, theirs: nn.Module) -> Twins:
    for name, parameter in theirs.named_parameters():
        yield [ours.get_parameter(name)], parameter
