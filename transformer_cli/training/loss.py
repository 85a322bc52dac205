"""How wrong the model is: the training loss of a batch and the plain loss of a whole data set.

Legend: N positions of a batch, padding too; C positions of a chunk; D d_model; V vocabulary.
Not here: dividing by the tokens of an accumulation window (``trainer.py``) and BLEU, which needs a decoder.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.data.batching import TokenizedPairs, collate, epoch_batches
from transformer_cli.data.tokenizer import PAD
from transformer_cli.model.attention import at_least_float32
from transformer_cli.model.linear import product_dtype
from transformer_cli.runtime import Runtime

#: Elements of a chunk's logits. Each chunk adds to the gradient of the whole matrix, so there should be few of them.
_CHUNK = {"cpu": 2**21, "cuda": 2**26}
#: Elements of a part of a chunk, for the many passes over them: those of a CPU should stay in its second-level cache.
_PART = {"cpu": 2**18, "cuda": 2**26}


def summed_loss(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy summed over all targets that are not padding.

    A sum, not a mean: the caller knows how many tokens belong together (a batch, a window, a data set).

    Args:
        logits: [..., V], in float32 or float64.
        targets: [...], token ids; ``PAD`` is ignored.
        label_smoothing: probability mass spread evenly over the vocabulary (Szegedy et al. 2016, section 7).
    """
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=label_smoothing
    )


def linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return ``summed_loss(hidden Wᵀ, targets)`` without ever holding all logits.

    The gradient of the logits is at hand as soon as the loss is, so both gradients are computed chunk by chunk in the
    forward pass and only scaled in the backward pass. ``F.cross_entropy`` after a product over all positions took 1.5
    to 1.8 times as long (2,000 positions, V 4,000, one core), and the memory of the logits.

    Args:
        hidden: [..., D].
        weight: [V, D], of an output layer without bias.
        targets: [...], token ids; ``PAD`` is ignored.
        label_smoothing: probability mass spread evenly over the vocabulary.
    """
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden.flatten(0, -2), weight, targets.flatten(), label_smoothing
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    """With z = h Wᵀ: loss = lse(z) - (1 - ε) z_target - ε mean(z); its gradient is softmax(z) - (1 - ε) onehot - ε / V.

    ε / V is the same in every element, so its part of the sums is a product with a sum, not a pass over all elements;
    so is mean(z) = h · mean(W).
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        n_classes, n_positions = len(weight), len(hidden)
        part = _rows_of_a_part(hidden, n_classes)
        missing = -n_positions % part  # full parts only: oneDNN compiles bfloat16 products for every shape anew
        targets = F.pad(targets, (0, missing), value=PAD).unsqueeze(-1)  # [N, 1]
        real = targets != PAD
        hidden = F.pad(hidden, (0, 0, 0, missing)) * real  # [N, D]
        h, w = hidden.to(product_dtype(hidden)), weight.to(product_dtype(hidden))
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        log_normaliser, of_target = torch.empty_like(hidden[:, :1]), torch.empty_like(hidden[:, :1])
        chunk_size = max(1, _CHUNK.get(hidden.device.type, 2**26) // n_classes // part) * part
        space = h.new_empty(min(chunk_size, len(hidden)), n_classes)
        for chunk in _slices(len(hidden), chunk_size):
            logits = torch.mm(h[chunk], w.t(), out=space[: chunk.stop - chunk.start])  # [C, V]; becomes its gradient
            of_target[chunk], log_normaliser[chunk] = _differentiate(logits, targets[chunk], label_smoothing, part)
            grad_hidden[chunk] = logits @ w
            grad_weight += logits.t() @ h[chunk]
        smooth = label_smoothing / n_classes
        grad_hidden = (grad_hidden - smooth * weight.sum(0)) * real
        grad_weight -= smooth * hidden.sum(0)
        ctx.save_for_backward(grad_hidden[:n_positions], grad_weight)
        mean = hidden @ weight.mean(0)[:, None]  # [N, 1]
        return ((log_normaliser - (1 - label_smoothing) * of_target - label_smoothing * mean) * real).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grads[0], grad_weight * grads[0], None, None


def _differentiate(logits: Tensor, targets: Tensor, label_smoothing: float, part: int) -> tuple[Tensor, Tensor]:
    """Put softmax(z) - (1 - ε) onehot in the place of logits z ``[C, V]``, some rows at a time.

    Returns:
        z_target and lse(z), ``[C, 1]``.
    """
    of_target, log_normaliser = [], []
    for rows in _slices(len(logits), part):
        z, target = at_least_float32(logits[rows]), targets[rows]
        of_target.append(z.gather(1, target))
        log_p = torch.log_softmax(z, -1, out=z)
        log_normaliser.append(of_target[-1] - log_p.gather(1, target))
        logits[rows] = log_p.exp_().scatter_add_(1, target, z.new_full(target.shape, label_smoothing - 1))
    return torch.cat(of_target), torch.cat(log_normaliser)


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _rows_of_a_part(hidden: Tensor, n_classes: int) -> int:
    """Return a number of rows that few batches share, and not many more than there are: missing ones are computed."""
    most = _PART.get(hidden.device.type, 2**26) // n_classes // 16 * 16
    return max(16, min(most, -(-len(hidden) // 256) * 256))


@torch.no_grad()
def dev_loss(model: nn.Module, pairs: TokenizedPairs, runtime: Runtime, batch_tokens: int) -> float:
    """Return the negative log-likelihood per target token in nats, without smoothing and dropout.

    ``exp`` of it is the perplexity. The model's training mode is put back, and no random number is drawn.
    """
    was_training = model.training
    model.eval()
    total, n_tokens = 0.0, 0
    try:
        for indices in epoch_batches(pairs.src_lengths, pairs.tgt_lengths, batch_tokens, seed=0, epoch=0):
            batch = collate(pairs, indices).to(runtime.device)
            with runtime.autocast():
                logits = model(batch.src, batch.tgt_in)
            total += summed_loss(logits, batch.tgt_out).item()
            n_tokens += batch.n_tokens
    finally:
        model.train(was_training)
    return total / max(1, n_tokens)
