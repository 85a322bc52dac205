"""Where the data lie does not change a run: mapped files against memory, pair for pair and id for id."""

import gzip
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_language import toy_pairs

from transformer_cli import experiment
from transformer_cli.config import Config, DataConfig, TokenizerConfig
from transformer_cli.data import corpus as corpus_module
from transformer_cli.data.batching import collate, epoch_batches, tokenize_pairs
from transformer_cli.data.cache import cache_root, cached, key_of
from transformer_cli.data.corpus import load_corpus
from transformer_cli.data.mapped_pairs import MappedIds, MappedPairs, map_pairs
from transformer_cli.data.mapped_text import MappedText
from transformer_cli.data.pairs import ParallelText
from transformer_cli.data.tokenizer import Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.errors import ConfigError, DataError, DiskFull
from transformer_cli.recipe import load_recipe
from transformer_cli.training.data_order import DataOrder, Position

DEV = {"tsv": "dev.tsv"}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.tsv").write_text("one cats sleep.\teins Katzen schlafen.\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    src, tgt = map(list, zip(*toy_pairs(100), strict=True))
    return train_tokenizer(TokenizerConfig(vocab_size=300), src, tgt, lambda note: None)


def both(train: dict, **more: object):
    """Return the corpus in memory and on disk."""
    made = [
        DataConfig.model_validate({"train": train, "dev": DEV, "memory": memory, **more}) for memory in ("ram", "disk")
    ]
    return [load_corpus(config, 1) for config in made]


def equal_pairs(a, b) -> bool:
    sides = [(*a.src, *a.tgt), (*b.src, *b.tgt)]
    lengths = (a.src_lengths, b.src_lengths), (a.tgt_lengths, b.tgt_lengths)
    return all(np.array_equal(*pair) for pair in (*zip(*sides, strict=True), *lengths))


def test_odd_text_is_the_same_on_disk(folder, odd_corpus, tokenizer):
    ram, disk = both({"src": str(odd_corpus.src_path), "tgt": str(odd_corpus.tgt_path)})
    assert isinstance(disk.train, MappedText)
    assert list(zip(disk.train.src, disk.train.tgt, strict=True)) == odd_corpus.full
    assert (list(disk.train.src), list(disk.train.tgt)) == (ram.train.src, ram.train.tgt)
    assert (disk.dropped, disk.fingerprint, disk.notes) == (ram.dropped, ram.fingerprint, ram.notes)
    assert disk.train.src[2] == ram.train.src[2]
    assert disk.train.tgt[1:4] == ram.train.tgt[1:4]
    for max_length in (40, None):
        in_ram, in_files = (
            tokenize_pairs(ram.train, tokenizer, max_length),
            map_pairs(disk.train, tokenizer, max_length),
        )
        assert in_ram[1] == in_files[1]
        assert equal_pairs(in_ram[0], in_files[0])


def test_the_fingerprint_does_not_depend_on_the_part_hashed_at_a_time(folder, odd_corpus, monkeypatch):
    source = {"src": str(odd_corpus.src_path), "tgt": str(odd_corpus.tgt_path)}
    whole = both(source)[0].fingerprint
    monkeypatch.setattr(corpus_module, "_PART", 3)
    assert {made.fingerprint for made in both(source)} == {whole}


def test_tsv_and_jsonl_and_gzip_are_the_same_on_disk(folder):
    rows = toy_pairs(50)
    (folder / "t.tsv").write_bytes(gzip.compress("".join(f"x\t{src}\t{tgt}\n" for src, tgt in rows).encode()))
    (folder / "t.jsonl").write_text("".join(json.dumps({"translation": {"en": s, "de": t}}) + "\n" for s, t in rows))
    for source in ({"tsv": "t.tsv", "src_column": 1, "tgt_column": 2}, {"jsonl": "t.jsonl"}):
        ram, disk = both(source)
        assert list(zip(disk.train.src, disk.train.tgt, strict=True)) == rows
        assert disk.fingerprint == ram.fingerprint


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40),
    st.integers(1, 7),
    st.integers(10, 200),
    st.integers(0, 5),
)
def test_batches_of_mapped_ids_are_those_of_memory(tokenizer, lengths, chunk, budget, seed):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("mapped_text", "mapped_pairs"):
            patch.setattr(sys.modules[f"transformer_cli.data.{module}"], "CHUNK", chunk)  # rows in many chunks
        patch.setattr("os.sched_getaffinity", lambda _: {0})
        text = ParallelText(["ab " * src for src, _ in lengths], ["c d " * tgt for _, tgt in lengths])
        Path("train.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in zip(text.src, text.tgt, strict=True)))
        Path("dev.tsv").write_text("a\tb\n")
        _, disk = both({"tsv": "train.tsv"}, src_lang=f"e{chunk}")  # another key for other chunks
        in_ram, in_files = tokenize_pairs(text, tokenizer, 60)[0], map_pairs(disk.train, tokenizer, 60)[0]
    assert isinstance(in_files, MappedPairs)
    assert equal_pairs(in_ram, in_files)
    cuts = [epoch_batches(p.src_lengths, p.tgt_lengths, budget, seed=seed, epoch=1) for p in (in_ram, in_files)]
    assert [batch.tolist() for batch in cuts[0]] == [batch.tolist() for batch in cuts[1]]
    for rows in cuts[0][:3]:
        ours, theirs = collate(in_ram, rows), collate(in_files, rows)
        assert ours.src.equal(theirs.src)
        assert ours.tgt_in.equal(theirs.tgt_in)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("work"))


def test_several_processes_tokenise_in_order(folder, tokenizer, monkeypatch):
    for module in ("mapped_text", "mapped_pairs"):
        monkeypatch.setattr(sys.modules[f"transformer_cli.data.{module}"], "CHUNK", 10)
    (folder / "t.tsv").write_text("".join(f"{src} {i}\t{tgt}\n" for i, (src, tgt) in enumerate(toy_pairs(57))))
    ram, disk = both({"tsv": "t.tsv"})
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    found, _ = map_pairs(disk.train, tokenizer, 60)
    assert len(list(cache_root().glob(f"ids-{key_of(disk.train.key, tokenizer.sha256, 60)}/*.arrow"))) == 2
    assert equal_pairs(found, tokenize_pairs(ram.train, tokenizer, 60)[0])


def test_the_cache_is_found_by_content(folder, tokenizer):
    (folder / "t.tsv").write_text("a b\tc d\n" * 20)
    _, first = both({"tsv": "t.tsv"})
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "u.tsv").write_text("a b\tc d\n" * 20)
    for same in ("t.tsv", str(folder / "elsewhere" / "u.tsv"), ["elsewhere/*.tsv"]):
        assert both({"tsv": same})[1].train.file == first.train.file
    assert both({"tsv": ["t.tsv", "elsewhere/u.tsv"]})[1].train.file != first.train.file
    (folder / "t.tsv").write_text("a x\tc d\n" * 20)  # same size
    _, other = both({"tsv": "t.tsv"})
    assert other.train.src[0] == "a x"
    made = [map_pairs(other.train, tokenizer, length)[0] for length in (60, 4)]
    assert [len(pairs) for pairs in made] == [20, 0]


def test_a_cache_folder_appears_whole_or_not_at_all(monkeypatch, tmp_path):
    monkeypatch.setenv("TFM_CACHE", str(tmp_path / "cache"))

    def fail(made: Path) -> None:
        (made / "half").write_text("")
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        cached("thing-1", fail)
    assert [path.name for path in cache_root().iterdir() if not path.name.endswith(".lock")] == []
    calls = []
    for _ in range(2):
        cached("thing-1", lambda made: calls.append(made))
    assert len(calls) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TFM_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="TFM_CACHE"):
        cached("thing-2", lambda made: None)


def test_what_killed_makers_have_left_is_removed_when_it_is_old(monkeypatch, tmp_path):
    monkeypatch.setenv("TFM_CACHE", str(tmp_path))
    yesterday = time.time() - 25 * 3600
    for name in (".tmp-old", ".tmp-used", ".tmp-new", "text-old"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "half").write_text("")
        for path in (tmp_path / name / "inner" / "half", tmp_path / name / "inner", tmp_path / name):
            if "new" not in name and (name, path.name) != (".tmp-used", "half"):
                os.utime(path, (yesterday, yesterday))
    cached("thing", lambda made: (made / "whole").write_text(""))
    assert {path.name for path in tmp_path.iterdir()} == {".tmp-used", ".tmp-new", "text-old", "thing"}
    assert {path.name for path in (tmp_path / "thing").iterdir()} == {"whole", "sha256.json"}


def test_what_a_killed_maker_has_left_goes_at_once_when_the_same_is_made(monkeypatch, tmp_path):
    monkeypatch.setenv("TFM_CACHE", str(tmp_path))
    for name in (".tmp-thing-x1", ".tmp-things-x1"):
        (tmp_path / name).mkdir()
    cached("thing", lambda made: (made / "whole").write_text(""))
    assert {path.name for path in tmp_path.iterdir()} == {".tmp-things-x1", "thing"}


DAMAGES = {
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: np.random.default_rng(1).bytes(len(content)),
    "one bit": lambda content: content[:-700] + bytes([content[-700] ^ 1]) + content[-699:],
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "gone": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["ids-*/ids.arrow", "text-*/text.arrow", "text-*/dropped.json", "ids-*/sha256.json"])
def test_a_damaged_cache_is_made_anew_and_that_is_said(folder, tokenizer, monkeypatch, damage, file):
    monkeypatch.setenv("TFM_CACHE", str(folder / "cache"))
    (folder / "t.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in [*toy_pairs(60), ("x", "")]))

    def prepared():
        notes = []
        return experiment.prepare(recipe_on("disk", {}), notes.append, tokenizer), notes

    whole, _ = prepared()
    (hurt,) = cache_root().glob(file)
    content = hurt.read_bytes()
    if (change := DAMAGES[damage]) is None:
        hurt.unlink()
    elif len(content) > 700 or damage != "one bit":
        hurt.unlink()  # a new file: what is mapped by the first experiment stays as it is
        hurt.write_bytes(change(content))
    else:
        hurt.write_bytes(content[:-1])
    again, notes = prepared()
    assert [note for note in notes if str(hurt) in note and "is made anew" in note]
    assert equal_pairs(again.train_pairs.plain, whole.train_pairs.plain)
    assert again.dropped == whole.dropped
    assert hurt.read_bytes() == content
    assert [note for note in prepared()[1] if "made anew" in note] == []
    assert [path.name for path in cache_root().iterdir() if path.name.startswith(".tmp")] == []


def test_a_full_disk_is_said_with_its_place_and_leaves_nothing(folder, monkeypatch):
    monkeypatch.setenv("TFM_CACHE", str(folder / "cache"))
    (folder / "t.tsv").write_text("".join(f"{src} {i}\t{tgt}\n" for i, (src, tgt) in enumerate(toy_pairs(500))))
    config = recipe_on("disk", {}).data
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
    try:
        with pytest.raises(DiskFull, match="disk is full") as full:
            load_corpus(config, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (full.value.exit_code, full.value.where) == (2, str(cache_root()))
    assert [path.name for path in cache_root().iterdir() if path.suffix != ".lock"] == []
    assert len(load_corpus(config, 1).train) == 500


def test_where_the_cache_lies(monkeypatch):
    monkeypatch.delenv("TFM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_root() == Path("/x/transformer_cli")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "transformer_cli"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nc\n", "t.tsv:2: has the wrong number of columns"),
        (b"a\tb\nc\xff\td\n", r"t.tsv:2: holds invalid UTF-8 \(byte 0xff\)"),
        (b"a\n", "t.tsv:1: has the wrong number of columns"),
        (b"a\tb\nc\0\td\n", "t.tsv:2: holds a NUL character"),
    ],
)
def test_bad_lines_are_errors_with_their_place(folder, content, message):
    (folder / "t.tsv").write_bytes(content)
    told = []
    for memory in ("ram", "disk"):
        with pytest.raises(DataError, match=message) as caught:
            load_corpus(DataConfig.model_validate({"train": {"tsv": "t.tsv"}, "dev": DEV, "memory": memory}), 1)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_sides_of_other_lengths_are_an_error(folder):
    (folder / "a").write_text("1\n2\n3\n4\n")
    (folder / "b").write_text("1\n2\n")
    for src, tgt, told in (("a", "b", "a: 4 lines, b: 2 lines"), ("b", "a", "b: 2 lines, a: 4 lines")):
        with pytest.raises(DataError, match=told):
            load_corpus(DataConfig.model_validate({"train": {"src": src, "tgt": tgt}, "dev": DEV, "memory": "disk"}), 1)


def test_auto_goes_to_disk_when_files_are_large_and_a_dev_is_there(folder, monkeypatch):
    (folder / "t.tsv").write_text("a b\tc d\n" * 30)
    train = {"tsv": "t.tsv"}
    assert isinstance(load_corpus(DataConfig.model_validate({"train": train, "dev": DEV}), 1).train, ParallelText)
    monkeypatch.setattr(corpus_module, "_LARGE", 100)
    assert isinstance(load_corpus(DataConfig.model_validate({"train": train, "dev": DEV}), 1).train, MappedText)
    (folder / "t.tsv").write_text("".join(f"a {i}\tc d\n" for i in range(30)))
    with_split = load_corpus(DataConfig.model_validate({"train": train}), 1)
    assert isinstance(with_split.train, ParallelText)
    assert "stay in memory because of data.dev: null" in with_split.notes[0]


def recipe_on(memory: str, data: dict, **train: object) -> Config:
    sections = {"data": {"train": {"tsv": "t.tsv"}, "dev": DEV, "memory": memory, **data}}
    return Config.model_validate(
        {"tokenizer": {"vocab_size": 300}, "model": {"d_model": 8}, **sections, "train": {"max_steps": 1, **train}}
    )


def test_filters_and_both_directions_are_the_same_on_disk(folder):
    noise = [("same", "same"), ("two", "δύο"), ("one", ""), ("one two three four five six seven", "x")]
    rows = [pair for real in toy_pairs(40) for pair in (real, *noise)]
    (folder / "t.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in rows), encoding="utf-8")
    filters = {"filter": {"identical": True, "wrong_script": True, "length_ratio": 3}, "max_length": 20}
    ram, disk = (
        experiment.prepare(recipe_on(memory, filters, bidirectional_epochs=1), lambda note: None)
        for memory in ("ram", "disk")
    )
    assert list(disk.dropped.items()) == list(ram.dropped.items())
    assert sum(ram.dropped.values()) >= 4 * 40
    for epoch in (0, 1):
        drawn = [made.train_pairs.pairs(epoch) for made in (ram, disk)]
        assert isinstance(drawn[1], MappedPairs)
        assert len(drawn[0]) == len(ram.train_pairs) * (2 if epoch == 0 else 1)
        assert equal_pairs(*drawn)
    orders = [DataOrder(made.train_pairs, 60, 2, seed=1) for made in (ram, disk)]
    windows = [order.window(Position(1, 2)) for order in orders]
    assert windows[0].target_tokens() == windows[1].target_tokens() > 0
    assert windows[0].padded_tokens() == windows[1].padded_tokens()
    assert [rows.tolist() for rows in windows[0].batches] == [rows.tolist() for rows in windows[1].batches]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_selected_joined_and_reversed_pairs_are_those_of_memory(tokenizer, data):
    lines = data.draw(st.lists(st.text("abc ", min_size=1, max_size=8), min_size=1, max_size=8))
    in_ram, _ = tokenize_pairs(ParallelText(lines, lines[::-1]), tokenizer, None)
    arrays = [pa.array([ids.tolist() for ids in side], pa.list_(pa.int32())) for side in (in_ram.src, in_ram.tgt)]
    mapped = MappedPairs(*(MappedIds([array.slice(0, 3), array.slice(3)]) for array in arrays))
    for step in data.draw(st.lists(st.sampled_from(["select", "join", "reverse"]), max_size=4)):
        if step == "select":
            places = data.draw(st.lists(st.integers(0, len(in_ram) - 1), min_size=1, max_size=6))
            in_ram, mapped = in_ram.select(places), mapped.select(places)
        elif step == "join":
            in_ram, mapped = in_ram + in_ram.reversed(), mapped + mapped.reversed()
        else:
            in_ram, mapped = in_ram.reversed(), mapped.reversed()
    assert isinstance(mapped, MappedPairs)
    assert equal_pairs(in_ram, mapped)


@pytest.mark.parametrize(
    ("data", "train", "key"),
    [
        ({"more_targets": [{"lang": "fr", "train": {"tsv": "t.tsv"}}]}, {}, "data.more_targets"),
        ({"filter": {"duplicates": True}}, {}, "data.filter.duplicates"),
        ({}, {"subword_sampling": 0.1}, "train.subword_sampling"),
    ],
)
def test_what_needs_text_in_memory_is_refused_on_disk_and_keeps_it_there_otherwise(
    folder, monkeypatch, data, train, key
):
    (folder / "t.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs(60)))
    with pytest.raises(ValueError, match=f"memory: disk and {key}.*exclude each other"):
        recipe_on("disk", data, **train)
    monkeypatch.setattr(corpus_module, "_LARGE", 100)
    notes = []
    made = experiment.prepare(recipe_on("auto", data, **train), notes.append)
    assert isinstance(made.corpus.train, ParallelText)
    assert [note for note in notes if f"stay in memory because of {key}" in note]
    assert len(made.train_pairs.pairs(0)) > 40


@pytest.mark.parametrize(
    "keys", [{"corpus": "phrasebook"}, {"train": {"tsv": "a"}}, {"train": {"hub": "x"}, "dev": DEV}]
)
def test_disk_where_it_means_nothing_is_refused(keys, tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(json.dumps({"data": {**keys, "memory": "disk"}, "train": {"max_steps": 1}}))
    with pytest.raises(ConfigError, match="memory: disk needs"):
        load_recipe(str(recipe), [])


def test_the_tokenizer_learns_from_a_seeded_sample(folder, monkeypatch):
    text = ParallelText([str(i) for i in range(100)], [str(-i) for i in range(100)])
    assert experiment.sample(text, 100, 1) is text
    drawn = experiment.sample(text, 30, 1)
    assert len(set(drawn.src)) == 30
    assert list(map(int, drawn.src)) == sorted(map(int, drawn.src)) == [-int(tgt) for tgt in drawn.tgt]
    assert drawn == experiment.sample(text, 30, 1) != experiment.sample(text, 30, 2)
    (folder / "t.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs(60)))
    monkeypatch.setattr(experiment, "TOKENIZER_SENTENCES", 40)
    made = []
    for memory in ("ram", "disk"):
        data = {"train": {"tsv": "t.tsv"}, "dev": DEV, "memory": memory}
        config = Config.model_validate(
            {"data": data, "train": {"max_steps": 1}, "tokenizer": {"vocab_size": 300}, "model": {"d_model": 8}}
        )
        notes = []
        made.append(experiment.prepare(config, notes.append))
        assert any("learns from 20 of 60 pairs" in note for note in notes)
    assert made[0].tokenizer.sha256 == made[1].tokenizer.sha256
    assert equal_pairs(made[0].train_pairs.plain, made[1].train_pairs.plain)
