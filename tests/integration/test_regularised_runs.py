"""Runs that learn from other runs, start from them, or are older than the keys: what fits, and what is refused."""

import shutil
from pathlib import Path

import pytest
import torch
import yaml
from command_line import Tfm
from ranked_run import Scene, run_ranks
from toy_language import TINY
from training_rig import best_weights, hashes, small_config, small_pairs, small_tokenizer, small_trainer

from transformer_cli.checkpoint import RunFolder, load_model, loading
from transformer_cli.config import Config, ModelConfig, TrainConfig
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.errors import RunError
from transformer_cli.training.teachers import check_teachers, load_teachers

NEW_MODEL_KEYS = {"word_dropout", "qk_norm", "zero_init"} | {
    f"{place}_dropout" for place in ("embedding", "residual", "feed_forward")
}
NEW_TRAIN_KEYS = {"r_drop", "simcut", "simcut_cutoff", "teachers", "distill", "checkpointing"}
ONE_STEP = ["-s", "train.max_steps=1", "-s", "train.lr=1e-9"]


class Two(Scene):
    """Two ranks whose weights are in single precision, as real ones are."""

    dtype = torch.float32


class Lone(Two):
    world_size = 1


def taught_by(*teachers: Path, train: dict | None = None, **data: object) -> Config:
    made = small_config(teachers=[str(teacher) for teacher in teachers], distill=0.5, **train or {})
    return made.model_copy(update={"data": made.data.model_copy(update=data)})


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teacher") / "run"
    small_trainer(folder, small_config(model={"positions": "learned"}, max_steps=3)).train()
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hashes of a run with none of this, which nothing disturbed."""
    path = tmp_path_factory.mktemp("plain") / "run"
    small_trainer(path).train()
    return hashes(path)


@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_a_run_learns_from_its_teachers_and_resumes_with_them(
    teacher: Path, plain: dict[str, str], tmp_path: Path, amp: str
) -> None:
    config, before = taught_by(teacher, teacher / "checkpoints" / "step-3", train={"amp": amp}), hashes(teacher)
    small_trainer(tmp_path / "whole", config).train()
    first = small_trainer(tmp_path / "halves", config)
    for _ in range(5):
        first._advance()
    first._save("interrupted")
    second = small_trainer(tmp_path / "halves", config)
    second.resume()
    second.train()
    assert hashes(tmp_path / "whole") == hashes(tmp_path / "halves")
    assert hashes(tmp_path / "whole") != plain
    assert hashes(teacher) == before


@pytest.mark.parametrize("amp", ["off", "bf16"])
def test_ranks_learn_from_their_teachers_what_one_does_with_accumulation(
    teacher: Path, tmp_path: Path, amp: str
) -> None:
    config, lone = (taught_by(teacher, train={"amp": amp, "accumulate": count}) for count in (1, 2))
    main, other = (outcome["weights"] for outcome in run_ranks(tmp_path / "two", Two(), config))
    (alone,) = (outcome["weights"] for outcome in run_ranks(tmp_path / "one", Lone(), lone))
    assert main.keys() == other.keys() == alone.keys()
    assert all(main[name].equal(other[name]) and main[name].equal(alone[name]) for name in main)  # a + b is b + a


def test_a_teacher_that_has_changed_is_refused_and_named(teacher: Path, tmp_path: Path) -> None:
    moving = tmp_path / "moving"
    shutil.copytree(teacher, moving)
    config = taught_by(teacher, moving)
    first = small_trainer(tmp_path / "run", config)
    first._begin()
    first._advance()
    first._save("interrupted")
    small_trainer(tmp_path / "run", config).resume()
    (moving / "train.log").write_text("not what is learned from", encoding="utf-8")
    small_trainer(tmp_path / "run", config).resume()
    run = RunFolder.open(moving)
    run.save_model({name: 1.01 * weight for name, weight in best_weights(run).items()})
    with pytest.raises(RunError, match="a teacher has changed since this run began") as caught:
        small_trainer(tmp_path / "run", config).resume()
    assert str(moving) in str(caught.value.where)
    known = RunFolder.open(tmp_path / "run")
    del known.info["teachers_sha256"]
    known.update_info({})  # as of an older version, which had noted nothing
    small_trainer(tmp_path / "run", config).resume()


def test_a_teacher_is_loaded_once(teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    read_tensors = loading.read_tensors
    monkeypatch.setattr(loading, "read_tensors", lambda path: read.append(path.parent) or read_tensors(path))
    check_teachers(taught_by(teacher), small_tokenizer())
    small_trainer(tmp_path / "run", taught_by(teacher))
    assert read == [teacher]


def test_teachers_are_not_trained_and_drop_nothing(teacher: Path) -> None:
    (model,) = load_teachers([str(teacher)], torch.device("cpu"))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_teacher_that_does_not_fit_is_refused(teacher: Path, tmp_path: Path) -> None:
    check_teachers(taught_by(teacher), small_tokenizer())
    settings = small_config().tokenizer.model_copy(update={"model_type": "char", "vocab_size": 290})
    lines = ["another language", "with other words"] * 20
    other = train_tokenizer(settings, lines, lines, lambda text: None)
    with pytest.raises(RunError, match="a teacher has another tokenizer") as caught:
        check_teachers(taught_by(teacher), other)
    assert str(teacher) in str(caught.value.where)
    with pytest.raises(RunError, match="positions end too early"):
        check_teachers(taught_by(teacher, max_length=200), small_tokenizer())
    with pytest.raises(RunError, match="has not learned what it is to teach") as caught:
        check_teachers(taught_by(teacher, src_lang="de", tgt_lang="en"), small_tokenizer())
    assert (caught.value.got, caught.value.expected) == ("en-de", "de-en")
    both_ways = taught_by(teacher)
    both_ways = both_ways.model_copy(update={"train": both_ways.train.model_copy(update={"bidirectional_epochs": 1})})
    with pytest.raises(RunError, match="has not learned what it is to teach"):
        check_teachers(both_ways, small_tokenizer())
    with pytest.raises(RunError, match="there is no such run folder"):
        check_teachers(taught_by(tmp_path / "nowhere"), small_tokenizer())
    RunFolder.create(tmp_path / "untrained", small_config(), small_tokenizer(), {})
    with pytest.raises(RunError, match="no validated model yet"):
        check_teachers(taught_by(tmp_path / "untrained"), small_tokenizer())


def test_the_command_refuses_a_teacher_with_another_tokenizer(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    settings = ["-s", f"train.teachers=[{run}]", "-s", "train.distill=0.5", "-s", "tokenizer.vocab_size=290"]
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "x", *TINY, *settings)
    assert done.code == 2
    assert "a teacher has another tokenizer" in done.err
    assert "tokenizer.model" in done.err
    assert not (tmp_path / "x").exists()


def test_the_command_trains_a_student(tfm: Tfm, run: Path, files: Path, tmp_path: Path) -> None:
    settings = ["-s", f"train.teachers=[{run}]", "-s", "train.distill=0.5", "-s", "model.d_ff=24", *ONE_STEP]
    assert tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "student", *TINY, *settings).code == 0


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        *((f"model.{place}_dropout", "0.3", True) for place in ("embedding", "residual", "feed_forward", "word")),
        ("model.qk_norm", "true", False),
        ("model.zero_init", "true", False),
    ],
)
def test_fine_tuning_may_change_dropout_and_no_architecture(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path, key: str, value: str, fits: bool
) -> None:
    settings = ["-s", f"train.init_from={run}", "-s", f"{key}={value}", *ONE_STEP]
    done = tfm("train", "-c", files / "my.yaml", "--run", tmp_path / "tuned", *TINY, *settings)
    assert done.code == (0 if fits else 2)
    assert fits or f"{key} true" in done.err


def test_a_run_that_is_older_than_the_keys_loads_and_resumes(plain: dict[str, str], tmp_path: Path) -> None:
    first = small_trainer(tmp_path / "old", small_config())
    for _ in range(5):
        first._advance()
    first._save("interrupted")
    path = tmp_path / "old" / "config.yaml"
    old = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(ModelConfig.model_fields) >= NEW_MODEL_KEYS
    assert set(TrainConfig.model_fields) >= NEW_TRAIN_KEYS
    for section, keys in {"model": NEW_MODEL_KEYS, "train": NEW_TRAIN_KEYS}.items():
        for key in keys:
            del old[section][key]
    path.write_text(yaml.safe_dump(old), encoding="utf-8")
    second = small_trainer(tmp_path / "old", RunFolder.open(tmp_path / "old").config)
    second.resume()
    second.train()
    assert hashes(tmp_path / "old") == plain
    assert load_model(tmp_path / "old")[2] == small_config()


def test_checkpointing_may_change_in_a_continued_run_and_changes_no_bit(plain: dict[str, str], tmp_path: Path) -> None:
    first = small_trainer(tmp_path / "halves", small_config(checkpointing="attention"), pairs=small_pairs())
    for _ in range(5):
        first._advance()
    first._save("interrupted")
    second = small_trainer(tmp_path / "halves", small_config(checkpointing="layer"))
    second.resume()
    second.train()
    assert hashes(tmp_path / "halves") == plain
