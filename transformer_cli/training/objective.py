"""What a training step minimises: cross-entropy, and what may be asked of the model besides.

Legend: B batch, S source length, T target length, N target tokens without padding, D d_model, V vocabulary.

Per target token, with the model's prediction p and the data's (label-smoothed) cross-entropy CE(p):

* plain: CE(p).
* distillation (Kim & Rush 2016, section 3.1): (1 - w) CE(p) + w CE(q, p), q the mean prediction of the teachers.
* R-Drop (Liang et al. 2021, eqs. 1-4) of two dropouts p1 and p2: half of the paper's
  CE(p1) + CE(p2) + α ½ (KL(p1‖p2) + KL(p2‖p1)). The half makes the loss comparable to the others; α means the same.
* SimCut (Gao et al. 2022): CE(p) + α KL(p‖p_cut), p_cut predicted from a sentence pair some of whose tokens have lost
  their embedding. Gradients flow into both predictions, which the paper finds to matter.

Distillation goes with each of the other three: it replaces CE. The validation loss is always plain (``loss.py``).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import Batch
from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.model.dropout import dropout
from transformer_cli.model.transformer import Transformer
from transformer_cli.training.chunked_head import by_autograd, loss_of_rows, rows_at_once
from transformer_cli.training.loss import linear_cross_entropy


class Objective:
    """The loss of a batch, summed over its target tokens.

    It holds no state that a call changes: the randomness is that of the dropout stream.
    """

    def __init__(self, config: TrainConfig, teachers: Sequence[Transformer] = ()) -> None:
        """Choose the objective.

        Args:
            config: ``label_smoothing``, ``r_drop``, ``simcut``, ``simcut_cutoff`` and ``distill`` are used.
            teachers: in evaluation mode, on the model's device; none without ``distill``.
        """
        self._config, self._teachers = config, teachers

    def __call__(self, model: Transformer, batch: Batch) -> Tensor:
        """Return the loss of a batch in nats, a scalar to be divided by the target tokens of its window."""
        views = self._views(model, batch)
        if len(views) == 1 and not self._teachers:
            return linear_cross_entropy(views[0], model.output.weight, batch.tgt_out, self._config.label_smoothing)
        real = batch.tgt_out != PAD  # [B, T]
        targets, taught = batch.tgt_out[real], _Taught(self._teachers, batch, real)

        def loss(logits: list[Tensor], rows: slice) -> Tensor:
            log_p = [one.log_softmax(-1) for one in logits]  # [n, V] each
            return self._loss(log_p, targets[rows], taught.mean_prediction(rows))

        return loss_of_rows(by_autograd(loss), model.output.weight, [view[real] for view in views])

    def _views(self, model: Transformer, batch: Batch) -> list[Tensor]:
        """Return the hidden states ``[B, T, D]`` of each pass; two passes are one over a doubled batch."""
        src, tgt_in = batch.src, batch.tgt_in
        if not (self._config.r_drop or self._config.simcut):
            return [model.decode(tgt_in, model.encode(src), src)]
        src_kept = tgt_kept = None
        if self._config.simcut:
            src_kept, tgt_kept = (
                torch.cat([torch.ones_like(kept), kept])  # [2B, S] and [2B, T]
                for kept in (uncut_tokens(ids, self._config.simcut_cutoff) for ids in (src, tgt_in))
            )
        src, tgt_in = src.repeat(2, 1), tgt_in.repeat(2, 1)
        return list(model.decode(tgt_in, model.encode(src, src_kept), src, tgt_kept).chunk(2))

    def _loss(self, log_p: list[Tensor], targets: Tensor, q: Tensor | None) -> Tensor:
        """Return the loss of some rows, from the log-probabilities ``[n, V]`` of each pass."""
        if self._config.simcut:
            return self._fit(log_p[0], targets, q) + self._config.simcut * divergence(log_p[0], log_p[1])
        fit = torch.stack([self._fit(one, targets, q) for one in log_p]).mean()
        if self._config.r_drop:
            return fit + self._config.r_drop / 4 * divergence_both_ways(log_p[0], log_p[1])
        return fit

    def _fit(self, log_p: Tensor, targets: Tensor, q: Tensor | None) -> Tensor:
        """Return how badly some rows fit the data, and the teachers."""
        data = smoothed_cross_entropy(log_p, targets, self._config.label_smoothing)
        if q is None:
            return data
        return torch.lerp(data, -(q * log_p).sum(), self._config.distill)


class _Taught:
    """What the teachers say of a batch's target tokens; asked in order, it holds a chunk of their predictions."""

    @torch.no_grad()
    def __init__(self, teachers: Sequence[Transformer], batch: Batch, real: Tensor) -> None:
        """Let them read a batch, of whose positions ``real [B, T]`` count."""
        self._teachers = teachers
        self._hidden = [one.decode(batch.tgt_in, one.encode(batch.src), batch.src)[real] for one in teachers]  # [N, D]
        self._first, self._chunk = 0, torch.empty(0)

    @torch.no_grad()
    def mean_prediction(self, rows: slice) -> Tensor | None:
        """Return the mean of their probabilities ``[n, V]`` for some rows; None without teachers.

        One product for many rows is faster than one for each of the few that ``chunked_head.py`` asks for at a time.
        """
        if not self._teachers:
            return None
        if not self._first <= rows.start < rows.stop <= self._first + len(self._chunk):
            size = rows_at_once(self._hidden[0].device, self._teachers[0].output.out_features)
            wanted = slice(rows.start, max(rows.stop, rows.start + size))
            both = zip(self._teachers, self._hidden, strict=True)
            self._chunk = torch.stack([one.project(hidden[wanted]).softmax(-1) for one, hidden in both]).mean(0)
            self._first = rows.start
        return self._chunk[rows.start - self._first : rows.stop - self._first]


def smoothed_cross_entropy(log_p: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    """Return ``loss.summed_loss`` of log-probabilities ``[n, V]`` and targets ``[n]`` without padding."""
    likelihood = log_p.gather(1, targets[:, None]).sum()
    return -(1 - label_smoothing) * likelihood - label_smoothing * log_p.mean(-1).sum()


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return KL(p‖q) = Σ p (log p - log q), summed over rows ``[n, V]``, with gradients into both."""
    return (log_p.exp() * (log_p - log_q)).sum()


def divergence_both_ways(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return KL(p‖q) + KL(q‖p) = Σ (p - q) (log p - log q), summed over rows ``[n, V]``, with gradients into both."""
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum()


def uncut_tokens(ids: Tensor, cutoff: float) -> Tensor:
    """Draw which token embeddings a cut leaves: each goes with probability ``cutoff``, as whole token.

    BOS and EOS always stay, as in the authors' code: they say where a sentence begins and ends.

    Args:
        ids: token ids ``[B, T]``.
        cutoff: rounded to 1/256 on a CPU, as every dropout.

    Returns:
        Boolean ``[B, T]``.
    """
    drawn = dropout(torch.ones_like(ids, dtype=torch.float32), cutoff) != 0
    return drawn | (ids == BOS) | (ids == EOS)
