"""Scores: the right tokenizer, the right refusals, intervals and comparisons."""

import importlib.util
import json
import random

import pytest

from transformer_cli.data.languages import units
from transformer_cli.errors import DataError, UserError
from transformer_cli.evaluation import bleu_tokenizer, by_length, check_metrics, compare, score, worst_lines
from transformer_cli.evaluation.scores import _affordable

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree", "and", "then", "slept", "quietly"]


def sentences(seed: int, count: int, damage: float = 0.0) -> list[str]:
    draw, noise = random.Random(1), random.Random(seed)
    lines = [[draw.choice(WORDS) for _ in range(draw.randint(4, 12))] for _ in range(count)]
    return [" ".join(noise.choice(WORDS) if noise.random() < damage else word for word in line) for line in lines]


@pytest.mark.parametrize(
    ("code", "tokenizer"),
    [("de", "13a"), ("", "13a"), ("zh", "zh"), ("zh-CN", "zh"), ("ZH_tw", "zh"), ("cmn", "zh"), ("ja", "ja-mecab"),
     ("jpn", "ja-mecab"), ("ko", "ko-mecab"), ("zha", "13a")],
)  # fmt: skip
def test_tokenizer_follows_the_target_language(code, tokenizer):
    assert bleu_tokenizer(code) == tokenizer


def test_chinese_is_scored_by_characters():
    refs, hyps = ["我弟弟正在机场帮助孩子。"], ["我弟弟正在机场帮助朋友。"]
    chinese, german = (score(hyps, [refs], tgt_lang=lang)[0] for lang in ("zh", "de"))
    assert chinese.value > 60
    assert german.value < 1  # the sentence is one word
    assert "tok:zh" in chinese.signature
    assert "tok:13a" in german.signature
    ter = score(hyps, [refs], tgt_lang="zh", metrics=["ter"])[0]
    assert "asian:yes" in ter.signature
    assert 0 < ter.value < 30


def test_tokenizer_and_case_can_be_chosen():
    refs, hyps = ["The Cat sat on the mat ."], ["the cat sat on the mat ."]
    cased = score(hyps, [refs], tgt_lang="en", metrics=["bleu", "chrf"])
    lower = score(hyps, [refs], tgt_lang="en", metrics=["chrf", "bleu"], lowercase=True)
    assert [s.name for s in cased] == [s.name for s in lower] == ["BLEU", "chrF2"]
    assert all(a.value < b.value == pytest.approx(100) for a, b in zip(cased, lower, strict=True))
    assert "case:lc" in lower[0].signature
    assert "tok:intl" in score(hyps, [refs], tgt_lang="en", tokenize="intl")[0].signature


@pytest.mark.parametrize(("code", "extra", "module"), [("ja", "ja", "MeCab"), ("ko", "ko", "mecab_ko")])
def test_missing_tokenizer_says_how_to_install_it(code, extra, module):
    if importlib.util.find_spec(module):
        pytest.skip("the tokenizer is installed here")
    with pytest.raises(UserError, match=rf'pip install "sacrebleu\[{extra}\]"'):
        check_metrics(["bleu"], tgt_lang=code, tokenize=None)


@pytest.mark.parametrize(("metrics", "tokenize"), [(["bleu", "comet"], None), ([], None), (["bleu"], "13b")])
def test_unknown_metric_or_tokenizer(metrics, tokenize):
    with pytest.raises(UserError, match="unknown"):
        check_metrics(metrics, tgt_lang="de", tokenize=tokenize)


def test_counts_are_named_when_they_differ():
    with pytest.raises(DataError, match="hypotheses: 2, reference 1: 2, reference 2: 1"):
        score(["a", "b"], [["a", "b"], ["a"]], tgt_lang="de")
    with pytest.raises(DataError, match="there are no lines"):
        score([], [[]], tgt_lang="de")


def test_interval_comes_from_the_bootstrap_and_changes_no_score():
    refs, hyps = sentences(1, 200), sentences(2, 200, damage=0.3)
    plain, sampled = (score(hyps, [refs], tgt_lang="en", n_bootstrap=n)[0] for n in (0, 300))
    assert plain.value == sampled.value
    assert plain.interval is None
    assert sampled.mean == pytest.approx(sampled.value, abs=1)
    assert 0.5 < sampled.interval < 10
    assert "bs:300|seed:12345" in sampled.signature
    assert str(plain) == f"{plain.value:.2f}"
    assert str(sampled).startswith(f"{plain.value:.2f} (95 %: μ = ")
    assert sampled.json()["confidence_var"] == round(sampled.interval, 2)
    json.dumps(sampled.json())


def test_resamples_of_many_lines_stay_in_memory():
    assert _affordable(1000, 1000) == 1000
    assert _affordable(1000, 40_000) == 125
    assert _affordable(1000, 10_000_000) == 100
    assert _affordable(0, 10_000_000) == 0


def test_empty_hypotheses_have_a_score():
    result = score(["", ""], [["a b", "c d"]], tgt_lang="de", metrics=["bleu", "chrf", "ter"], n_bootstrap=10)
    assert [s.value for s in result] == [0, 0, 100]


def test_comparison_tells_a_better_system_from_the_same():
    refs, good, bad = sentences(1, 200), sentences(2, 200, damage=0.2), sentences(3, 200, damage=0.5)
    better = compare(good, bad, [refs], tgt_lang="en", metrics=["bleu", "chrf"], n_bootstrap=200)
    assert [found.name for found in better] == ["BLEU", "chrF2"]
    assert all(found.value > found.other_value and found.p_value < 0.05 for found in better)
    assert better[0].value == score(good, [refs], tgt_lang="en")[0].value
    assert better[0].other_value == score(bad, [refs], tgt_lang="en")[0].value
    assert "bs:200" in better[0].signature
    same = compare(good, good, [refs], tgt_lang="en", n_bootstrap=200)[0]
    assert same.value == same.other_value
    assert same.p_value == 1


def test_buckets_hold_every_line_once_and_score_it():
    refs, hyps = sentences(1, 60), sentences(2, 60, damage=0.3)
    sources = [" ".join(["x"] * n) for n in [0, 5, 6, 50, 51, 200] * 10]
    buckets = by_length(hyps, [refs], sources, lang="en", tgt_lang="en")
    assert [(bucket.lengths, bucket.lines) for bucket in buckets] == [
        ("0-5", 20),
        ("6-10", 10),
        ("31-50", 10),
        ("over 50", 20),
    ]
    chosen = [i for i, line in enumerate(sources) if len(line.split()) > 50]
    alone = score([hyps[i] for i in chosen], [[refs[i] for i in chosen]], tgt_lang="en")[0]
    assert {bucket.unit for bucket in buckets} == {"words"}
    assert buckets[-1].bleu == alone.value
    assert buckets[-1].signature == alone.signature


def test_length_is_counted_in_characters_without_spaces():
    assert units("我 弟弟", "zh-CN") == ["我", "弟", "弟"]
    assert units("my brother", "en") == ["my", "brother"]


def test_worst_lines_are_the_worst():
    refs, hyps = ["a good line", "another good line", "third", "fourth"], ["a good line", "nonsense", "", "fourth"]
    worst = worst_lines(hyps, [refs], ["s1", "s2", "s3", "s4"], count=3)
    assert [line.number for line in worst] == [3, 2, 1]
    assert (worst[0].source, worst[0].references, worst[0].hypothesis, worst[0].chrf) == ("s3", ["third"], "", 0)
    assert worst_lines(hyps, [refs], None)[0].source is None
