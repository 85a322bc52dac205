"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1).

Legend: B batch, S source length, T target length, D d_model, V vocabulary, H heads.

From token ids to logits; losses, search and files are elsewhere.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention, kept_as, recorded_weights
from transformer_cli.model.cache import AttentionCache, DecoderCache
from transformer_cli.model.dropout import Dropout, dropout
from transformer_cli.model.init import initialise
from transformer_cli.model.kernels import SparseAttention, at_least_float32
from transformer_cli.model.layers import DecoderLayer, EncoderLayer
from transformer_cli.model.linear import Linear
from transformer_cli.model.masks import padding_mask
from transformer_cli.model.norms import norm_of
from transformer_cli.model.packed import PackedLayer
from transformer_cli.model.positions import positions_of_embeddings
from transformer_cli.model.recompute import recomputing

if TYPE_CHECKING:
    from transformer_cli.config import ModelConfig


_FIRST_COLUMNS = 32  # positions for which a cache has room at first


class Embedding(nn.Module):
    """Token embeddings times √d_model plus positions, then dropout (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4)."""

    def __init__(self, config: "ModelConfig", vocab_size: int, max_length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, config.d_model)
        self.positions = positions_of_embeddings(config, max_length)
        self.dropout = Dropout(config.dropout_at("embedding"))
        self.word_dropout = config.word_dropout
        self.scale = math.sqrt(config.d_model)

    def forward(self, ids: Tensor, at: np.ndarray | None = None, kept: Tensor | None = None) -> Tensor:
        """Embed token ids.

        Word dropout zeroes the embedding of a whole token and scales the others by 1 / (1 - p) (Gal & Ghahramani 2016;
        Sennrich et al. 2016); its position stays, so that the model still sees that something stood there.

        Args:
            ids: token ids ``[B, T]``.
            at: position ``[B]`` of each row, whose T is 1 or one token of T hypotheses; None: 0, 1, …
            kept: boolean ``[B, T]``; where False the embedding is zero and only the position is left.

        Returns:
            ``[B, T, D]``.
        """
        x = self.tokens(ids) * self.scale
        if self.training and self.word_dropout:
            x = x * dropout(x.new_ones(*ids.shape, 1), self.word_dropout)
        if kept is not None:
            x = x * kept[..., None]
        y: Tensor = self.dropout(self.positions(x, at))
        return y


class Encoder(nn.Module):
    """A stack of encoder layers; Pre-Norm stacks end in a norm of their own."""

    def __init__(self, config: "ModelConfig", max_length: int | None = None) -> None:
        super().__init__()
        layers = [EncoderLayer(config, max_length) for _ in range(config.encoder_layers)]
        self.layers: Sequence[EncoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = _final_norm(config)
        self.recompute = False  # train.checkpointing: layer

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the memory ``[B, S, D]`` of embedded tokens x ``[B, S, D]``; the mask is ``[B, 1, 1, S]``."""
        for layer in self.layers:
            x = (recomputing(layer) if self.recompute else layer)(x, mask)
        out: Tensor = self.norm(x)
        return out


class Decoder(nn.Module):
    """A stack of decoder layers; Pre-Norm stacks end in a norm of their own."""

    def __init__(self, config: "ModelConfig") -> None:
        super().__init__()
        layers = [DecoderLayer(config) for _ in range(config.decoder_layers)]
        self.layers: Sequence[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = _final_norm(config)
        self.recompute = False  # train.checkpointing: layer

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Return the hidden states ``[B, T, D]`` of embedded tokens x ``[B, T, D]``.

        Args:
            x: of the target.
            memory: the encoder's output ``[B, S, D]``.
            memory_mask: ``[B, 1, 1, S]``, hides the source's padding.
        """
        for layer in self.layers:
            x = (recomputing(layer) if self.recompute else layer)(x, memory, memory_mask)
        out: Tensor = self.norm(x)
        return out


def _final_norm(config: "ModelConfig") -> nn.Module:
    return norm_of(config) if config.norm_placement == "pre" else nn.Identity()


class Transformer(nn.Module):
    """The whole model: embeddings, encoder, decoder and output layer.

    Attributes:
        max_length: longest sequence, in tokens, that learned positions or linformer can take; None: any.
    """

    def __init__(
        self,
        config: "ModelConfig",
        src_vocab_size: int,
        tgt_vocab_size: int,
        *,
        pad_id: int = 0,
        max_length: int = 1024,
    ) -> None:
        """Make and initialise the model.

        Args:
            config: the ``model`` section of a recipe.
            src_vocab_size: number of source tokens.
            tgt_vocab_size: number of target tokens.
            pad_id: id that fills up short sentences, always at their end.
            max_length: number of learned positions, and longest source of linformer.

        Raises:
            ValueError: all embeddings are to be shared by vocabularies of different sizes.
        """
        super().__init__()
        if config.tie_embeddings == "all" and src_vocab_size != tgt_vocab_size:
            raise ValueError(
                f"tie_embeddings all needs one vocabulary, got sizes {src_vocab_size} and {tgt_vocab_size}"
            )
        self.pad_id = pad_id
        self.max_length = max_length if config.ends_at_max_length else None
        self.src_embedding = Embedding(config, src_vocab_size, max_length)
        self.tgt_embedding = Embedding(config, tgt_vocab_size, max_length)
        self.encoder = Encoder(config, max_length)
        self.decoder = Decoder(config)
        self.output = Linear(config.d_model, tgt_vocab_size, bias=False)
        if config.tie_embeddings == "all":
            self.src_embedding.tokens.weight = self.tgt_embedding.tokens.weight
        if config.tie_embeddings != "none":
            self.output.weight = self.tgt_embedding.tokens.weight
        initialise(self, zero_init=config.zero_init)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits ``[B, T, V]`` for source ids ``[B, S]`` and target ids ``[B, T]`` that start with BOS.

        Raises:
            ValueError: a sequence is longer than learned positions or linformer reach, or a kernel cannot compute it.
        """
        return self.project(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return the memory ``[B, S, D]`` of source ids ``[B, S]``; tokens that are not kept lose their embedding."""
        memory: Tensor = self.encoder(self.src_embedding(src, kept=kept), padding_mask(src, self.pad_id))
        return memory

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return hidden states ``[B, T, D]`` for all target positions at once.

        Args:
            tgt_in: target ids ``[B, T]``, starting with BOS, padded at the end only.
            memory: the encoder's output ``[B, S, D]``.
            src: source ids ``[B, S]``; their padding is hidden.
            kept: boolean ``[B, T]``; target tokens that are not kept lose their embedding.
        """
        hidden: Tensor = self.decoder(self.tgt_embedding(tgt_in, kept=kept), memory, padding_mask(src, self.pad_id))
        return hidden

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits ``[..., V]`` of hidden states ``[..., D]``, in float32 (float64 stays)."""
        return at_least_float32(self.output(hidden))

    def packed_layers(self) -> list[PackedLayer]:
        """Return copies of the decoder layers as a step computes them; they do not follow weights that change."""
        return [PackedLayer(layer) for layer in self.decoder.layers]

    def new_cache(
        self, n_places: int, n_hypotheses: int, src_length: int, packed: list[PackedLayer] | None = None
    ) -> DecoderCache:
        """Prepare a translation step by step.

        Args:
            n_places: N sentences that are translated side by side.
            n_hypotheses: K hypotheses of each.
            src_length: longest source S that will come.
            packed: of ``packed_layers``, if the weights are still those; None: copy them now.
        """
        layers, like = self.decoder.layers, kept_as(self.output.weight)
        room, wide = _FIRST_COLUMNS * n_hypotheses, n_hypotheses > 1
        own = [AttentionCache(layer.self_attn, n_places, room, like, transposed=wide) for layer in layers]
        cross = [AttentionCache(layer.cross_attn, n_places, src_length, like, transposed=True) for layer in layers]
        kernel = layers[0].self_attn.kernel
        pattern = kernel.pattern if isinstance(kernel, SparseAttention) else None
        return DecoderCache(packed or self.packed_layers(), own, cross, n_hypotheses, pattern)

    def admit(self, cache: DecoderCache, places: list[int], src: Tensor) -> None:
        """Let sources ``[m, S]`` take places in a cache; their memory is computed and projected here, once.

        There may be more rows than places: they only fill up the matrices.
        """
        memory = self.encode(src)
        projected = [layer.cross_attn.keys_values(memory, memory) for layer in self.decoder.layers]
        cache.admit(places, projected, src != self.pad_id)

    def decode_step(self, tokens: Tensor, parents: Tensor, cache: DecoderCache) -> Tensor:
        """Return hidden states ``[N, K, D]`` for the next position of each hypothesis and append it to the cache.

        Places are independent of each other. Only the last bits may differ between numbers of places, because matrix
        products do.

        Args:
            tokens: newest target ids ``[N, K]``; BOS at a sentence's first step.
            parents: ``[N, K]`` the hypothesis, of those before, that each one continues.
            cache: of ``new_cache``, changed in place.
        """
        step = cache.start_step(parents)
        x = self.tgt_embedding(tokens, step.positions).flatten(0, 1)  # [N * K, D]
        for layer, own, cross in zip(cache.layers, cache.own, cache.cross, strict=True):
            x = layer.step(x, own, cross, step)
        hidden: Tensor = self.decoder.norm(x)
        return hidden.view(*tokens.shape, -1)

    @torch.no_grad()
    def attention_maps(self, src: Tensor, tgt_in: Tensor) -> dict[str, list[Tensor]]:
        """Return the attention weights of every layer, recomputed without dropout by the naive implementation.

        Returns:
            ``encoder``, ``decoder`` and ``cross``, each one tensor ``[B, H, T, S]`` per layer; of a linformer encoder
            ``[B, H, S, R]``, the weights of its mixtures.
        """
        attentions = [module for module in self.modules() if isinstance(module, MultiHeadAttention)]
        was_training = self.training
        self.eval()
        try:
            with recorded_weights(attentions) as weights:
                self(src, tgt_in)
        finally:
            self.train(was_training)
        return {
            "encoder": [weights[layer.self_attn] for layer in self.encoder.layers],
            "decoder": [weights[layer.self_attn] for layer in self.decoder.layers],
            "cross": [weights[layer.cross_attn] for layer in self.decoder.layers],
        }


def parameter_table(model: nn.Module) -> list[tuple[str, int]]:
    """Count parameters per part of the model, equal parts of all layers together, shared ones once.

    Returns:
        Rows of name and count, such as ``("encoder.layers.*.self_attn", 264192)``; the counts add up to the total.
    """
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = re.match(r"\w+(\.layers\.\d+)?\.\w+(\.positions)?", name)
        counts[re.sub(r"\.\d+\.", ".*.", part[0] if part else name)] += parameter.numel()
    return list(counts.items())


def choose_recomputation(model: nn.Module, what: Literal["none", "attention", "layer"]) -> None:
    """Let the backward pass compute the attention cores, or whole layers, again (``recompute.py``)."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.recompute = what == "attention"
        elif isinstance(module, Encoder | Decoder):
            module.recompute = what == "layer"
