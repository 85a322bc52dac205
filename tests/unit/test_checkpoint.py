import errno
import json
import os
import pickle
import re
import resource
import shutil
import stat
from pathlib import Path

import pytest
import torch
from training_rig import small_config, small_tokenizer

from transformer_cli.checkpoint import CheckpointState, RunFolder, build_model, durable, load_model, newest_run
from transformer_cli.checkpoint.tensor_files import to_bytes
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.errors import DataError, DiskFull, RunError


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", small_config(), small_tokenizer(), {"recipe": "small"}, overwrite=False)


def state(step, bleu=None):
    weights = {"a": torch.full((2,), float(step))}
    validation = None if bleu is None else {"bleu": bleu, "loss": -bleu}
    return CheckpointState(step, weights, {"step.a": torch.tensor(1.0)}, None, {"validation": validation})


def weights():
    return dict(build_model(small_config(), small_tokenizer()).named_parameters())


def test_a_run_folder_is_read_back_as_it_was(run):
    again = RunFolder.open(run.path)
    assert again.config == small_config()
    assert again.tokenizer.sha256 == small_tokenizer().sha256
    assert again.info == run.info
    assert (again.info["format"], again.info["recipe"], again.info["status"]) == (1, "small", "new")


def test_equal_weights_give_equal_bytes(run):
    shuffled = dict(reversed(weights().items()))
    first = weights()
    assert to_bytes(first, "x") == to_bytes({name: first[name] for name in shuffled}, "x")
    assert len({to_bytes(first, "x") for _ in range(8)}) == 1


def test_every_file_of_a_new_run_outlives_a_power_cut(tmp_path, monkeypatch):
    synced = set()
    monkeypatch.setattr(durable.os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    run = RunFolder.create(tmp_path / "run", small_config(), small_tokenizer(), {}, overwrite=False)
    inside = {path.name: path.stat().st_ino for path in [run.path, run.path.parent, *run.path.rglob("*")]}
    assert "tokenizer.model" in inside
    assert set(inside.values()) <= synced


def test_an_existing_run_is_replaced_only_on_request(run):
    with pytest.raises(RunError, match="exists"):
        RunFolder.create(run.path, run.config, run.tokenizer, {}, overwrite=False)
    run.save_checkpoint(state(1))
    new = RunFolder.create(run.path, run.config, run.tokenizer, {}, overwrite=True)
    assert new.steps() == []
    assert [path.name for path in run.path.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["notes.txt", ".tmp-mine", ".tmp-folder/file", "checkpoints/.tmp-step-1/file"])
def test_files_that_came_while_a_run_was_prepared_are_not_lost(run, name):
    (run.path / name).parent.mkdir(parents=True, exist_ok=True)
    (run.path / name).touch()
    with pytest.raises(RunError, match=rf"holds files that are not of a run(.|\n)*1 file: {re.escape(name)}"):
        RunFolder.create(run.path, run.config, run.tokenizer, {}, overwrite=True)
    assert (run.path / name).exists()


def test_what_an_interrupted_write_has_left_is_of_a_run(run):
    for name in (
        ".tmp-model.safetensors",
        "checkpoints/.tmp-step-1/state.json",
        "checkpoints/.tmp-old-step-1/ema.safetensors",
    ):
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).touch()
    RunFolder.create(run.path, run.config, run.tokenizer, {}, overwrite=True)
    assert not list(run.path.rglob(".tmp-*"))


@pytest.mark.parametrize("is_there", [True, False])
def test_a_run_is_made_where_a_link_leads(run, tmp_path, is_there):
    link, target = tmp_path / "link", tmp_path / "other" / "disk"
    link.symlink_to(target)
    target.parent.mkdir()
    if is_there:
        shutil.copytree(run.path, target)
    for overwrite in (is_there, True):
        made = RunFolder.create(link, run.config, run.tokenizer, {}, overwrite=overwrite)
        assert (made.path, link.readlink(), target.is_symlink()) == (link, target, False)
        assert RunFolder.open(link).info["created"] == RunFolder.open(target).info["created"] == made.info["created"]
    assert sorted(path.name for path in target.parent.iterdir()) == ["disk"]
    assert not list(tmp_path.glob(".tmp-*"))


def test_a_folder_that_is_no_run_is_never_replaced(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "precious.txt").touch()
    with pytest.raises(RunError, match="is not a run"):
        RunFolder.create(tmp_path / "letters", small_config(), small_tokenizer(), {}, overwrite=True)
    assert (tmp_path / "letters" / "precious.txt").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_folder_one_is_in_is_never_replaced(run, tmp_path, monkeypatch, overwrite):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", run.path):
        monkeypatch.chdir(folder)
        for name in (".", folder):
            with pytest.raises(RunError, match="is the folder you are in"):
                RunFolder.create(Path(name), small_config(), small_tokenizer(), {}, overwrite=overwrite)


def test_a_run_may_lie_in_a_folder_called_checkpoints(tmp_path):
    place = tmp_path / "checkpoints" / "my"
    RunFolder.create(place, small_config(), small_tokenizer(), {}, overwrite=False).save_model(weights())
    assert load_model(place)[2] == small_config()


def test_checkpoints_come_back_bit_by_bit(run):
    run.save_checkpoint(state(3, 1.5))
    found = run.load_checkpoint(3)
    assert torch.equal(found.weights["a"], torch.full((2,), 3.0))
    assert found.counters == {"validation": {"bleu": 1.5, "loss": -1.5}}
    assert (found.step, found.ema) == (3, None)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(run, name, damage):
    for step in (2, 10):
        run.save_checkpoint(state(step))
    path = run.checkpoint(10) / name
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-5])
    if damage == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    notes = []
    assert run.newest_intact(notes.append).step == 2
    assert "step-10" in notes[0]
    assert name in notes[0]


@pytest.mark.parametrize(
    ("keep_last", "keep_best", "metric", "kept"),
    [
        (1, 0, "bleu", [50]),
        (2, 1, "bleu", [20, 40, 50]),
        (1, 2, "loss", [20, 30, 50]),
        (9, 0, "bleu", [10, 20, 30, 40, 50]),
    ],
)
def test_pruning_keeps_the_last_and_the_best(run, keep_last, keep_best, metric, kept):
    for step, bleu in zip((10, 20, 30, 40, 50), (1.0, 9.0, 5.0, None, 2.0), strict=True):
        run.save_checkpoint(state(step, bleu))
    run.prune(50, keep_last, keep_best, metric)
    assert run.steps() == kept


def test_leftovers_of_an_interrupted_write_are_cleaned(run):
    run.save_checkpoint(state(1))
    (run.path / ".tmp-model.safetensors").touch()
    (run.path / "checkpoints" / ".tmp-step-2").mkdir()
    run.clean()
    assert not list(run.path.rglob(".tmp-*"))
    assert run.steps() == [1]


def test_content_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    done = []

    def told(name, function):
        return lambda *arguments: (done.append(name), function(*arguments))

    monkeypatch.setattr(os, "fsync", lambda fd: done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"))
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, told("rename", getattr(os, name)))
    durable.write_file(tmp_path / "file", b"content")
    assert done == ["file", "rename", "folder"]
    done.clear()
    durable.write_folder(tmp_path / "folder", {"a": b"1", "b": b"2"})
    assert done == ["file", "file", "folder", "rename", "folder"]


def test_a_full_disk_leaves_the_old_files_intact(run):
    run.save_checkpoint(state(1))
    run.save_model(weights())
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    big = {"a": torch.zeros(100_000)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # a write fails half-way, as on a full disk
    try:
        with pytest.raises(DiskFull, match="disk is full"):
            run.save_checkpoint(CheckpointState(2, big, {}, None, {}))
        with pytest.raises(DiskFull, match="disk is full"):
            run.save_model(big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_a_clear_error(run, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(durable, "_write_synced", refuse)
    with pytest.raises(RunError, match="cannot be written") as caught:
        run.update_info({"step": 1})
    assert "--run" in str(caught.value)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_was_moved_aside_goes_back_where_nothing_took_its_place(run, is_there):
    """A crash between the two renames of ``move_into_place``: what it replaced may be the only checkpoint."""
    run.save_checkpoint(state(4))
    folder = run.checkpoint(4)
    shutil.copytree(folder, folder.with_name(".tmp-step-4"))
    shutil.copytree(folder, folder.with_name(".tmp-old-step-4"))
    (folder.with_name(".tmp-old-step-4") / "state.json").write_text("old")
    if not is_there:
        shutil.rmtree(folder)
    run.clean()
    assert [path.name for path in folder.parent.iterdir()] == ["step-4"]
    assert ((folder / "state.json").read_text() == "old") == (not is_there)


def test_what_was_being_removed_does_not_come_back(run, monkeypatch):
    run.save_checkpoint(state(4))
    monkeypatch.setattr(durable.shutil, "rmtree", lambda *_, **__: None)  # killed before it
    durable.remove_folder(run.checkpoint(4))
    monkeypatch.undo()
    run.clean()
    assert not list((run.path / "checkpoints").iterdir())


@pytest.mark.parametrize("name", [".tmp-mine.txt", ".tmp-notes/a.txt", "checkpoints/.tmp-old-mine/a"])
def test_a_users_own_files_are_not_cleaned_away(run, name):
    run.save_checkpoint(state(4))
    (run.path / name).parent.mkdir(parents=True, exist_ok=True)
    (run.path / name).touch()
    (run.path / ".tmp-run.json").touch()
    run.clean()
    assert (run.path / name).exists()
    assert not (run.path / ".tmp-run.json").exists()


def test_a_checkpoint_beyond_the_present_step_neither_displaces_others_nor_is_removed(run):
    for step in (5, 10):
        run.save_checkpoint(state(step, bleu=step))
    run.save_checkpoint(state(6, bleu=6))
    run.prune(6, 1, 1, "bleu")
    assert run.steps() == [6, 10]
    assert run.best_steps(6, 2, "bleu") == [6]


def test_records_after_a_step_and_half_a_line_are_forgotten(run):
    for step in (5, 10, 15):
        run.append_metrics({"kind": "train", "step": step})
        run.append_samples({"step": step, "samples": [["ä", "b", "c"]]})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')
    assert [record["step"] for record in run.metrics()] == [5, 10, 15]
    run.truncate_records(10)
    assert [record["step"] for record in run.metrics()] == [5, 10]
    assert (run.path / "samples.jsonl").read_text().count("\n") == 2
    run.append_metrics({"kind": "train", "step": 11})
    assert [record["step"] for record in run.metrics()] == [5, 10, 11]


def test_the_best_model_and_a_checkpoint_load_to_equal_outputs(run):
    model = build_model(run.config, run.tokenizer).eval()
    run.save_model(dict(model.named_parameters()))
    run.save_checkpoint(CheckpointState(4, dict(model.named_parameters()), {}, None, {}))
    src, tgt = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    for path in (run.path, run.checkpoint(4)):
        loaded, tokenizer, config = load_model(path, "cpu")
        assert torch.equal(loaded(src, tgt), model(src, tgt))
        assert (tokenizer.sha256, config, loaded.training) == (run.tokenizer.sha256, run.config, False)


def test_a_checkpoint_with_averaged_weights_gives_those(run):
    averaged = {name: torch.zeros_like(tensor) for name, tensor in weights().items()}
    run.save_checkpoint(CheckpointState(4, weights(), {}, averaged, {}))
    assert all(not p.any() for p in load_model(run.checkpoint(4))[0].parameters())


def test_a_moved_run_still_loads(run):
    run.save_model(weights())
    moved = shutil.move(run.path, run.path.parent / "elsewhere")
    assert load_model(moved)[2] == small_config()


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickle_is_refused_and_not_executed(run, tmp_path, by_torch):
    target, trap = run.path / "model.safetensors", tmp_path / "executed"
    torch.save(Payload(trap), target) if by_torch else target.write_bytes(pickle.dumps(Payload(trap)))
    with pytest.raises(RunError, match="pickle"):
        load_model(run.path)
    assert not trap.exists()


def test_a_foreign_tokenizer_is_refused(run):
    durable.write_file(run.path / "model.safetensors", to_bytes(weights(), "another"))
    with pytest.raises(RunError, match="was saved with another tokenizer"):
        load_model(run.path)


def test_weights_of_another_shape_are_refused_by_name(run):
    name, values = next(iter(weights().items()))
    right = "x".join(map(str, values.shape))
    durable.write_file(
        run.path / "model.safetensors",
        to_bytes(weights() | {name: torch.zeros(3, 2), "a.scale": torch.tensor(1.0)}, "another"),
    )
    with pytest.raises(RunError, match="do not fit") as caught:  # which says more than that a tokenizer is another
        load_model(run.path)
    assert f"got: a.scale 1, {name} 3x2\n  expected: a.scale (none), {name} {right}\n" in str(caught.value)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(run, wrong):
    name, values = next(iter(weights().items()))
    values = values.detach().clone()
    values.view(-1)[-1] = wrong
    run.save_model(weights() | {name: values})
    with pytest.raises(RunError, match="not finite") as caught:
        load_model(run.path)
    assert name in str(caught.value)
    run.save_model({name: values * torch.nan for name, values in weights().items()})
    with pytest.raises(RunError, match=f"and {len(weights()) - 3} more"):
        load_model(run.path)


def test_another_model_that_the_weights_fit_is_not_the_trained_one(run):
    run.save_model(weights())
    config = (run.path / "config.yaml").read_text(encoding="utf-8")
    assert "norm_placement: pre" in config
    (run.path / "config.yaml").write_text(config.replace("beam_size: 5", "beam_size: 4"), encoding="utf-8")
    load_model(run.path)  # how to search may be changed
    (run.path / "config.yaml").write_text(
        config.replace("positions: sinusoidal", "positions: rotary"), encoding="utf-8"
    )
    with pytest.raises(RunError, match="was edited in its section model"):
        load_model(run.path)
    run.update_info({"model_section_sha256": None})  # as older runs have it
    load_model(run.path)


def test_a_run_without_a_model_says_what_to_do(run):
    with pytest.raises(RunError, match="no validated model"):
        load_model(run.path)


def test_the_newest_run_is_that_of_the_latest_stored_time(tmp_path):
    for name, created in (("b", "2024-01-01"), ("a", "2025-01-01"), ("c", "2026-01-01")):
        made = RunFolder.create(tmp_path / name, small_config(), small_tokenizer(), {}, overwrite=False)
        made.update_info({"created": created})
        if name != "c":
            made.save_model(weights())
    assert newest_run(tmp_path).name == "a"


def test_no_run_says_what_was_looked_for(tmp_path):
    with pytest.raises(RunError, match="no run with a model") as caught:
        newest_run(tmp_path)
    assert "tfm train --config base.yaml" in str(caught.value)
    assert "model.safetensors" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "not a run folder"), ("{", "damaged"), ('{"format": 2}', "another format"), ("[]", "damaged")],
)
def test_what_is_no_run_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=message):
        RunFolder.open(tmp_path)


def test_info_is_whole_after_every_change(run):
    run.update_info({"step": 7})
    assert json.loads((run.path / "run.json").read_text())["step"] == 7


@pytest.mark.parametrize(
    ("content", "got"),
    [(b"", "no JSON object"), (b"[]", "no JSON object"), (b'{"format": 1}', "no entry 'created'")],
)
def test_a_damaged_run_json_says_what_is_needed(run, content, got):
    (run.path / "run.json").write_bytes(content)
    with pytest.raises(RunError, match="is damaged") as caught:
        RunFolder.open(run.path)
    error = caught.value
    assert (error.where, error.got) == (str(run.path / "run.json"), got)
    assert "tokenizer_sha256 (str)" in error.expected
    assert "from a copy" in error.hint
    by_hand = {"format": 1, "created": "2026", "tokenizer_sha256": run.tokenizer.sha256, "status": "new", "step": 0}
    (run.path / "run.json").write_text(json.dumps(by_hand), encoding="utf-8")
    assert RunFolder.open(run.path).tokenizer.sha256 == run.tokenizer.sha256


def test_a_damaged_tokenizer_is_named_with_what_to_do(tmp_path):
    model = small_tokenizer()._models[0]
    Tokenizer(model, model).save(tmp_path)
    (tmp_path / "tokenizer.tgt.model").write_bytes(b"noise")
    with pytest.raises(DataError, match="damaged") as caught:
        Tokenizer.load(tmp_path)
    assert caught.value.where == str(tmp_path / "tokenizer.tgt.model")
    assert "from a copy" in caught.value.hint
