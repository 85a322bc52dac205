"""What a model that has learned to copy sequences of up to 8 symbols does with longer ones, by kind of positions.

``pytest -s`` prints the rows of the table in ``docs/positions.md``. Chance differs from seed to seed; here is one.
"""

from typing import get_args

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.demos.small_training import (
    LONGEST,
    Training,
    batch_of,
    exact_matches,
    small_model,
    symbols,
    train,
)
from transformer_cli.model.transformer import Transformer

KINDS = get_args(ModelConfig.model_fields["positions"].annotation)
LENGTHS = (LONGEST, LONGEST + 1, LONGEST + 2, 12, 16)
STEPS, COUNT = 2500, 200


@torch.no_grad()
def shares_right(model: Transformer, length: int) -> tuple[float, float]:
    """Return the share of next tokens that are right, given the true ones before, and of whole greedy outputs."""
    pairs = symbols(COUNT, 1000 + length, lengths=(length, length))
    batch = batch_of(pairs)
    right = model(batch.src, batch.tgt_in).argmax(-1) == batch.tgt_out
    return float(right.double().mean()), exact_matches(model, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learned_holds_for_the_trained_lengths(kind: str) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two add numbers in another order
    try:
        model = small_model(0, positions=kind, max_length=LONGEST + 1, encoder_layers=2, decoder_layers=2)
        train(model, Training(STEPS, lr=0.004))
        if kind == "learned":
            with pytest.raises(ValueError, match="9"):
                shares_right(model, LONGEST + 1)
        known = [length for length in LENGTHS if kind != "learned" or length == LONGEST]
        found = {length: shares_right(model, length) for length in known}
    finally:
        torch.set_num_threads(threads)
    cells = [f"{found[length][0]:.0%}, {found[length][1]:.0%}" if length in found else "refused" for length in LENGTHS]
    print(f"\n| `{kind}` | {' | '.join(cells)} |")
    assert found[LONGEST][0] > (0.15 if kind == "none" else 0.5)
    assert found[LONGEST][1] >= found[max(known)][1]
