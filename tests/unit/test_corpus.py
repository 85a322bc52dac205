import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_cli.config import DataConfig
from transformer_cli.data.corpus import load_corpus, load_split
from transformer_cli.data.left_out import drop_table
from transformer_cli.data.pairs import ParallelText
from transformer_cli.errors import DataError


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return str(path)


def config(train: dict[str, object], **keys: object) -> DataConfig:
    return DataConfig.model_validate({"train": train, **keys})


def text_source(folder: Path, name: str, pairs: list[tuple[str, str]]) -> dict[str, object]:
    return {
        "src": write(folder / f"{name}.en", *(src for src, _ in pairs)),
        "tgt": write(folder / f"{name}.de", *(tgt for _, tgt in pairs)),
    }


def numbered(start: int, stop: int) -> list[tuple[str, str]]:
    return [(f"source {i}", f"Ziel {i}") for i in range(start, stop)]


@pytest.fixture
def dev(tmp_path: Path) -> dict[str, object]:
    return text_source(tmp_path, "dev", [("dev", "Entwicklung")])


def loaded(train: dict[str, object], dev: dict[str, object], **keys: object) -> list[tuple[str, str]]:
    text = load_corpus(config(train, dev=dev, **keys), 1).train
    return list(zip(text.src, text.tgt, strict=True))


# Every kind of source -------------------------------------------------------------------------------------------


def test_every_kind_of_source_gives_the_same_pairs(tmp_path: Path, dev: dict[str, object]) -> None:
    pairs = [('a "quote', "ein “Zitat"), ("b\u2028b", "b\x85b"), (" spaces  ", "　空白")]
    tsv = write(tmp_path / "t.tsv", *(f"{src}\t{tgt}\tCC-BY 2.0 #1" for src, tgt in pairs))
    odd_tsv = write(tmp_path / "u.tsv", *(f"{tgt}\tx\t{src}" for src, tgt in pairs))
    jsonl = write(tmp_path / "j.jsonl", *(json.dumps({"en": src, "de": tgt}) for src, tgt in pairs))
    fields = write(tmp_path / "k.jsonl", *(json.dumps({"q": src, "a": tgt}, ensure_ascii=False) for src, tgt in pairs))
    nested = write(tmp_path / "l.jsonl", *(json.dumps({"translation": {"en": s, "de": t}}) for s, t in pairs))
    packed = tmp_path / "p.tsv.gz"
    packed.write_bytes(gzip.compress(Path(tsv).read_bytes()))
    for source in (
        text_source(tmp_path, "text", pairs),
        {"tsv": tsv},
        {"tsv": str(packed)},
        {"tsv": odd_tsv, "src_column": 2, "tgt_column": 0},
        {"tsv": odd_tsv, "src_column": "2", "tgt_column": "0"},
        {"jsonl": jsonl},
        {"jsonl": fields, "src_field": "q", "tgt_field": "a"},
        {"jsonl": nested},
    ):
        assert loaded(source, dev) == pairs, source


def test_globs_are_sorted_and_paired_file_by_file(tmp_path: Path, dev: dict[str, object]) -> None:
    for name in ("b", "a", "c"):
        text_source(tmp_path, name, [(f"src {name}", f"tgt {name}")])
    source: dict[str, object] = {"src": str(tmp_path / "[abc].en"), "tgt": str(tmp_path / "[abc].de")}
    assert loaded(source, dev) == [(f"src {n}", f"tgt {n}") for n in "abc"]
    listed = {side: [str(tmp_path / f"{n}.{lang}") for n in "ca"] for side, lang in (("src", "en"), ("tgt", "de"))}
    assert loaded(listed, dev) == [(f"src {n}", f"tgt {n}") for n in "ca"]


def test_a_path_with_glob_characters_is_a_path_first(tmp_path: Path, dev: dict[str, object]) -> None:
    assert loaded(text_source(tmp_path, "[x]", [("a", "b")]), dev) == [("a", "b")]


def test_the_phrasebook_reads_in_every_direction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "phrasebook"
    folder.mkdir()
    for split in ("train", "dev", "test", "handwritten.test"):
        row = "\t".join([f"{split} en", f"{split} de", f"{split} zh", "grammar:1"])
        (folder / f"{split}.tsv.gz").write_bytes(gzip.compress(f"{row}\n".encode()))
    monkeypatch.setattr("transformer_cli.data.corpus.shipped", lambda name: tmp_path)
    for src, tgt in (("en", "de"), ("zh", "en"), ("de", "zh")):
        direction = DataConfig(corpus="phrasebook", src_lang=src, tgt_lang=tgt)
        corpus = load_corpus(direction, 1)
        assert corpus.train == ParallelText([f"train {src}"], [f"train {tgt}"])
        assert corpus.test == ParallelText([f"test {src}"], [f"test {tgt}"])
        assert load_split(direction, "handwritten", 1) == ParallelText(
            [f"handwritten.test {src}"], [f"handwritten.test {tgt}"]
        )


# Hub data sets --------------------------------------------------------------------------------------------------


@pytest.fixture
def closed_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.mark.usefixtures("closed_proxy")
def test_a_local_hub_folder_is_read_without_network_and_without_a_stale_cache(
    tmp_path: Path, dev: dict[str, object]
) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    file = folder / "train.jsonl"
    write(file, *(json.dumps({"translation": {"en": f"e{i}", "de": f"d{i}"}, "id": i}) for i in range(3)))
    before = file.stat()
    assert loaded({"hub": str(folder)}, dev) == [(f"e{i}", f"d{i}") for i in range(3)]
    assert loaded({"hub": str(folder), "split": "train[:2]"}, dev) == [("e0", "d0"), ("e1", "d1")]
    file.write_bytes(file.read_bytes().replace(b"e1", b"E1"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert loaded({"hub": str(folder)}, dev)[1] == ("E1", "d1")


@pytest.mark.usefixtures("closed_proxy")
def test_hub_columns_and_hub_mistakes(tmp_path: Path, dev: dict[str, object]) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    write(folder / "train.csv", "question,answer,count", '"a, b",c,1', "d,e,2")
    columns = {"src_column": "question", "tgt_column": "answer"}
    assert loaded({"hub": str(folder), **columns}, dev) == [("a, b", "c"), ("d", "e")]
    for keys, message in (
        ({}, "has no columns 'en' and 'de'\n  got: columns 'question', 'answer', 'count'"),
        ({"src_column": "question"}, "row 1:de: there is no such field"),
        ({"src_column": "question", "tgt_column": "count"}, "row 1:count: is not text"),
        ({"split": "nope", **columns}, 'Unknown split "nope"'),
        ({"config": "nope", **columns}, "nope"),
    ):
        with pytest.raises(DataError, match=message):
            loaded({"hub": str(folder), **keys}, dev)


def test_local_files_import_no_datasets_and_open_no_socket(tmp_path: Path) -> None:
    keys = {"train": {"tsv": write(tmp_path / "t.tsv", *(f"a {i}\tb" for i in range(20)))}}
    program = (
        "import json, socket, sys\n"
        "def refuse(*args): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from transformer_cli.config import DataConfig\n"
        "from transformer_cli.data.corpus import load_corpus\n"
        "load_corpus(DataConfig.model_validate(json.loads(sys.argv[1])), 1)\n"
        "print(sorted({'datasets', 'huggingface_hub', 'pyarrow', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, json.dumps(keys)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# User mistakes --------------------------------------------------------------------------------------------------


def test_unequal_counts_name_both_files_and_both_counts(tmp_path: Path, dev: dict[str, object]) -> None:
    source = {"src": write(tmp_path / "a.en", "1", "2", "3"), "tgt": write(tmp_path / "a.de", "1", "2")}
    with pytest.raises(DataError) as caught:
        loaded(source, dev)
    assert caught.value.got == f"{source['src']}: 3 lines, {source['tgt']}: 2 lines"
    with pytest.raises(DataError, match="different numbers of files"):
        loaded({"src": [source["src"], source["src"]], "tgt": source["tgt"]}, dev)


@pytest.mark.parametrize(
    ("name", "lines", "keys", "where", "message"),
    [
        ("x.tsv", ["a\tb", "a"], {}, ":2", "got: 1 column"),
        ("x.tsv", ["a\tb", "a\tb\tc"], {}, ":2", "expected: 2, as in line 1"),
        ("x.tsv", ["a\tb", ""], {}, ":2", "wrong number of columns"),
        ("x.tsv", ["a b"], {}, ":1", "expected: at least 2"),
        ("x.tsv", ["a\tb"], {"tgt_column": 3}, ":1", "expected: at least 4"),
        ("x.jsonl", ['{"en": "a", "de": "b"}', "{"], {}, ":2", "not a JSON object"),
        ("x.jsonl", ['{"en": "a", "de": "b"}', ""], {}, ":2", "not a JSON object"),
        ("x.jsonl", ["[1]"], {}, ":1", "got: list"),
        ("x.jsonl", ["null"], {}, ":1", "got: null"),
        ("x.jsonl", ["[" * 100_000], {}, ":1", "not a JSON object"),
        ("x.jsonl", ['{"en": "a"}'], {}, ":1:de", "no such field"),
        ("x.jsonl", ['{"en": "a", "de": null}'], {}, ":1:de", "is not text"),
        ("x.jsonl", ['{"en": 3, "de": "b"}'], {}, ":1:en", "is not text"),
        ("x.jsonl", ['{"en": "a", "de": "\\u0000"}'], {}, ":1:de", "NUL"),
        ("x.jsonl", ['{"en": "\\ud800", "de": "b"}'], {}, ":1:en", "half a surrogate"),
    ],
)
def test_a_bad_line_is_named(
    tmp_path: Path,
    dev: dict[str, object],
    name: str,
    lines: list[str],
    keys: dict[str, object],
    where: str,
    message: str,
) -> None:
    path = write(tmp_path / name, *lines)
    with pytest.raises(DataError, match=message) as caught:
        loaded({name.partition(".")[2]: path, **keys}, dev)
    assert caught.value.where == path + where


def test_a_surrogate_pair_in_json_is_a_character(tmp_path: Path, dev: dict[str, object]) -> None:
    assert loaded({"jsonl": write(tmp_path / "x", r'{"en": "\ud83d\ude00", "de": "b"}')}, dev) == [("😀", "b")]


def test_a_pattern_without_files_and_an_unknown_split_are_user_errors(tmp_path: Path, dev: dict[str, object]) -> None:
    with pytest.raises(DataError, match="no such file"):
        loaded({"tsv": str(tmp_path / "*.nothing")}, dev)
    with pytest.raises(DataError, match="expected: train, dev\n"):
        load_split(config(dev), "test", 1)
    with pytest.raises(DataError, match="expected: train, dev, test, handwritten\n"):
        load_split(DataConfig(corpus="phrasebook"), "valid", 1)


def test_nothing_left_shows_the_table(tmp_path: Path, dev: dict[str, object]) -> None:
    empty = text_source(tmp_path, "empty", [("a", ""), ("\u3000", "b"), ("\xa0", "\x1c")])
    with pytest.raises(DataError) as caught:
        load_corpus(config(empty, dev=dev), 1)
    assert "no training pair is left" in str(caught.value)
    assert "one side is empty" in str(caught.value)
    with pytest.raises(DataError, match="no training pair is left"):
        load_corpus(config(text_source(tmp_path, "same", [("a", "b")] * 30)), 1)
    with pytest.raises(DataError, match="dev set has no pairs"):
        load_corpus(config(dev, dev=text_source(tmp_path, "none", [])), 1)
    with pytest.raises(DataError, match="split 'test' has no pairs"):
        load_split(config(dev, test=text_source(tmp_path, "none", [])), "test", 1)


def test_drop_table_adds_up() -> None:
    assert drop_table(1000, {"one side is empty": 2, "too long": 30}).split() == (
        ["read", "1,000", "-", "one", "side", "is", "empty", "2", "-", "too", "long", "30", "left", "968"]
    )


# Filtering, splitting, overlap ----------------------------------------------------------------------------------


def test_pairs_with_an_empty_side_leave_as_pairs(odd_corpus, dev: dict[str, object]) -> None:
    source = {"src": str(odd_corpus.src_path), "tgt": str(odd_corpus.tgt_path)}
    corpus = load_corpus(config(source, dev=dev), 1)
    assert list(zip(corpus.train.src, corpus.train.tgt, strict=True)) == odd_corpus.full
    assert corpus.dropped == {"one side is empty": len(odd_corpus.src) - len(odd_corpus.full)}


def test_given_dev_and_test_stay_untouched(odd_corpus, tmp_path: Path) -> None:
    source = {"src": str(odd_corpus.src_path), "tgt": str(odd_corpus.tgt_path)}
    keys = config(text_source(tmp_path, "train", numbered(0, 5)), dev=source, test=source)
    corpus = load_corpus(keys, 1)
    assert corpus.dev == corpus.test == ParallelText(odd_corpus.src, odd_corpus.tgt)
    assert load_split(keys, "test", 1) == load_split(keys, "dev", 1) == corpus.test


def test_a_made_dev_set_shares_no_source_line_with_train(tmp_path: Path) -> None:
    pairs = numbered(0, 100) + [(f"source {i}", f"anders {i}") for i in range(100)]
    keys = config(text_source(tmp_path, "train", pairs), dev_size=7)
    corpus = load_corpus(keys, 1)
    assert len(corpus.dev) == 7
    assert not set(corpus.dev.src) & set(corpus.train.src)
    assert corpus.dropped == {"one side is empty": 0, "source line is in the dev split": 7}
    assert len(corpus.train) == 186
    assert not corpus.notes
    assert load_split(keys, "dev", 1) == corpus.dev
    assert load_split(keys, "train", 1) == corpus.train


def test_a_made_dev_set_is_at_most_a_tenth_and_follows_seed_and_content(tmp_path: Path) -> None:
    source = text_source(tmp_path, "train", numbered(0, 100))
    first, again, other = (load_corpus(config(source), seed) for seed in (1, 1, 2))
    assert len(first.dev) == 10
    assert first == again
    assert first.dev.src[:3] == ["source 5", "source 40", "source 41"]  # the same in every process, on every machine
    assert first.dev != other.dev
    assert first.fingerprint != other.fingerprint
    assert len(load_corpus(config(text_source(tmp_path, "few", numbered(0, 3))), 1).dev) == 1


def test_overlap_is_counted_and_told(tmp_path: Path) -> None:
    train, dev, test = (
        numbered(0, 10),
        [*numbered(8, 12), ("", "")],
        [("source 9", "anders"), ("source 11", "Ziel 11"), ("", "")],
    )
    keys = {"dev": text_source(tmp_path, "d", dev), "test": text_source(tmp_path, "e", test)}
    assert load_corpus(config(text_source(tmp_path, "t", train), **keys), 1).notes == [
        "2 of 5 dev source lines are also in train (2 as the same pair)",
        "1 of 3 test source lines is also in train (0 as the same pair)",
        "2 of 3 test source lines are also in dev (1 as the same pair)",
    ]


def test_an_edit_of_equal_size_and_time_changes_the_fingerprint(tmp_path: Path) -> None:
    source = text_source(tmp_path, "train", numbered(0, 50))
    path = Path(str(source["tgt"]))
    before, fingerprint = path.stat(), load_corpus(config(source), 1).fingerprint
    path.write_bytes(path.read_bytes().replace(b"Ziel 7\n", b"Ziel X\n"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert load_corpus(config(source), 1).fingerprint != fingerprint


def test_a_line_that_changes_sides_or_pairs_changes_the_fingerprint(tmp_path: Path, dev: dict[str, object]) -> None:
    variants = [
        [("a", "b"), ("c", "d")],
        [("a", "d"), ("c", "b")],
        [("b", "a"), ("c", "d")],
        [("c", "d"), ("a", "b")],
        [("ac", "bd")],
        [("ab", "x"), ("c", "x")],
        [("a", "x"), ("bc", "x")],
    ]
    prints = {load_corpus(config(text_source(tmp_path, "v", v), dev=dev), 1).fingerprint for v in variants}
    assert len(prints) == len(variants)


def test_scoring_reads_leniently_and_names_the_lines(tmp_path: Path, dev: dict[str, object]) -> None:
    src, tgt = tmp_path / "x.en", tmp_path / "x.de"
    src.write_bytes(b"ok\n\xff\nok\0\n")
    tgt.write_bytes(b"gut\nb\xc3\ngut")
    keys = config(dev, dev=dev, test={"src": str(src), "tgt": str(tgt)})
    notes: list[str] = []
    text = load_split(keys, "test", 1, notes.append)
    assert text == ParallelText(["ok", "\ufffd", "ok\ufffd"], ["gut", "b\ufffd", "gut"])
    assert notes == [f"invalid UTF-8 or NUL became U+FFFD in 3 lines: {src}:2, {src}:3, {tgt}:2"]
    assert [note for note in load_corpus(keys, 1).notes if "U+FFFD" in note] == notes
    with pytest.raises(DataError, match=r"x\.en:2: holds invalid UTF-8"):
        load_corpus(config({"src": str(src), "tgt": str(tgt)}, dev=dev), 1)
    jsonl = write(tmp_path / "x.jsonl", r'{"en": "a\ud800", "de": "\u0000"}')
    assert load_split(config(dev, test={"jsonl": jsonl}), "test", 1) == ParallelText(["a\ufffd"], ["\ufffd"])
