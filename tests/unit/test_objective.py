"""Each objective is the formula of its paper: in value, in gradients, and in what it draws."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from training_rig import runtime, small_config, small_pairs, small_tokenizer

from transformer_cli.checkpoint import build_model
from transformer_cli.config import Config
from transformer_cli.data.batching import Batch, collate
from transformer_cli.data.tokenizer import BOS, EOS, PAD
from transformer_cli.errors import ConfigError
from transformer_cli.model.transformer import Transformer
from transformer_cli.recipe import load_recipe
from transformer_cli.runtime import seed_stream
from transformer_cli.training import chunked_head, objective
from transformer_cli.training.objective import Objective, uncut_tokens
from transformer_cli.training.optimizer import gradients

SMOOTHING = 0.1


def model_of(seed: int = 0, **settings: object) -> Transformer:
    seed_stream(seed, "weights")
    return build_model(small_config(model=settings), small_tokenizer()).double().train()


@pytest.fixture(params=[1, 7, 2**20], ids="chunk {}".format)
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the rows into single ones, into parts that do not divide them, and not at all."""
    monkeypatch.setattr(chunked_head, "_sizes", lambda *_: (request.param, 2 * request.param))


@pytest.fixture
def batch() -> Batch:
    made = collate(small_pairs(6), range(6))
    assert (made.tgt_out == PAD).any()  # without padding the tests below could not see that it counts
    return made


def cross_entropy(p: Tensor, targets: Tensor) -> Tensor:
    """Label-smoothed, by its definition, of probabilities; one value a token, zero for padding."""
    wanted = torch.full_like(p, SMOOTHING / p.size(-1))
    wanted.scatter_add_(-1, targets[..., None], torch.full_like(p[..., :1], 1 - SMOOTHING))
    return -(wanted * p.log()).sum(-1) * (targets != PAD)


def kl(p: Tensor, q: Tensor, targets: Tensor) -> Tensor:
    return (p * (p / q).log()).sum(-1) * (targets != PAD)


def two_passes(model: Transformer, batch: Batch, kept: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Predictions of both halves of a doubled batch, the second one of cut sentences."""
    src, tgt_in = torch.cat([batch.src, batch.src]), torch.cat([batch.tgt_in, batch.tgt_in])
    src_kept, tgt_kept = (None, None) if kept is None else (torch.cat([torch.ones_like(k), k]) for k in kept)
    hidden = model.decode(tgt_in, model.encode(src, src_kept), src, tgt_kept)
    first, second = model.project(hidden).softmax(-1).chunk(2)
    return first, second


def assert_equal_with_gradients(model: Transformer, ours: Tensor, plain: Tensor) -> None:
    parameters = list(model.parameters())
    assert ours.dtype == torch.float64
    torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-10)
    for a, b in zip(torch.autograd.grad(3 * ours, parameters), torch.autograd.grad(3 * plain, parameters), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_plain_is_cross_entropy(batch: Batch) -> None:
    model = model_of(dropout=0.0)
    plain = cross_entropy(model(batch.src, batch.tgt_in).softmax(-1), batch.tgt_out).sum()
    assert_equal_with_gradients(model, Objective(small_config().train)(model, batch), plain)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("tie", ["all", "none"])
def test_r_drop_is_half_of_the_formula_of_liang_et_al(batch: Batch, tie: str) -> None:
    model, alpha = model_of(dropout=0.3, tie_embeddings=tie), 5.0
    seed_stream(1)
    ours = Objective(small_config(r_drop=alpha).train)(model, batch)
    seed_stream(1)
    (p, q), y = two_passes(model, batch), batch.tgt_out
    assert (p / q).log().abs().max() > 0.1  # two dropouts
    paper = cross_entropy(p, y) + cross_entropy(q, y) + alpha * (kl(p, q, y) + kl(q, p, y)) / 2
    assert_equal_with_gradients(model, ours, paper.sum() / 2)


@pytest.mark.usefixtures("chunks")
def test_simcut_is_the_formula_of_gao_et_al_with_both_gradients(batch: Batch) -> None:
    model, alpha, cutoff = model_of(dropout=0.3), 3.0, 0.3
    seed_stream(1)
    ours = Objective(small_config(simcut=alpha, simcut_cutoff=cutoff).train)(model, batch)
    seed_stream(1)
    kept = uncut_tokens(batch.src, cutoff), uncut_tokens(batch.tgt_in, cutoff)
    p, cut = two_passes(model, batch, kept)
    plain = (cross_entropy(p, batch.tgt_out) + alpha * kl(p, cut, batch.tgt_out)).sum()
    assert_equal_with_gradients(model, ours, plain)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_distillation_is_the_formula_of_kim_and_rush(batch: Batch, weight: float) -> None:
    model, teachers = model_of(dropout=0.0), [model_of(1), model_of(2, d_model=24)]
    for teacher in teachers:
        teacher.eval().requires_grad_(False)
    ours = Objective(small_config(distill=weight, teachers=["a", "b"]).train, teachers)(model, batch)
    q = sum(teacher(batch.src, batch.tgt_in).softmax(-1) for teacher in teachers) / 2
    p = model(batch.src, batch.tgt_in).softmax(-1)
    taught = -(q * p.log()).sum(-1) * (batch.tgt_out != PAD)
    plain = (1 - weight) * cross_entropy(p, batch.tgt_out) + weight * taught
    assert_equal_with_gradients(model, ours, plain.sum())


def test_teachers_are_asked_by_chunks_not_by_parts(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    model, teacher = model_of(dropout=0.0), model_of(1).eval().requires_grad_(False)
    n_real, n_classes = int((batch.tgt_out != PAD).sum()), len(teacher.output.weight)
    asked: list[int] = []
    project = type(teacher).project
    monkeypatch.setattr(
        type(teacher), "project", lambda self, hidden: asked.append(len(hidden)) or project(self, hidden)
    )
    monkeypatch.setitem(chunked_head._PART, "cpu", 16 * n_classes)
    objective = Objective(small_config(distill=0.5, teachers=["a"]).train, [teacher])
    found = []
    for chunk, n_chunks in ((10**6, 1), (32, -(-n_real // 32))):
        monkeypatch.setitem(chunked_head._CHUNK, "cpu", chunk * n_classes)
        asked.clear()
        found.append(objective(model, batch))
        assert (len(asked), sum(asked), n_real > 32) == (n_chunks, n_real, True)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("kind", ["r_drop", "simcut"])
def test_distillation_takes_the_place_of_cross_entropy(batch: Batch, kind: str) -> None:
    model, teacher = model_of(dropout=0.3), model_of(1).eval().requires_grad_(False)
    settings = {kind: 2.0, "distill": 0.4, "teachers": ["a"], "label_smoothing": 0.0}

    def loss(**changes: object) -> Tensor:
        seed_stream(1)
        config = small_config(**(settings | changes)).train
        return Objective(config, [teacher] if config.teachers else [])(model, batch)

    seed_stream(1)
    kept = (uncut_tokens(batch.src, 0.05), uncut_tokens(batch.tgt_in, 0.05)) if kind == "simcut" else None
    views = two_passes(model, batch, kept)[: 2 if kind == "r_drop" else 1]
    q, y = teacher(batch.src, batch.tgt_in).softmax(-1), batch.tgt_out
    nll = [-(p.gather(-1, y[..., None])[..., 0].log()) * (y != PAD) for p in views]
    taught = [-(q * p.log()).sum(-1) * (y != PAD) for p in views]
    difference = 0.4 * (sum(t.sum() for t in taught) - sum(n.sum() for n in nll)) / len(views)
    torch.testing.assert_close(loss() - loss(distill=0.0, teachers=[]), difference, rtol=1e-9, atol=1e-9)


def test_only_target_tokens_count(batch: Batch) -> None:
    model, longer = model_of(dropout=0.0, word_dropout=0.0), collate(small_pairs(6), range(6))
    pad = torch.nn.functional.pad
    longer = Batch(longer.src, pad(longer.tgt_in, (0, 3)), pad(longer.tgt_out, (0, 3)), longer.n_tokens)
    teachers = [model_of(1).eval().requires_grad_(False)]
    compute = Objective(small_config(distill=0.5, teachers=["a"]).train, teachers)
    torch.testing.assert_close(compute(model, longer), compute(model, batch), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"r_drop": 1.0}, {"simcut": 1.0}], ids=str)
def test_bf16_is_close_to_float32(batch: Batch, settings: dict) -> None:
    model = model_of(dropout=0.1).float()
    compute, found = Objective(small_config(**settings).train), []
    for amp in ("off", "bf16"):
        seed_stream(1)
        model.zero_grad()
        with runtime(amp).autocast():
            loss = compute(model, batch)
        loss.backward()
        assert loss.dtype == torch.float32
        found.append((loss.item(), torch.cat([g.flatten() for g in gradients(model)])))
    (loss, gradient), (rough_loss, rough_gradient) = found
    assert rough_loss == pytest.approx(loss, rel=0.02)
    assert (rough_gradient - gradient).norm() < 0.1 * gradient.norm()
    assert not torch.equal(rough_gradient, gradient)


def test_logits_of_all_rows_are_never_kept(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    model, vocabulary, kept = model_of(dropout=0.1), small_tokenizer().tgt_vocab_size, []
    monkeypatch.setattr(chunked_head, "_sizes", lambda *_: (3, 6))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(tuple(t.shape)) or t, lambda t: t):
        Objective(small_config(r_drop=1.0).train)(model, batch)
    rows = {shape[0] for shape in kept if len(shape) > 1 and shape[-1] == vocabulary} - {16}  # the matrix itself
    assert rows == {3, 38 % 3}


@pytest.mark.parametrize("settings", [{"r_drop": 1.0}, {"simcut": 1.0}], ids=str)
def test_threads_find_what_one_after_another_finds(
    batch: Batch, monkeypatch: pytest.MonkeyPatch, settings: dict
) -> None:
    monkeypatch.setattr(chunked_head, "_sizes", lambda *_: (1, 1))
    monkeypatch.setattr(objective, "uncut_tokens", lambda ids, _: ids % 7 != 0)  # chance depends on the thread
    teachers = [model_of(1).eval().requires_grad_(False)]
    compute = Objective(small_config(distill=0.5, teachers=["a"], **settings).train, teachers)

    def gradient(model: Transformer) -> list[Tensor]:
        model.zero_grad()
        compute(model, batch).backward()
        return [one.clone() for one in gradients(model)]

    models = [model_of(seed, dropout=0.0) for seed in range(6)]
    alone = [gradient(model) for model in models]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(gradient, models))
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_without_gradients_the_value_is_the_same(batch: Batch) -> None:
    model, compute = model_of(dropout=0.3), Objective(small_config(r_drop=1.0).train)
    seed_stream(1)
    expected = compute(model, batch).detach()
    seed_stream(1)
    with torch.no_grad():
        assert torch.equal(compute(model, batch), expected)


def test_a_cut_takes_whole_tokens_and_never_the_ends_of_a_sentence() -> None:
    seed_stream(1)
    ids = torch.randint(EOS + 1, 40, (200, 100))
    ids[:, 0], ids[:, -1] = BOS, EOS
    kept = uncut_tokens(ids, 0.25)
    assert kept.dtype == torch.bool
    assert kept[:, 0].all()
    assert kept[:, -1].all()
    inner = kept[:, 1:-1].double()
    assert (1 - inner.mean()).item() == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / inner.numel()) ** 0.5)


def test_a_cut_token_leaves_its_position_alone() -> None:
    embedding = model_of().eval().src_embedding
    ids = torch.tensor([[7, 8, EOS]])
    cut = embedding(ids, kept=torch.tensor([[True, False, True]]))
    whole, bare = embedding(ids), embedding.positions(torch.zeros(1, 3, 16, dtype=torch.float64))
    assert torch.equal(cut[:, [0, 2]], whole[:, [0, 2]])
    assert torch.equal(cut[:, 1], bare[:, 1])


def test_both_sides_are_cut(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(objective, "uncut_tokens", lambda ids, _: seen.append(ids) or torch.ones_like(ids).bool())
    Objective(small_config(simcut=1.0).train)(model_of(), batch)
    assert [torch.equal(a, b) for a, b in zip(seen, (batch.src, batch.tgt_in), strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.r_drop=1", "train.simcut=1"], "r_drop and simcut exclude each other"),
        (["train.simcut_cutoff=0.1"], "simcut_cutoff does nothing while simcut is 0"),
        (["train.distill=0.5"], "teachers and distill belong together"),
        (["train.teachers=[runs/a]"], "teachers and distill belong together"),
        (["train.r_drop=1", "model.dropout=0"], "train.r_drop compares two dropouts"),
        (["train.r_drop=-1"], "r_drop"),
        (["train.distill=1.5", "train.teachers=[runs/a]"], "distill"),
    ],
)
def test_what_means_nothing_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_recipe("base.yaml", overrides)


def test_any_one_dropout_is_enough_for_r_drop() -> None:
    for place in ("embedding_dropout", "residual_dropout", "feed_forward_dropout", "word_dropout", "attention_dropout"):
        config = load_recipe("base.yaml", ["train.r_drop=1", "model.dropout=0", f"model.{place}=0.1"])
        assert isinstance(config, Config)
