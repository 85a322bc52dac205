"""How wrong the model is: the training loss of a batch and the plain loss of a whole data set.

Legend: B batch, T target length, V vocabulary.
Not here: dividing by the tokens of an accumulation window (``trainer.py``) and BLEU, which needs a decoder.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_cli.data.batching import TokenizedPairs, collate, epoch_batches
from transformer_cli.data.tokenizer import PAD
from transformer_cli.runtime import Runtime


def summed_loss(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy summed over all targets that are not padding.

    A sum, not a mean: the caller knows how many tokens belong together (a batch, a window, a data set).

    Args:
        logits: [B, T, V], in float32 or float64.
        targets: [B, T], token ids; ``PAD`` is ignored.
        label_smoothing: probability mass spread evenly over the vocabulary (Szegedy et al. 2016, section 7).
    """
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=label_smoothing
    )


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
