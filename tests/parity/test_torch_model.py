"""The model made of torch's parts is our model: outputs, gradients, places of dropout."""

import pytest
import torch
from model_rig import TINY, VOCAB, sentences, tiny_model
from torch import nn
from torch_twins import TOLERANCE

from transformer_cli.benchmark.torch_model import TorchStep, TorchTransformer, model_twins, torch_settings
from transformer_cli.config import ModelConfig
from transformer_cli.data.batching import Batch
from transformer_cli.errors import UserError
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.transformer import Transformer
from transformer_cli.recipe import load_recipe
from transformer_cli.shipped import shipped_recipes


def twin_of(model: Transformer, **settings: object) -> TorchTransformer:
    twin = TorchTransformer(model, ModelConfig.model_validate(TINY | settings))
    return twin.to(model.output.weight.dtype).train(model.training)


def padded(rows: int, length: int, seed: int) -> torch.Tensor:
    ids = sentences(rows, length, seed=seed)
    ids[0, length // 2 :] = 0
    return ids


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm_placement": "post", "activation": "gelu"},
        {"tie_embeddings": "decoder", "positions": "learned"},
        {"tie_embeddings": "none", "attention": "naive", "encoder_layers": 1, "decoder_layers": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_gradients(settings: dict, dtype: torch.dtype, training: bool) -> None:
    ours = tiny_model(dtype=dtype, **settings).train(training)
    theirs = twin_of(ours, **settings)
    src, tgt = padded(3, 9, seed=1), padded(3, 7, seed=2)
    real = (tgt != 0)[:, :, None]  # what padding computes is read by nobody
    logits = [model(src, tgt) * real for model in (ours, theirs)]
    close = {"rtol": TOLERANCE[dtype] * 10, "atol": TOLERANCE[dtype] * 10}
    torch.testing.assert_close(*logits, **close)
    direction = torch.randn_like(logits[0])
    for out in logits:
        (out * direction).sum().backward()
    compared = set()
    for parameters, twin in model_twins(ours, theirs):
        torch.testing.assert_close(torch.cat([parameter.grad for parameter in parameters]), twin.grad, **close)
        compared |= {id(twin)}
    others = [name for name, parameter in theirs.named_parameters() if id(parameter) not in compared]
    assert all("positions" in name for name in others)  # those are ours, copied


def test_dropout_stands_at_the_same_places_and_never_on_attention_weights() -> None:
    other = {"embedding_dropout": 0.1, "residual_dropout": 0.2}
    config = ModelConfig.model_validate(TINY | {"dropout": 0.3} | other)
    ours = Transformer(config, VOCAB, VOCAB)
    theirs = TorchTransformer(ours, config)
    ours_p = [module.p for module in ours.modules() if isinstance(module, Dropout)]
    assert [module.p for module in theirs.modules() if isinstance(module, nn.Dropout)] == ours_p
    assert ours_p == [0.1] * 2 + [0.3, 0.2, 0.2] * 2 + [0.3, 0.2, 0.2, 0.2] * 2  # embeddings, encoder, decoder
    assert {module.dropout for module in theirs.modules() if isinstance(module, nn.MultiheadAttention)} == {0.0}


@pytest.mark.parametrize("recipe", shipped_recipes())
def test_every_recipe_that_is_shipped_has_a_counterpart_but_for_positions_that_torch_lacks(recipe: str) -> None:
    model = load_recipe(recipe).model
    if model.positions == "rotary":
        with pytest.raises(
            UserError, match=r"got: positions inside attention\n.*hint: .*-s model.positions=sinusoidal"
        ):
            torch_settings(model)
    assert torch_settings(load_recipe(recipe, ["model.positions=sinusoidal"]).model)["nhead"] > 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"activation": "swiglu"}, "swiglu"),
        ({"d_k": 4}, "d_k or d_v"),
        ({"attention": {"decoder": "sparse"}}, "sparse"),
        ({"attention": {"encoder": "linformer"}}, "linformer"),
        ({"attention_scale": False}, "attention_scale"),
        ({"bias": False}, "bias"),
        ({"attention_dropout": 0.1}, "attention_dropout"),
        ({"word_dropout": 0.1}, "word_dropout"),
        ({"qk_norm": True}, "qk_norm"),
    ],
)
def test_models_without_a_counterpart_are_refused(settings: dict, named: str) -> None:
    with pytest.raises(UserError, match=named):
        twin_of(tiny_model(**settings), **settings)


@pytest.mark.parametrize("clip_norm", [None, 0.01])
def test_a_step_is_the_loss_the_clipping_and_the_optimizer_of_its_window(clip_norm: float | None) -> None:
    """SGD makes the gradient visible: two batches in a window equal their sum divided by the tokens of both."""
    model = tiny_model().train()
    twin, start = twin_of(model), twin_of(model)
    batches = []
    for seed in (1, 2):
        tgt = padded(2, 5, seed)
        batches.append(Batch(padded(2, 6, seed + 10), tgt, tgt, int((tgt != 0).sum())))
    step = TorchStep(
        twin,
        torch.optim.SGD(twin.parameters(), lr=0.0),
        label_smoothing=0.1,
        clip_norm=clip_norm,
        autocast=torch.autocast("cpu", enabled=False),
    )
    loss = step(batches, 0.5)
    n_tokens = sum(batch.n_tokens for batch in batches)
    wanted = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        log_probs = start(batch.src, batch.tgt_in).log_softmax(-1)[batch.tgt_out != 0]
        chosen = log_probs.gather(1, batch.tgt_out[batch.tgt_out != 0][:, None])
        wanted = wanted - 0.9 * chosen.sum() - 0.1 * log_probs.mean(-1).sum()
    wanted = wanted / n_tokens
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), abs=1e-5)  # the loss itself is float32
    norm = torch.nn.utils.get_total_norm([p.grad for p in start.parameters()])
    factor = 1.0 if clip_norm is None else min(1.0, clip_norm / norm.item())
    for moved, still in zip(twin.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(moved, still - 0.5 * factor * still.grad, rtol=1e-4, atol=1e-7)
        assert moved.grad is None
