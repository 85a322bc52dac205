"""Does every way to attend, and every kind of positions, learn to copy up to 40 symbols that were never seen?"""

import pytest
from copy_task import exact_matches, task
from training_rig import look, runtime, small_config, small_trainer

LONGEST, WINDOW = 40, 8


def sparse(**pattern: object) -> dict:
    return {"attention": {"encoder": "sparse", "decoder": "sparse", "cross": "sdpa"}, "sparse": pattern}


VARIANTS = {
    "naive": {"attention": "naive"},
    "sdpa": {"attention": "sdpa"},
    "flash": {"attention": "flash"},
    "window": sparse(pattern="window", window=WINDOW),
    "dilated": sparse(pattern="dilated", window=WINDOW, dilation=2),
    "bigbird": sparse(pattern="bigbird", window=WINDOW, global_tokens=1, random_blocks=1, block=8),
    "blocks": sparse(pattern="blocks", block=WINDOW),
    "linformer": {"attention": {"encoder": "linformer"}, "linformer_rank": 32},
    "learned": {"attention": "naive", "positions": "learned"},
    "rotary": {"attention": "naive", "positions": "rotary"},
    "transformer_xl": {"attention": "naive", "positions": "transformer_xl"},
    "t5": {"attention": "naive", "positions": "t5"},
    "alibi": {"attention": "naive", "positions": "alibi"},
    "post-norm": {"norm_placement": "post"},
    "window, rotary": sparse(pattern="window", window=WINDOW) | {"positions": "rotary"},
    "bigbird, learned": sparse(pattern="bigbird", window=WINDOW, block=8) | {"positions": "learned"},
    "flash, rotary, rms": {"attention": "flash", "positions": "rotary", "norm": "rms"},
    "t5, rms, qk_norm": {"positions": "t5", "norm": "rms", "qk_norm": True},
    "alibi, swiglu": {"positions": "alibi", "activation": "swiglu"},
    "transformer_xl, post-norm": {"positions": "transformer_xl", "norm_placement": "post"},
}


def share_copied(path, model: dict) -> float:
    config = small_config(
        model={"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0} | model,
        batch_tokens=2048, accumulate=1, max_steps=1500, optimizer="muon", lr=0.01, warmup_steps=100, schedule="linear",
        label_smoothing=0.0, validate_every=5000, save_every=5000, log_every=500,
    )  # fmt: skip
    trainer = small_trainer(path, config, validate=look, pairs=task("copy", 20_000, seed=1, longest=LONGEST))
    trainer.train()
    return exact_matches(trainer._updater.model, task("copy", 200, seed=2, longest=LONGEST))


@pytest.mark.slow
@pytest.mark.parametrize("model", VARIANTS.values(), ids=list(VARIANTS))
def test_unseen_sequences_are_copied(tmp_path, model):
    share = share_copied(tmp_path / "run", model)
    assert share >= 0.98, f"{share:.1%} exact on {runtime().describe()}"


@pytest.mark.slow
def test_without_positions_nothing_tells_the_order(tmp_path):
    assert share_copied(tmp_path / "run", {"attention": "naive", "positions": "none"}) <= 0.3
