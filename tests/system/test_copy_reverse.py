"""Does it learn: sequences that were never seen are copied and reversed, by both norm placements."""

import pytest
from copy_task import exact_matches, task
from training_rig import look, runtime, small_config, small_trainer


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
