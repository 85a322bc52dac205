"""What the filters take for noise, and that they count it and leave dev and test alone."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from transformer_cli.config import DataConfig
from transformer_cli.data.corpus import load_corpus, load_split
from transformer_cli.data.filters import WRITTEN_IN, is_in_other_script, of_like_length
from transformer_cli.errors import DataError
from transformer_cli.experiment import prepare
from transformer_cli.recipe import load_recipe

NOISE = [("same", "same"), ("one", "ένα"), ("two", "zwei"), ("two", "zwei"), ("two", "Zwei")]
ALL = {"identical": True, "duplicates": True, "wrong_script": True}


def config(folder: Path, filters: dict, *, dev: bool = True, pairs: list[tuple[str, str]] = NOISE) -> DataConfig:
    path = folder / "train.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    source = {"tsv": str(path)}
    return DataConfig.model_validate({"train": source, "filter": filters} | ({"dev": source} if dev else {}))


@pytest.mark.parametrize(
    ("filters", "left", "counts"),
    [
        ({}, [0, 1, 2, 3, 4], {}),
        ({"identical": True}, [1, 2, 3, 4], {"source and target are the same": 1}),
        ({"wrong_script": True}, [0, 2, 3, 4], {"in another script than the language": 1}),
        ({"duplicates": True}, [0, 1, 2, 4], {"repeats an earlier pair": 1}),
        (
            ALL,
            [2, 4],
            {
                "source and target are the same": 1,
                "in another script than the language": 1,
                "repeats an earlier pair": 1,
            },
        ),
    ],
)
def test_each_filter_takes_its_own_and_counts_it(tmp_path, filters, left, counts) -> None:
    keys = config(tmp_path, filters)
    corpus = load_corpus(keys, 1)
    assert list(zip(corpus.train.src, corpus.train.tgt, strict=True)) == [NOISE[i] for i in left]
    assert corpus.dropped == {"one side is empty": 0} | counts
    assert len(corpus.dev) == len(NOISE)
    assert load_split(keys, "train", 1) == corpus.train
    assert len(load_split(keys, "dev", 1)) == len(NOISE)


def test_a_dev_set_split_from_train_is_the_same_with_filters(tmp_path) -> None:
    pairs = [(f"s{i}", f"s{i}" if i % 2 else "ζ") for i in range(60)]
    plain, filtered = (load_corpus(config(tmp_path, f, dev=False, pairs=pairs), 1) for f in ({}, {"identical": True}))
    assert filtered.dev == plain.dev
    assert len(filtered.train) < len(plain.train)


@pytest.mark.parametrize(
    ("text", "language", "is_wrong"),
    [
        ("Guten Tag", "de", False),
        ("Добрый день", "de", True),
        ("Добрый день", "ru-RU", False),
        ("Добрый день", "xx", False),
        ("Dobar dan", "sr_Latn", False),
        ("我用Twitter。", "zh", False),
        ("Tom游泳。", "zh-Hans", False),
        ("他是John Smith", "zh", False),
        ("I use it, 我", "zh", True),
        ("I use 我", "en", False),
        ("ｆｕｌｌｗｉｄｔｈ", "en", False),
        ("ﾊﾛｰ", "ja", False),
        ("ハローワールド", "ja", False),
        ("e\u0301te\u0301 а б", "fr", True),
        ("e\u0301te\u0301 а", "fr", False),
        ("123, 4!", "de", False),
        ("", "de", False),
    ],
)
def test_scripts(text: str, language: str, is_wrong: bool) -> None:
    assert is_in_other_script(text, language) is is_wrong


def test_either_side_may_be_the_wrong_one(tmp_path) -> None:
    pairs = [("ένα", "eins"), ("one", "ένα"), ("one", "eins")]
    corpus = load_corpus(config(tmp_path, {"wrong_script": True}, pairs=pairs), 1)
    assert corpus.train.src == ["one"]
    assert corpus.train.tgt == ["eins"]


def test_every_script_is_the_name_of_letters() -> None:
    names = {unicodedata.name(chr(i), "").split(" ")[0].split("-")[0] for i in range(0x3000, 0xFFFF)}
    names |= {unicodedata.name(chr(i), "").split(" ")[0] for i in range(0x3000)}
    assert set(WRITTEN_IN) <= names


def test_like_length_counts_the_longer_side_against_the_shorter() -> None:
    src, tgt = np.array([[2, 6, 2, 7, 3], [6, 2, 7, 2, 3]], dtype=np.int32)
    assert of_like_length(src, tgt, 3) == [0, 1, 4]
    assert of_like_length(src, tgt, 3.5) == [0, 1, 2, 3, 4]
    assert of_like_length(src, tgt, 1) == [4]


def test_a_filter_that_leaves_nothing_says_what_it_took(tmp_path) -> None:
    with pytest.raises(DataError, match=r"no training pair is left(.|\n)*source and target are the same +1"):
        load_corpus(config(tmp_path, {"identical": True}, pairs=NOISE[:1]), 1)


def test_sampled_pairs_are_those_that_the_length_filter_left(tmp_path) -> None:
    pairs = [(f"a few words number {i}", f"ein paar Wörter Nummer {i}" if i % 3 else "x") for i in range(60)]
    keys = config(tmp_path, {"length_ratio": 3}, pairs=pairs)
    recipe = [f"data={keys.model_dump_json()}", "tokenizer.vocab_size=300", "train.subword_sampling=0.3"]
    made = prepare(load_recipe("base.yaml", recipe), lambda note: None)
    assert made.dropped["lengths differ by more than data.filter.length_ratio 3"] == 20
    drawn = made.train_pairs.pairs(0)
    assert [made.tokenizer.decode(ids) for ids in drawn.tgt] == [tgt for _, tgt in pairs if tgt != "x"]
    assert [made.tokenizer.decode(ids) for ids in drawn.src] == [src for src, tgt in pairs if tgt != "x"]
