"""No step of a decoder waits for a GPU; needs torch and this package's model and benchmark only.

The whole search is in ``tests/unit/test_history.py``.
"""

import pytest
import torch

from transformer_cli.benchmark.step_memory import BASE, StepCase, build

pytestmark = [pytest.mark.gpu, pytest.mark.skipif("not __import__('torch').cuda.is_available()")]


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "t5", "alibi", "transformer_xl"])
@pytest.mark.parametrize("n_hypotheses", [1, 4])
def test_steps_of_a_decoder_wait_for_nothing(n_hypotheses: int, positions: str) -> None:
    shape = BASE | {"d_model": 64, "encoder_layers": 1, "decoder_layers": 2, "positions": positions}
    model = build(shape, StepCase("naive", 32, vocab_size=100, device="cuda")).eval()
    with torch.inference_mode():
        cache = model.new_cache(8, n_hypotheses, 32)
        model.admit(cache, list(range(8)), torch.randint(4, 100, (8, 32), device="cuda"))
        tokens = torch.full((8, n_hypotheses), 2, device="cuda")
        parents = torch.arange(n_hypotheses, device="cuda").repeat(8, 1)
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(40):  # past the room that the cache has at first
                hidden = model.decode_step(tokens, parents, cache)
                tokens = model.project(hidden).argmax(-1)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert torch.isfinite(hidden).all()
