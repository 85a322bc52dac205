"""Linformer (Wang et al. 2020): attention to a fixed number of mixtures of the keys, linear in the length.

Legend: B batch, S length, T queries, H heads, K and Kv head widths, R rank.

head = softmax(Q (E K)ᵀ / √d_k) F V  (Wang et al. 2020, eq. 7), with E and F ``[R, S]`` learned. They are shared by the
heads of a layer, and no two layers share them (the paper's "headwise" sharing). A text of S tokens uses their first S
columns, so it ends where they end. The paper knows only texts of one length; here padding is zeroed before it is mixed
and so has no influence, and nothing is divided by the length: a short text just has smaller mixtures.

Every mixture holds all positions, so nothing can be hidden afterwards: there is no causal Linformer.
"""

import torch
from torch import Tensor, nn

from transformer_cli.model.kernels.dense import fastest_dense, naive_attention


class Linformer(nn.Module):
    """Attention to R mixtures of keys and values instead of to S of them."""

    def __init__(self, rank: int, max_length: int) -> None:
        """Make E and F.

        Args:
            rank: R.
            max_length: longest S.
        """
        super().__init__()
        self.key_mix = nn.Parameter(torch.empty(rank, max_length))  # E
        self.value_mix = nn.Parameter(torch.empty(rank, max_length))  # F
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both from N(0, 1 / max_length): mixtures of a text of full length then vary as its keys do."""
        for mix in (self.key_mix, self.value_mix):
            nn.init.normal_(mix, std=mix.size(1) ** -0.5)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the mixtures.

        Args:
            query: ``[B, H, T, K]``.
            key: ``[B, H, S, K]``.
            value: ``[B, H, S, Kv]``.
            mask: boolean ``[B, 1, 1, S]``, False for padding; None allows everything.
            causal: must be False.
            dropout: probability of dropping a weight of a mixture.
            scale: factor of the scores; None: 1 / √d_k.

        Returns:
            The output ``[B, H, T, Kv]``, and the weights ``[B, H, T, R]`` if they were computed.

        Raises:
            ValueError: S is longer than E and F, or something is to be hidden besides padding.
        """
        core = fastest_dense(query, dropout)
        key, value = self._mixed(key, value, mask, causal=causal)
        return core(query, key, value, dropout=dropout, scale=scale)

    def naive(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the same with the weights ``[B, H, T, R]`` of the mixtures; all else as of ``forward``."""
        key, value = self._mixed(key, value, mask, causal=causal)
        return naive_attention(query, key, value, dropout=dropout, scale=scale)

    def _mixed(self, key: Tensor, value: Tensor, mask: Tensor | None, *, causal: bool) -> tuple[Tensor, Tensor]:
        """Return E K ``[B, H, R, K]`` and F V ``[B, H, R, Kv]``."""
        length, longest = key.size(2), self.key_mix.size(1)
        if causal:
            raise ValueError("linformer mixes all positions: it cannot be causal")
        if length > longest:
            raise ValueError(f"linformer ends at {longest} tokens, got a sequence of {length}: cut it")
        if mask is not None:
            if mask.shape[1:] != (1, 1, length):
                raise ValueError(f"linformer takes a mask of keys [B, 1, 1, {length}], got {list(mask.shape)}")
            real = mask.transpose(-2, -1)  # [B, 1, S, 1]
            key, value = key * real, value * real
        e, f = self.key_mix[:, :length].to(key.dtype), self.value_mix[:, :length].to(value.dtype)
        return e @ key, f @ value
