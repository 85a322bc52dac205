"""The search that ``tfm translate`` can be asked for."""

import json
from pathlib import Path

import pytest
from command_line import Tfm

from transformer_cli.arguments.shared import LARGEST, WIDEST
from transformer_cli.decoding import ensemble, settings
from transformer_cli.errors import UserError

TEXTS = ["one cats sleep.", "two dogs wait.", "six books fall."]


def test_samples_are_those_of_seed_and_line(tfm: Tfm, run: Path) -> None:
    draw = ["translate", "--run", run, "--sample", "--n-best", 4, "--format", "jsonl", "--temperature", 3]
    first, again, other = (tfm(*draw, *seed, *TEXTS).lines for seed in ([], ["--seed", 1], ["--seed", 2]))
    assert first == again != other
    assert [len(json.loads(line)["translations"]) for line in first] == [4, 4, 4]
    assert tfm(*draw, "--batch-size", 1, *TEXTS).lines == first
    fewer = [*draw[:5], 1, *draw[6:]]
    for line, few in zip(first, tfm(*fewer, *TEXTS).lines, strict=True):
        assert json.loads(few)["translation"] in [h["text"] for h in json.loads(line)["translations"]]


def test_batches_that_are_chosen_for_the_device_change_no_text_and_are_told_once(tfm: Tfm, run: Path) -> None:
    plain = tfm("translate", "--run", run, *TEXTS)
    chosen = tfm("translate", "--run", run, "--batch-tokens", "auto", *TEXTS)
    assert chosen.out == plain.out
    told = "side by side: at most 51 sentences, 4,096 source tokens (256 hypotheses on a CPU)"
    assert [line for line in chosen.err.splitlines() if line not in plain.err] == [told]
    assert tfm("translate", "--run", run, "--batch-tokens", "auto", "-q", *TEXTS).err == ""


@pytest.mark.parametrize("wrong", ["0", "many", "-1"])
def test_batch_tokens_are_a_number_or_auto(tfm: Tfm, run: Path, wrong: str) -> None:
    done = tfm("translate", "--run", run, "--batch-tokens", wrong, *TEXTS)
    assert done.code == 2
    assert f"--batch-tokens is not valid\n  got: {wrong}\n  expected: auto, or a whole number of at least 1" in done.err
    done = tfm("translate", "--run", run, "--engine", "ctranslate2", "--batch-tokens", "auto", *TEXTS)
    assert done.code == 2
    assert "the engine ctranslate2 does not know --batch-tokens auto" in done.err


@pytest.mark.parametrize("changes", [["--top-k", 1], ["--top-p", 0.000001], ["--temperature", 0.01]], ids=str)
def test_what_leaves_no_choice_is_greedy_search(tfm: Tfm, run: Path, changes: list[object]) -> None:
    greedy = tfm("translate", "--run", run, "-b", 1, *TEXTS).lines
    assert tfm("translate", "--run", run, "--sample", *changes, *TEXTS).lines == greedy


def test_normalisation_and_early_stopping_reach_the_search(tfm: Tfm, run: Path) -> None:
    ask = ["translate", "--run", run, "--json", TEXTS[0], "-b", 1]
    plain = tfm(*ask, "--length-normalization", "plain", "--early-stopping").json
    usual = tfm(*ask).json
    for found, how in ((plain, ("plain", True)), (usual, ("gnmt", False))):
        assert (found["decode"]["length_normalization"], found["decode"]["early_stopping"]) == how
    length = len(usual["translations"][0]["tokens"]) + 1
    assert plain["translations"][0]["tokens"] == usual["translations"][0]["tokens"]
    expected = usual["translations"][0]["score"] * ((5 + length) / 6) / length
    assert plain["translations"][0]["score"] == pytest.approx(expected)


def test_no_part_of_a_translation_recurs_if_that_is_forbidden(tfm: Tfm, run: Path) -> None:
    ask = ["translate", "--run", run, "-b", 1, "--format", "jsonl", "--min-length", 30, *TEXTS]
    for n, options in ((2, []), (2, ["--no-repeat-ngram", 2]), (1, ["--no-repeat-ngram", 1])):
        found = [json.loads(line)["tokens"] for line in tfm(*ask, *options).lines]
        recur = [
            len(rows) > len(set(rows))
            for rows in (list(zip(*(of[i:] for i in range(n)), strict=False)) for of in found)
        ]
        assert any(recur) != bool(options)


def test_mbr_takes_one_of_its_samples(tfm: Tfm, run: Path) -> None:
    how = ["translate", "--run", run, "--temperature", 2, "--format", "jsonl"]
    drawn = [json.loads(line) for line in tfm(*how, "--sample", "--n-best", 8, *TEXTS).lines]
    chosen = [json.loads(line) for line in tfm(*how, "--mbr", 8, *TEXTS).lines]
    for samples, best in zip(drawn, chosen, strict=True):
        assert best["translation"] in [h["text"] for h in samples["translations"]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--temperature", 2], "--temperature is about samples"),
        (["--seed", 1, "--top-k", 0], "--top-k, --seed is about samples"),
        (["--top-p", 1], "--top-p is about samples"),
        (["--sample", "--beam-size", 3], "--beam-size is about beam search"),
        (["--mbr", 4, "--no-early-stopping"], "--early-stopping is about beam search"),
        (["--sample", "--mbr", 4], "--mbr draws its own samples"),
        (["--mbr", 4, "--n-best", 5], "n-best 5, number of samples 4"),
        (["--sample", "--top-p", 0], "--top-p is not valid"),
        (["--sample", "--seed", 2**63], "--seed is not valid"),
        (["--mbr", 1], "--mbr"),
    ],
    ids=str,
)
def test_what_cannot_take_effect_is_refused(tfm: Tfm, run: Path, options: list[object], told: str) -> None:
    done = tfm("translate", "--run", run, *options, "one")
    assert (done.code, done.out) == (2, b"")
    assert told in done.err


def test_another_seed_is_another_job(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    ask = ["translate", "--run", run, "--sample", "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.txt"]
    (tmp_path / "in.jsonl").write_text('{"text": "one cats sleep."}\n' * 10 + "no JSON\n", encoding="utf-8")
    assert tfm(*ask).code == 2
    done = tfm(*ask, "--seed", 2, "--resume")
    assert (done.code, "seed" in done.err) == (2, True)


def test_eval_takes_the_options_that_shape_a_search(tfm: Tfm, run: Path) -> None:
    ask = ["eval", "--run", run, "--json", "--bootstrap", 0, "--length-normalization", "plain"]
    assert "plain length normalisation" in tfm(*ask).json["decoding"]
    assert "early stopping" in tfm(*ask, "--early-stopping").json["decoding"]


def jsonl(*objects: object) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in objects).encode()


def test_a_prefix_of_all_lines_and_of_single_ones(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    started = tfm("translate", "--run", run, "--prefix", "Zwei H", *TEXTS)
    assert all(line.startswith("Zwei H") for line in started.lines)
    data = jsonl({"text": TEXTS[0], "prefix": "Drei"}, {"text": TEXTS[1]}, {"text": TEXTS[2], "prefix": None})
    (tmp_path / "in.jsonl").write_bytes(data)
    ask = ["translate", "--run", run, "-i", tmp_path / "in.jsonl"]
    own, *free = tfm(*ask).lines
    assert own.startswith("Drei")
    assert free == tfm("translate", "--run", run, *TEXTS).lines[1:]
    assert tfm(*ask, "--prefix", "Zwei H").lines == [own, *started.lines[1:]]
    as_json = [json.loads(line) for line in tfm(*ask, "--format", "jsonl").lines]
    assert [found.get("prefix", "none") for found in as_json] == ["Drei", "none", None]
    assert tfm(*ask, "--field", "prefix", "-o", tmp_path / "out").code == 2  # null is no text to translate


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("", "in.jsonl:2: the prefix of a translation is empty"),
        (5, "in.jsonl:2:prefix: is not text"),
        ("x " * 500, "in.jsonl:2: the prefix is longer than a translation may be"),
    ],
)
def test_a_wrong_prefix_is_named_with_its_line(tfm: Tfm, run: Path, tmp_path: Path, prefix: object, told: str) -> None:
    (tmp_path / "in.jsonl").write_bytes(jsonl({"text": "one"}, {"text": "two", "prefix": prefix}))
    done = tfm("translate", "--run", run, "-i", tmp_path / "in.jsonl")
    assert done.code == 2
    assert told in done.err
    if isinstance(prefix, str):
        alone = tfm("translate", "--run", run, "--prefix", prefix, "one")
        assert (alone.code, alone.out) == (2, b"")
        assert told.partition("2: ")[2] in alone.err


def test_the_other_engine_refuses_a_prefix(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--engine", "ctranslate2", "--prefix", "Zwei", "one")
    assert (done.code, "does not know --prefix" in done.err) == (2, True)


def test_another_prefix_is_another_job(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[{"text": "one cats sleep."}] * 3) + b"no JSON\n")
    ask = ["translate", "--run", run, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.txt"]
    assert tfm(*ask, "--prefix", "Zwei").code == 2
    done = tfm(*ask, "--prefix", "Drei", "--resume")
    assert (done.code, "prefix" in done.err) == (2, True)


def test_runs_translate_together(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    ask = ["translate", "--run", run, *TEXTS]
    alone, twice = tfm(*ask), tfm(*ask, "--run", run)
    assert (twice.code, twice.err) == (0, "")
    assert twice.lines == alone.lines
    (tmp_path / "in").write_text("one cats sleep.\n", encoding="utf-8")
    pair = [tmp_path / "in", tmp_path / "in"]
    one, two = (float(tfm("score", *["--run", run] * n, *pair).lines[0]) for n in (1, 2))
    assert two == pytest.approx(one, abs=2e-6)
    done = tfm(*ask, "--run", run, "--engine", "ctranslate2")
    assert (done.code, "does not know more than one --run" in done.err) == (2, True)


def test_a_further_run_is_another_job(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[{"text": "one cats sleep."}] * 3) + b"no JSON\n")
    ask = ["translate", "--run", run, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.txt"]
    assert tfm(*ask).code == 2
    done = tfm(*ask, "--run", run, "--resume")
    assert (done.code, "weights" in done.err) == (2, True)


def test_forbidden_phrases_are_not_said(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    ask = ["translate", "--run", run, *TEXTS]
    free = tfm(*ask).lines
    word = free[0].split()[-1].strip(".")
    (tmp_path / "no").write_text(f"{word}\n\n{free[1][:3]}\n", encoding="utf-8")
    for how in ([], ["--beam-size", 1], ["--mbr", 4, "--temperature", 2]):
        done = tfm(*ask, *how, "--forbid", tmp_path / "no")
        assert (done.code, "forbidden" in done.err) == (0, False)
        assert all(line and word not in line and free[1][:3] not in line for line in done.lines)
    refused = tfm(*ask, "--forbid", tmp_path / "no", "--prefix", f"x {word}")
    assert (refused.code, "the prefix holds a forbidden phrase" in refused.err) == (2, True)
    (tmp_path / "no").write_text("\n", encoding="utf-8")
    empty = tfm(*ask, "--forbid", tmp_path / "no")
    assert (empty.code, "no: holds no phrase" in empty.err) == (2, True)
    other = tfm(*ask, "--forbid", tmp_path / "no", "--engine", "ctranslate2")
    assert (other.code, "does not know --forbid" in other.err) == (2, True)


def test_other_forbidden_phrases_are_another_job(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[{"text": "one cats sleep."}] * 3) + b"no JSON\n")
    (tmp_path / "no").write_text("x\n", encoding="utf-8")
    ask = ["translate", "--run", run, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.txt"]
    assert tfm(*ask, "--forbid", tmp_path / "no").code == 2
    (tmp_path / "no").write_text("y\n", encoding="utf-8")
    done = tfm(*ask, "--forbid", tmp_path / "no", "--resume")
    assert (done.code, "forbid" in done.err) == (2, True)


def test_a_glossary_is_kept_to(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("cats\tKater\n\n two dogs \tzwei Rüden\n", encoding="utf-8")
    ask = ["translate", "--run", run, *TEXTS]
    free = tfm(*ask).lines
    done = tfm(*ask, "--glossary", tmp_path / "terms.tsv")
    assert (done.code, "without" in done.err) == (0, False)
    assert "Kater" in done.lines[0]
    assert "zwei Rüden" in done.lines[1]
    assert done.lines[2] == free[2]
    assert tfm(*ask, "--glossary", tmp_path / "terms.tsv", "--batch-size", 1).lines == done.lines
    long = tfm("translate", "--run", run, "--glossary", tmp_path / "terms.tsv", "cats two dogs " * 30)
    assert "translated in pieces" in long.err


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("cats Kater\n", [], "terms.tsv:1: is no entry of a glossary"),
        ("a\tb\ncats\t\n", [], "terms.tsv:2: is no entry of a glossary"),
        ("a\tb\tc\n", [], "terms.tsv:1: is no entry of a glossary"),
        ("a\tb\na\tb\n a\tc\n", [], "terms.tsv:3: the term 'a' has two translations"),
        ("\n", [], "terms.tsv: holds no term"),
        ("a\tb\n\nc\t" + 999 * "d ", [], "terms.tsv:3: 'd d"),
        ("a\tb\ncats\tzwei Kater\n", ["--forbid", "no.txt"], "terms.tsv:2: the glossary wants what is forbidden"),
        ("a\tb\n", ["--sample"], "--glossary is about beam search"),
        ("a\tb\n", ["--engine", "ctranslate2"], "the engine ctranslate2 does not know --glossary"),
    ],
    ids=str,
)
def test_a_glossary_that_cannot_be_kept_to_is_refused(
    tfm: Tfm, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, options: list[str], told: str
) -> None:
    (tmp_path / "terms.tsv").write_text(content, encoding="utf-8")
    (tmp_path / "no.txt").write_text("Kater\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = tfm("translate", "--run", run, "--glossary", tmp_path / "terms.tsv", *options, "a cats")
    assert (done.code, done.out) == (2, b"")
    assert told in done.err


def test_a_translation_that_lacks_a_term_is_named(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    line = " ".join(["one cats sleep two dogs wait six books fall"] * 5)  # cut in the middle of the term
    (tmp_path / "terms.tsv").write_text(f"{line}\tKater\n", encoding="utf-8")
    done = tfm("translate", "--run", run, "-b", 1, "--glossary", tmp_path / "terms.tsv", "one", line)
    assert done.code == 0
    assert "1 line without the translation of a term (--glossary): line 2" in done.err


def test_another_glossary_is_another_job(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[{"text": "one cats sleep."}] * 3) + b"no JSON\n")
    (tmp_path / "terms.tsv").write_text("a\tb\n", encoding="utf-8")
    ask = ["translate", "--run", run, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.txt"]
    assert tfm(*ask, "--glossary", tmp_path / "terms.tsv").code == 2
    (tmp_path / "terms.tsv").write_text("a\tc\n", encoding="utf-8")
    done = tfm(*ask, "--glossary", tmp_path / "terms.tsv", "--resume")
    assert (done.code, "glossary" in done.err) == (2, True)


@pytest.mark.parametrize("wrong", ["0", "two", "-1", "2.5"])
def test_workers_are_a_number_or_auto(run: Path, tfm: Tfm, wrong: str) -> None:
    done = tfm("translate", "--run", run, "--workers", wrong, "a dog .")
    assert done.code == 2
    assert f"--workers is not valid\n  got: {wrong}\n  expected: auto, or a whole number from 1 to 1000" in done.err


def test_workers_translate_as_one_process_does(run: Path, tfm: Tfm, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["one cats sleep .", "", "two dogs wait .", "six books fall ."]
    wishes = ["--n-best", "2", "--prefix", "zwei"]
    alone = tfm("translate", "--run", run, "--workers", "1", *wishes, *lines)
    monkeypatch.setattr(ensemble, "load_models", lambda *_: pytest.fail("the first process needs no model"))
    shared = tfm("translate", "--run", run, "--workers", "2", *wishes, *lines)
    assert alone.code == shared.code == 0, shared.err
    assert shared.lines == alone.lines


@pytest.mark.parametrize(
    "option",
    ["--beam-size", "--n-best", "--mbr", "--seed", "--top-k", "--min-length", "--batch-size", "--batch-tokens"],
)
def test_a_number_beyond_all_bounds_is_told_by_the_option_that_has_it(tfm: Tfm, option: str) -> None:
    done = tfm("translate", "--run", "nowhere", option, 10**20, "one")
    assert done.code == 2
    assert f"error: {option} is not valid\n  got: {10**20}\n" in done.err
    assert str(LARGEST) not in done.err
    assert (WIDEST, LARGEST) == (settings.WIDEST, settings.LARGEST)
    with pytest.raises(UserError, match="the number of samples is not valid"):
        settings.DecodeSettings(sampling=True, beam_size=WIDEST + 1)
    settings.DecodeSettings(seed=LARGEST, min_length=LARGEST, top_k=LARGEST, n_best=WIDEST, beam_size=WIDEST)


def test_a_least_length_beyond_the_limit_of_the_length_is_told(tfm: Tfm, run: Path) -> None:
    done = tfm("translate", "--run", run, "--min-length", 10**9, "-b", 1, "one cats sleep.", "")
    assert (done.code, len(done.lines)) == (0, 2)
    assert "1 line ended by the length limit before the least length (--min-length): line 1" in done.err
    assert "--min-length" not in tfm("translate", "--run", run, "--min-length", 9, "-b", 1, "one cats sleep.").err
