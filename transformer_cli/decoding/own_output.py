"""The output layer of a step over lists: each place has its own tokens.

Legend: N places, K hypotheses of a place, D d_model, V vocabulary, L longest list, U pieces in the lists of all places.

One product computes the logits of all pieces that any place has, and each place takes its own out of them, in the order
of its list. Its log-probabilities are those among them, by the same arithmetic whatever the others are: a row is filled
up to a multiple of 16 with -inf, which adds zeros behind the sum of a softmax and so moves no bit of it. Measured with
torch 2.13 and MKL on an AVX-512 CPU (inner widths 96 to 512, 16 to 640 rows): a column of the product is the same to
the last bit among any two or more columns, wherever it stands; a product with one column differs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.model.kernels import at_least_float32
from transformer_cli.model.linear import linear

_MULTIPLE = 16
_N_SPECIAL = 4  # of every list


class OwnOutput:
    """The rows of an output layer that the places want, and where each place finds its own."""

    def __init__(self, weight: Tensor, n_places: int, longest: int) -> None:
        """Make room.

        Args:
            weight: of the output layer ``[V, D]``.
            n_places: N.
            longest: longest list that will come.
        """
        self._weight = weight
        width = -(-longest // _MULTIPLE) * _MULTIPLE
        self._ids = np.zeros((n_places, width), dtype=np.int64)  # [N, L]
        self._lengths = np.full(n_places, _N_SPECIAL)
        self._choose_rows()

    def admit(self, places: list[int], lists: Sequence[NDArray[np.int64]]) -> None:
        """Give places their lists, each ascending and with the special ids at its start."""
        for place, listed in zip(places, lists, strict=True):
            self._ids[place, : len(listed)], self._lengths[place] = listed, len(listed)
            self._ids[place, len(listed) :] = 0
        self._choose_rows()

    def keep(self, places: list[int]) -> None:
        """Go on with these places only, in this order."""
        self._ids, self._lengths = self._ids[places], self._lengths[places]
        self._choose_rows()

    def ids(self, tokens: Tensor) -> Tensor:
        """Return the ids ``[N, K]`` of each place's own tokens ``[N, K]``."""
        return self._ids_there.gather(1, tokens)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities ``[N * K, L]``, float32, of each place's tokens, for hidden ``[N, K, D]``."""
        logits = at_least_float32(linear(hidden.flatten(0, 1), self._rows, None))  # [N * K, U + 1]
        logits[:, -1] = -torch.inf
        logits = logits.view(*hidden.shape[:2], -1)
        own = logits.gather(2, self._columns[:, None].expand(-1, hidden.size(1), -1))  # [N, K, L]
        return own.float().log_softmax(-1).flatten(0, 1)

    def _choose_rows(self) -> None:
        """Take the rows of all lists, and one more: its column is -inf, and what fills up a list points to it."""
        size, device = len(self._weight), self._weight.device
        wanted = np.zeros(size, dtype=bool)
        wanted[self._ids.ravel()] = True
        rows = np.append(wanted.nonzero()[0], 0)  # [U + 1]
        columns = (np.cumsum(wanted) - 1)[self._ids]  # [N, L]
        columns[np.arange(columns.shape[1]) >= self._lengths[:, None]] = len(rows) - 1
        self._rows = self._weight[torch.from_numpy(rows).to(device)]
        self._columns = torch.from_numpy(columns).to(device)
        self._ids_there = torch.from_numpy(self._ids.copy()).to(device)
