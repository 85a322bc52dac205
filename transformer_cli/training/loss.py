"""How wrong the model is: the training loss of a batch and the plain loss of a whole data set.

Legend: N positions of a batch, padding too; n positions of a part of it; D d_model; V vocabulary.
Not here: dividing by the tokens of an accumulation window (``update.py``) and BLEU, which needs a decoder.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.data.batching import TokenizedPairs, collate, epoch_batches
from transformer_cli.data.tokenizer import PAD
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime
from transformer_cli.training.chunked_head import loss_of_rows, rows_at_once


def summed_loss(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy summed over all targets that are not padding.

    A sum, not a mean: the caller knows how many tokens belong together (a batch, a window, a data set).

    Args:
        logits: ``[..., V]``, in float32 or float64.
        targets: ``[...]``, token ids; ``PAD`` is ignored.
        label_smoothing: probability mass spread evenly over the vocabulary (Szegedy et al. 2016, section 7).

    Returns:
        A scalar in nats, in the dtype of the logits.
    """
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=label_smoothing
    )


def linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return ``summed_loss(hidden Wᵀ, targets)`` without ever holding all logits (``chunked_head.py``).

    With z = h Wᵀ the loss of a position is lse(z) - (1 - ε) z_target - ε mean(z). The last term needs no pass over the
    logits: mean(z) = h · mean(W).

    Args:
        hidden: ``[..., D]``.
        weight: ``[V, D]``, of an output layer without bias.
        targets: ``[...]``, token ids; ``PAD`` is ignored.
        label_smoothing: ε, probability mass spread evenly over the vocabulary.

    Returns:
        A scalar in nats, in float32 (float64 stays).
    """
    real = targets.flatten()[:, None] != PAD  # [N, 1]
    hidden = hidden.flatten(0, -2) * real  # where there is nothing to learn, W gets no gradient
    part = partial(_cross_entropy, targets.flatten()[:, None], real, label_smoothing)
    smooth = (hidden.sum(0) * weight.mean(0)).sum()
    return loss_of_rows(part, weight, [hidden]) - label_smoothing * smooth


def _cross_entropy(targets: Tensor, real: Tensor, label_smoothing: float, logits: list[Tensor], rows: slice) -> Tensor:
    """Return lse(z) - (1 - ε) z_target of some rows; softmax(z) - (1 - ε) onehot takes the place of z ``[n, V]``."""
    (z,), target, likelihood = logits, targets[rows], 1 - label_smoothing
    of_target = z.gather(1, target)
    log_p = torch.log_softmax(z, -1, out=z)
    log_normaliser = of_target - log_p.gather(1, target)
    log_p.exp_().scatter_add_(1, target, z.new_full(target.shape, -likelihood))
    return ((log_normaliser - likelihood * of_target) * real[rows]).sum()


@torch.no_grad()
def dev_loss(model: Transformer, pairs: TokenizedPairs, runtime: Runtime, batch_tokens: int) -> float:
    """Return the negative log-likelihood per target token in nats, without smoothing and dropout.

    ``exp`` of it is the perplexity. The model's training mode is put back, and no random number is drawn.

    Args:
        model: on the runtime's device.
        pairs: without any the loss is 0.
        runtime: device and precision.
        batch_tokens: most tokens of a batch; it changes the last bits alone.
    """
    was_training = model.training
    model.eval()
    total, n_tokens = 0.0, 0
    try:
        for indices in epoch_batches(pairs.src_lengths, pairs.tgt_lengths, batch_tokens, seed=0, epoch=0):
            batch = collate(pairs, indices).to(runtime.device)
            with runtime.autocast():
                hidden = model.decode(batch.tgt_in, model.encode(batch.src), batch.src)
                total += _loss_by_chunks(model, hidden[real := batch.tgt_out != PAD], batch.tgt_out[real])
            n_tokens += batch.n_tokens
    finally:
        model.train(was_training)
    return total / max(1, n_tokens)


def _loss_by_chunks(model: Transformer, hidden: Tensor, targets: Tensor) -> float:
    """Return ``summed_loss`` of hidden states ``[N, D]``, never holding more logits than a training step does."""
    size = rows_at_once(hidden.device, len(model.output.weight))
    chunks = zip(torch.split(hidden, size), torch.split(targets, size), strict=True)
    return sum(summed_loss(model.project(rows), wanted).item() for rows, wanted in chunks)
