"""Does it learn: sequences that were never seen are copied and reversed, by both norm placements."""

import numpy as np
import pytest
import torch
from training_rig import look, runtime, small_config, small_trainer

from transformer_cli.data.batching import TokenizedPairs, collate
from transformer_cli.data.tokenizer import BOS, EOS

SYMBOLS, LONGEST = 20, 10


def sequences(count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(4, 4 + SYMBOLS, rng.integers(3, LONGEST + 1)) for _ in range(count)]


def task(name: str, count: int, seed: int) -> TokenizedPairs:
    sources = sequences(count, seed)
    targets = [ids[::-1] for ids in sources] if name == "reverse" else sources
    return TokenizedPairs(*([np.append(ids, EOS).astype(np.int32) for ids in side] for side in (sources, targets)))


@torch.no_grad()
def exact_matches(model: torch.nn.Module, pairs: TokenizedPairs) -> float:
    """Decode greedily, without a cache: what the model itself knows."""
    batch = collate(pairs, range(len(pairs)))
    model.eval()
    memory = model.encode(batch.src)
    tokens = torch.full((len(pairs), 1), BOS)
    for _ in range(LONGEST + 2):
        hidden = model.decode(tokens, memory, batch.src)
        tokens = torch.cat([tokens, model.project(hidden[:, -1]).argmax(-1, keepdim=True)], dim=1)
    outputs = tokens[:, 1:].numpy()
    right = [list(row[: len(tgt)]) == list(tgt) for row, tgt in zip(outputs, pairs.tgt, strict=True)]
    return sum(right) / len(right)


@pytest.mark.slow
@pytest.mark.parametrize("norm_placement", ["pre", "post"])
@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_unseen_sequences_come_out_right(tmp_path, name, norm_placement):
    config = small_config(
        model={
            "d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2,
            "dropout": 0.0, "norm_placement": norm_placement,
        },
        batch_tokens=1024, accumulate=1, max_steps=1000, lr=0.002, warmup_steps=200, schedule="linear",
        label_smoothing=0.0, validate_every=5000, save_every=5000, log_every=500,
    )  # fmt: skip
    trainer = small_trainer(tmp_path / "run", config, validate=look, pairs=task(name, 20_000, seed=1))
    trainer.train()
    share = exact_matches(trainer._updater.model, task(name, 500, seed=2))
    assert share >= 0.98, f"{share:.1%} exact on {runtime().describe()}"
