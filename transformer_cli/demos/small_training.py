"""The small training that demos share: random symbols to be copied or reversed, by our own model, loss and optimizer.

Everything is a function of the seed: the text is drawn by a generator of its own, the model without touching torch's,
and there is no dropout. Files, validation and what else belongs to a run are left out.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_cli.config import ModelConfig, TrainConfig
from transformer_cli.data.batching import Batch, TokenizedPairs, collate
from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.model.transformer import Transformer
from transformer_cli.training.loss import summed_loss
from transformer_cli.training.optimizer import build_optimizers, clip_gradients, gradient_norm, set_learning_rate
from transformer_cli.training.schedule import Schedule

_SYMBOLS, _SHORTEST, LONGEST = 12, 3, 8
_FIRST = EOS + 1
VOCAB_SIZE = _FIRST + _SYMBOLS
_SMALL = {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
_ROWS = 32  # of a batch
_LAST = 10  # losses whose mean stands for the end of a training


@dataclass(frozen=True)
class Training:
    """What is varied from demo to demo."""

    steps: int
    lr: float = 0.003
    warmup_steps: int = 30
    backwards: bool = False  # the target is the source reversed
    clip_norm: float | None = 1.0
    seed: int = 0


def symbols(
    count: int, seed: int, *, backwards: bool = False, lengths: tuple[int, int] = (_SHORTEST, LONGEST)
) -> TokenizedPairs:
    """Return sequences of so many symbols, and themselves, or their reverse, as source and target."""
    rng = np.random.default_rng(seed)
    sources = [rng.integers(_FIRST, VOCAB_SIZE, rng.integers(lengths[0], lengths[1] + 1)) for _ in range(count)]
    targets = [ids[::-1] for ids in sources] if backwards else sources
    src, tgt = ([np.append(ids, EOS).astype(np.int32) for ids in side] for side in (sources, targets))
    return TokenizedPairs(src, tgt)


def small_model(seed: int, *, max_length: int = 1024, **settings: object) -> Transformer:
    """Return a fresh model: 1 + 1 layers of width 32, unless the ``model`` section's settings say otherwise."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = ModelConfig.model_validate(_SMALL | settings)
        return Transformer(config, VOCAB_SIZE, VOCAB_SIZE, pad_id=PAD, max_length=max_length)


def batch_of(pairs: TokenizedPairs) -> Batch:
    """Return all pairs as one batch."""
    return collate(pairs, range(len(pairs)))


def train(model: Transformer, training: Training) -> list[float]:
    """Train with AdamW, a linear warm-up and a constant rate after it; return the loss per token before each step."""
    # A trapezoid without its last side.
    schedule = Schedule("trapezoidal", training.lr, training.warmup_steps, hold_until=training.steps, decay_share=0.0)
    settings = TrainConfig(optimizer="adamw", lr=training.lr, weight_decay=0.0, max_steps=training.steps)
    optimizers = build_optimizers(model.train(), settings)
    losses = []
    for step in range(1, training.steps + 1):
        batch = batch_of(symbols(_ROWS, stream(training.seed, step), backwards=training.backwards))
        loss = mean_loss(model, batch)
        model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients(model, gradient_norm(model), training.clip_norm)
        set_learning_rate(optimizers, schedule.learning_rate(step, training.steps))
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def stream(seed: int, number: int) -> int:
    """Return the seed of one of many draws."""
    return seed * 1_000_003 + number


def mean_loss(model: Transformer, batch: Batch) -> torch.Tensor:
    """Return the cross-entropy per target token in nats, each predicted from the true tokens before it."""
    return summed_loss(model(batch.src, batch.tgt_in), batch.tgt_out) / batch.n_tokens


def end_of(losses: list[float]) -> float:
    """Return the loss at the end of a training, without the noise of single batches."""
    return sum(losses[-_LAST:]) / len(losses[-_LAST:])


@torch.no_grad()
def exact_matches(model: Transformer, pairs: TokenizedPairs, more_padding: int = 0) -> float:
    """Return the share of sequences that greedy search gets wholly right.

    All positions are computed anew in each step, over a target that is as long as the source: in these tasks it is,
    and some wrong masks can be computed in no other shape.

    Args:
        model: trained.
        pairs: unseen sequences.
        more_padding: columns of padding that are added to the batch, as a longer neighbour would.
    """
    batch = batch_of(pairs)
    src, wanted = (torch.nn.functional.pad(ids, (0, more_padding), value=PAD) for ids in (batch.src, batch.tgt_out))
    tokens = torch.full_like(src, PAD)
    tokens[:, 0] = BOS
    found = torch.full_like(src, PAD)
    memory = model.encode(src)
    for position in range(batch.src.size(1)):
        found[:, position] = model.project(model.decode(tokens, memory, src)[:, position]).argmax(-1)
        if position + 1 < src.size(1):
            tokens[:, position + 1] = found[:, position]
    right = (found == wanted) | (wanted == PAD)
    return float(right.all(1).double().mean())
