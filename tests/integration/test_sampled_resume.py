"""Epochs of other pieces, directions and places in memory: stopped in the middle of one, a run ends the same."""

from pathlib import Path

import pytest
from toy_language import toy_pairs
from training_rig import hashes

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.train import make_trainer
from transformer_cli.config import Config
from transformer_cli.errors import ConfigError, DataError
from transformer_cli.experiment import prepare
from transformer_cli.recipe import load_recipe
from transformer_cli.runtime import Runtime

RECIPE = """
data:
  train: {{src: {folder}/a.en, tgt: {folder}/a.de}}
tokenizer: {{vocab_size: 320, model_type: {kind}}}
model: {{d_model: 16, n_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}}
train:
  {{batch_tokens: 300, max_steps: 30, lr: 0.01, warmup_steps: 2, validate_every: 100, save_every: 100, amp: off,
   subword_sampling: 0.2, bidirectional_epochs: 1, schedule: inverse_sqrt}}
decode: {{max_length_ratio: 0.1}}
"""


@pytest.fixture
def kind() -> str:
    """The kind of tokenizer."""
    return "bpe"


@pytest.fixture
def recipe(tmp_path: Path, kind: str) -> str:
    pairs = toy_pairs(120)
    for name, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        lines = "".join(f"{line} {i}\n" for i, line in enumerate(side))
        (tmp_path / f"a.{name}").write_text(lines, encoding="utf-8")
    (tmp_path / "my.yaml").write_text(RECIPE.format(folder=tmp_path, kind=kind), encoding="utf-8")
    return str(tmp_path / "my.yaml")


def train(config: Config, path: Path) -> float:
    """Start or continue a run; return how many epochs it has read."""
    exists = path.exists()
    tokenizer = RunFolder.open(path).tokenizer if exists else None
    made = prepare(config, lambda note: None, tokenizer)
    run = RunFolder.open(path) if exists else RunFolder.create(path, config, made.tokenizer, {})
    trainer = make_trainer(made, run, Runtime.resolve("cpu"), quiet=True)
    if exists:
        trainer.resume()
    return trainer.train().epochs


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_run_stopped_in_a_sampled_epoch_ends_bit_identical(recipe: str, tmp_path: Path) -> None:
    whole = load_recipe(recipe)
    assert train(whole, tmp_path / "calm") > 2
    for steps, epochs in ((5, (0.1, 0.9)), (20, (1.1, 1.9)), (30, (2.1, 2.9))):
        read = train(load_recipe(recipe, [f"train.max_steps={steps}"]), tmp_path / "stopped")
        assert epochs[0] < read < epochs[1]
    calm, stopped = (hashes(tmp_path / name) for name in ("calm", "stopped"))
    last = {name for name in calm if name.startswith("checkpoints/step-30")} - {"checkpoints/step-30/state.json"}
    assert last
    assert {name: calm[name] for name in last} == {name: stopped[name] for name in last}


def test_where_the_data_lie_does_not_change_a_run(recipe: str, tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("one cats sleep.\teins Katzen schlafen.\n", encoding="utf-8")
    filters = "{identical: true, wrong_script: true, length_ratio: 1.3}"
    keys = [f"data.dev={{tsv: {tmp_path}/dev.tsv}}", f"data.filter={filters}", "train.subword_sampling=0"]
    train(load_recipe(recipe, [*keys, "data.memory=ram"]), tmp_path / "calm")
    for steps, memory in ((5, "disk"), (15, "ram"), (30, "disk")):  # in a bidirectional epoch, and after it
        changes = [f"train.max_steps={steps}", f"data.memory={memory}"]
        train(load_recipe(recipe, [*keys, *changes]), tmp_path / "moved")
    for kind in ("weights", "optimizer"):
        calm, moved = (getattr(RunFolder.open(tmp_path / name).load_checkpoint(30), kind) for name in ("calm", "moved"))
        assert calm.keys() == moved.keys()
        assert all(calm[name].equal(moved[name]) for name in calm)


def test_epochs_end_where_max_epochs_says_and_sampling_moves_the_weights(recipe: str, tmp_path: Path) -> None:
    weights = set()
    for name, overrides in {"sampled": [], "usual": ["train.subword_sampling=0"]}.items():
        keys = ["train.max_steps=null", "train.max_epochs=2", *overrides]
        assert train(load_recipe(recipe, keys), tmp_path / name) == 2.0
        weights.add(hashes(tmp_path / name)["model.safetensors"])
    assert len(weights) == 2


def test_a_given_model_of_characters_is_refused(recipe: str, tmp_path: Path) -> None:
    char = prepare(load_recipe(recipe, ["tokenizer.model_type=char", "train.subword_sampling=0"]), lambda note: None)
    char.tokenizer.save(tmp_path)
    config = load_recipe(recipe, [f"tokenizer.model={tmp_path / 'tokenizer.model'}"])
    with pytest.raises(DataError, match=r"train\.subword_sampling needs a BPE or unigram tokenizer"):
        prepare(config, lambda note: None)
    with pytest.raises(ConfigError, match="got char"):
        load_recipe(recipe, ["tokenizer.model_type=char"])
