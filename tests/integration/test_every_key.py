"""Every key does something: one row a key, changed alone, and what must differ then.

A key that nothing observes is a key that a user turns in vain.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_language import toy_pairs

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.train import make_trainer
from transformer_cli.config import AttentionPlaces, Config, FilterConfig, SparseConfig
from transformer_cli.data.batching import collate, epoch_batches
from transformer_cli.data.corpus import load_corpus
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import TrainingFailed
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.recipe import all_keys, load_recipe
from transformer_cli.runtime import Runtime
from transformer_cli.training.update import Updater

RECIPE = """
data:
  train: {{src: {folder}/a.en, tgt: {folder}/a.de}}
  dev: {{src: {folder}/b.en, tgt: {folder}/b.de}}
tokenizer: {{vocab_size: 320}}
model: {{d_model: 16, n_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}}
train:
  {{batch_tokens: 400, max_steps: 4, lr: 0.01, warmup_steps: 2, validate_every: 2, save_every: 2, log_every: 1,
   keep_last: 1, keep_best: 0, amp: off}}
decode: {{beam_size: 2}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    pairs = toy_pairs(130)
    for name, part in {"a": pairs[:100], "b": pairs[100:106], "c": pairs[106:]}.items():
        (folder / f"{name}.en").write_text(
            "".join(f"{src} q{i}\n" for i, (src, _) in enumerate(part)), encoding="utf-8"
        )
        (folder / f"{name}.de").write_text(
            "".join(f"{tgt} ü{i}\n" for i, (_, tgt) in enumerate(part)), encoding="utf-8"
        )
    (folder / "fr.tsv").write_text("".join(f"one cats {i}\tune chatte {i}\n" for i in range(20)), encoding="utf-8")
    noise = [("same", "same"), ("one", "ένα"), ("two", "zwei"), ("two", "zwei"), ("three", "a b c d e f g h i j k")]
    (folder / "noisy.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in noise), encoding="utf-8")
    (folder / "my.yaml").write_text(RECIPE.format(folder=folder), encoding="utf-8")
    return folder


# What can be observed of a configuration


def text(config: Config, _: Path) -> object:
    corpus = load_corpus(config.data, config.train.seed)
    return [(len(part), part.src[:3], part.tgt[:3]) for part in (corpus.train, corpus.dev, corpus.test)]


def experiment(config: Config) -> Experiment:
    return prepare(config, lambda note: None)


def kind_of_pairs(config: Config, _: Path) -> object:
    return type(experiment(config).train_pairs.plain).__name__


def tokenizer(config: Config, _: Path) -> object:
    return experiment(config).tokenizer.sha256


def n_pairs(config: Config, _: Path) -> object:
    return len(experiment(config).train_pairs)


def first_epoch(config: Config, _: Path) -> object:
    pairs = experiment(config).train_pairs.pairs(0)
    return [[ids.tolist() for ids in side] for side in (pairs.src, pairs.tgt)]


def n_batches(config: Config, _: Path) -> object:
    pairs, train = experiment(config).train_pairs.plain, config.train
    return len(epoch_batches(pairs.src_lengths, pairs.tgt_lengths, train.batch_tokens, seed=train.seed, epoch=0))


def weights(config: Config, _: Path) -> object:
    return {name: parameter.sum().item() for name, parameter in experiment(config).model.named_parameters()}


def output(config: Config, _: Path, training: bool = False) -> object:
    made = experiment(config)
    torch.manual_seed(0)
    batch = collate(made.train_pairs.plain, np.arange(4))
    return made.model.train(training)(batch.src, batch.tgt_in).sum().item()


def training_output(config: Config, path: Path) -> object:
    return output(config, path, training=True)


def implementations(config: Config, _: Path) -> object:
    model = experiment(config).model
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    return [layer.implementation for layer in (encoder.self_attn, decoder.self_attn, decoder.cross_attn)]


def trained(config: Config, path: Path) -> RunFolder:
    made = experiment(config)
    run = RunFolder.create(path / "run", config, made.tokenizer, {})
    make_trainer(made, run, Runtime.resolve("cpu", config.train.amp), quiet=True).train()
    return run


def records(kind: str, *names: str) -> Callable[[Config, Path], object]:
    def observe(config: Config, path: Path) -> object:
        found = [record for record in trained(config, path).metrics() if record["kind"] == kind]
        return [[record[name] for name in names] for record in found]

    return observe


def final_weights(config: Config, path: Path) -> object:
    run = trained(config, path)
    state = run.load_checkpoint(run.steps()[-1])
    return {name: tensor.sum().item() for name, tensor in state.weights.items()}


def kept_model(config: Config, path: Path) -> object:
    return hashlib.sha256((trained(config, path).path / "model.safetensors").read_bytes()).hexdigest()


def checkpoints(config: Config, path: Path) -> object:
    return trained(config, path).steps()


def steps(config: Config, path: Path) -> object:
    return trained(config, path).info["step"]


def budget(config: Config, path: Path) -> object:
    return "time_budget" in json.loads((trained(config, path).path / "run.json").read_text(encoding="utf-8"))


def patience_with_bad_numbers(config: Config, path: Path) -> object:
    try:
        trained(config, path)
    except TrainingFailed as error:
        return error.what
    raise AssertionError("a learning rate of 1e30 went well")


def translation(config: Config, path: Path) -> object:
    made = experiment(config)
    if config.train.max_steps != 4:  # enough of them that a translation ends by itself
        run = RunFolder.create(path / "run", config, made.tokenizer, {})
        make_trainer(made, run, Runtime.resolve("cpu"), quiet=True).train()
    translator = Translator.of_model(made.model, made.tokenizer, config, Runtime.resolve("cpu"))
    found = translator.translate_window(
        ["one cats sleep. q1", "two dogs wait. q2"], DecodeSettings.from_config(config.decode)
    )
    return [(hypothesis.tokens, hypothesis.score) for one in found for hypothesis in one.hypotheses]


def translation_of_run(config: Config, path: Path) -> object:
    translator = Translator.from_run(trained(config, path).path, "cpu")
    found = translator.translate_window(["one cats sleep. q1"], DecodeSettings.from_config(config.decode))
    return found[0].hypotheses[0].score


def kept_for_backward(config: Config, _: Path) -> object:
    made, kept = experiment(config), []
    Updater(made.model.train(), config.train, Runtime.resolve("cpu"))
    batch = collate(made.train_pairs.plain, np.arange(4))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda t: t):
        made.model(batch.src, batch.tgt_in)
    return len(kept)


def make_given_runs(folder: Path) -> None:
    """Train the runs that rows speak of, unless they are there."""
    for name, seed in {"parent": 1, "other": 2}.items():
        if not (folder / name).exists():
            trained(load_recipe(str(folder / "my.yaml"), [f"train.seed={seed}"]), folder / name)


TAUGHT = ["train.teachers=[{folder}/parent/run]", "train.distill=0.5"]
SELDOM = ["train.validate_every=99", "train.save_every=99"]
ENDING = ["decode.max_length_ratio=4", "train.max_steps=40", "train.lr=0.03", *SELDOM]  # of their own will
NOISY = ["data.train={{tsv: {folder}/noisy.tsv}}"]
PHRASEBOOK = ["data.train=null", "data.dev=null", "data.corpus=phrasebook"]

#: key, changed value, observable, and settings of both sides where the base recipe hides the effect.
SPARSE = ["model.attention.encoder=sparse", "model.attention.decoder=sparse"]
ROWS: list[tuple[str, str, Callable[[Config, Path], object], list[str]]] = [
    ("data.src_lang", "zh", text, PHRASEBOOK),
    ("data.tgt_lang", "zh", text, PHRASEBOOK),
    ("data.corpus", "phrasebook", text, ["data.train=null", "data.dev=null"]),
    ("data.train", "{{src: {folder}/c.en, tgt: {folder}/c.de}}", text, []),
    ("data.dev", "{{src: {folder}/c.en, tgt: {folder}/c.de}}", text, []),
    ("data.test", "{{src: {folder}/c.en, tgt: {folder}/c.de}}", text, []),
    ("data.dev_size", "3", text, ["data.dev=null"]),
    ("data.max_length", "17", n_pairs, []),
    ("data.memory", "disk", kind_of_pairs, []),
    ("data.more_targets", "[{{lang: fr, train: {{tsv: {folder}/fr.tsv}}}}]", n_pairs, []),
    ("data.filter", "{{identical: true, duplicates: true}}", n_pairs, NOISY),
    ("data.filter.length_ratio", "3", n_pairs, NOISY),
    ("data.filter.identical", "true", n_pairs, NOISY),
    ("data.filter.duplicates", "true", n_pairs, NOISY),
    ("data.filter.wrong_script", "true", n_pairs, NOISY),
    ("tokenizer.model_type", "char", tokenizer, []),
    ("tokenizer.vocab_size", "310", tokenizer, []),
    ("tokenizer.joint", "false", tokenizer, ["model.tie_embeddings=none"]),
    ("tokenizer.character_coverage", "0.98", tokenizer, []),
    ("tokenizer.model", "{folder}/given.model", tokenizer, []),
    ("model.d_model", "32", weights, []),
    ("model.n_heads", "4", output, []),
    ("model.d_k", "6", weights, []),
    ("model.d_v", "6", weights, []),
    ("model.d_ff", "48", weights, []),
    ("model.encoder_layers", "2", weights, []),
    ("model.decoder_layers", "2", weights, []),
    ("model.dropout", "0.5", training_output, []),
    ("model.embedding_dropout", "0.5", training_output, []),
    ("model.residual_dropout", "0.5", training_output, []),
    ("model.feed_forward_dropout", "0.5", training_output, []),
    ("model.word_dropout", "0.5", training_output, []),
    ("model.attention_dropout", "0.5", training_output, []),
    ("model.activation", "gelu", output, []),
    ("model.bias", "false", weights, []),
    ("model.norm_placement", "post", output, []),
    ("model.norm", "rms", weights, []),
    ("model.positions", "rotary", output, []),
    ("model.attention", "naive", implementations, []),
    ("model.attention.encoder", "naive", implementations, []),
    ("model.attention.decoder", "naive", implementations, []),
    ("model.attention.cross", "naive", implementations, []),
    ("model.sparse", "{{pattern: window, window: 2}}", output, SPARSE),
    ("model.sparse.pattern", "dilated", output, [*SPARSE, "model.sparse.window=2"]),
    ("model.sparse.window", "2", output, SPARSE),
    ("model.sparse.dilation", "3", output, [*SPARSE, "model.sparse={{pattern: dilated, window: 1}}"]),
    ("model.sparse.global_tokens", "1", output, [*SPARSE, "model.sparse.window=2"]),
    ("model.sparse.random_blocks", "2", output, [*SPARSE, "model.sparse={{pattern: bigbird, window: 1, block: 2}}"]),
    ("model.sparse.block", "4", output, [*SPARSE, "model.sparse={{pattern: blocks, block: 2}}"]),
    ("model.sparse.seed", "2", output, [*SPARSE, "model.sparse={{pattern: bigbird, window: 1, block: 2}}"]),
    ("model.linformer_rank", "8", weights, ["model.attention.encoder=linformer"]),
    ("model.attention_scale", "0.2", output, []),
    ("model.qk_norm", "true", output, []),
    ("model.zero_init", "true", weights, []),
    ("model.tie_embeddings", "decoder", weights, []),
    ("train.batch_tokens", "200", n_batches, []),
    ("train.accumulate", "2", final_weights, []),
    ("train.max_steps", "3", steps, []),
    ("train.max_epochs", "1", steps, ["train.max_steps=20", *SELDOM]),
    ("train.max_minutes", "0.02", budget, ["train.max_steps=60", *SELDOM]),
    ("train.lr", "0.02", records("train", "lr"), []),
    ("train.optimizer", "muon", final_weights, []),
    ("train.muon_lr", "0.02", final_weights, ["train.optimizer=muon"]),
    ("train.muon_momentum", "0.5", final_weights, ["train.optimizer=muon"]),
    ("train.weight_decay", "0.5", final_weights, []),
    ("train.warmup_steps", "3", records("train", "lr"), []),
    ("train.schedule", "cosine", records("train", "lr"), []),
    ("train.decay_share", "0.5", records("train", "lr"), ["train.schedule=trapezoidal"]),
    ("train.label_smoothing", "0.3", records("train", "loss"), []),
    ("train.r_drop", "1", records("train", "loss"), []),
    ("train.simcut", "1", records("train", "loss"), []),
    ("train.simcut_cutoff", "0.5", records("train", "loss"), ["train.simcut=1"]),
    ("train.teachers", "[{folder}/parent/run, {folder}/other/run]", records("train", "loss"), TAUGHT),
    ("train.distill", "0.9", records("train", "loss"), TAUGHT),
    ("train.checkpointing", "layer", kept_for_backward, []),
    ("train.clip_norm", "0.001", final_weights, []),
    ("train.subword_sampling", "0.3", first_epoch, []),
    ("train.sampled_sides", "source", first_epoch, ["train.subword_sampling=0.3"]),
    ("train.bidirectional_epochs", "1", first_epoch, []),
    ("train.amp", "bf16", records("train", "loss"), []),
    ("train.ema_decay", "0.9", kept_model, []),
    ("train.seed", "2", weights, []),
    ("train.validate_every", "1", records("validation", "step"), []),
    ("train.save_every", "1", checkpoints, ["train.keep_last=9"]),
    ("train.log_every", "2", records("train", "step"), []),
    ("train.keep_last", "2", checkpoints, []),
    ("train.keep_best", "1", checkpoints, ["train.lr=1e-20", "train.stop_metric=bleu"]),
    ("train.average_last", "2", records("average", "average"), []),
    ("train.average_best", "2", records("average", "average"), []),
    ("train.patience", "1", steps, ["train.lr=1e-20", "train.max_steps=8"]),
    ("train.stop_metric", "loss", steps, ["train.patience=1", "train.max_steps=8"]),
    ("train.validate_beam_size", "3", records("validation", "decoding"), []),
    ("train.max_bad_steps", "3", patience_with_bad_numbers, ["train.lr=1e30", "train.max_steps=40", "train.validate_every=99"]),
    ("train.init_from", "{folder}/parent/run", weights, []),
    ("decode.beam_size", "5", translation, []),
    ("decode.length_penalty", "0", translation, []),
    ("decode.length_normalization", "plain", translation, ["decode.length_penalty=2"]),
    ("decode.early_stopping", "true", translation, ["decode.length_penalty=4", *ENDING]),
    ("decode.max_length_ratio", "0.5", translation, []),
    ("decode.min_length", "40", translation, ENDING),
    ("decode.no_repeat_ngram", "2", translation, []),
    ("decode.shortlist", "true", translation_of_run, []),
]  # fmt: skip


def test_no_key_is_forgotten() -> None:
    places = {f"model.attention.{place}" for place in AttentionPlaces.model_fields}
    places |= {f"data.filter.{name}" for name in FilterConfig.model_fields}
    places |= {f"model.sparse.{name}" for name in SparseConfig.model_fields}
    assert {row[0] for row in ROWS} == {*all_keys(), *places}


@pytest.mark.parametrize(("key", "value", "observe", "shared"), ROWS, ids=[row[0] for row in ROWS])
def test_each_key_alone_changes_what_it_says(
    key: str, value: str, observe: Callable, shared: list[str], folder: Path, tmp_path: Path
) -> None:
    if key == "tokenizer.model":
        other = load_recipe(str(folder / "my.yaml"), ["tokenizer.vocab_size=310"])
        experiment(other).tokenizer.save(tmp_path)
        (folder / "given.model").write_bytes((tmp_path / "tokenizer.model").read_bytes())
    if key in ("train.init_from", "train.teachers", "train.distill"):
        make_given_runs(folder)
    recipe, shared = str(folder / "my.yaml"), [override.format(folder=folder) for override in shared]
    base = [] if key == "data.corpus" else shared  # without a corpus of its own a recipe needs train
    plain = load_recipe(recipe, base)
    changed = load_recipe(recipe, [*shared, f"{key}={value.format(folder=folder)}"])
    assert observe(changed, tmp_path / "changed") != observe(plain, tmp_path / "plain")
