"""One model, several target languages: the tag chooses, and text never is a tag."""

import json
from pathlib import Path

import pytest
from command_line import Tfm
from toy_language import TINY, toy_pairs

import transformer_cli
from transformer_cli.cli import main
from transformer_cli.commands.eval.job import EvalRequest, run_eval
from transformer_cli.config import Config
from transformer_cli.data.corpus import load_corpus, load_split
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import DataError, UserError
from transformer_cli.experiment import prepare
from transformer_cli.recipe import load_recipe
from transformer_cli.runtime import Runtime

RECIPE = """
data:
  train: {{src: {folder}/a.en, tgt: {folder}/a.de}}
  more_targets: [{{lang: fr, train: {{src: {folder}/a.en, tgt: {folder}/a.fr}}}}]
  dev_size: 5
train: {{max_steps: 60, batch_tokens: 500, lr: 0.01, warmup_steps: 20, amp: off}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The third language is the second one in capitals: whose words come out says which was asked for."""
    folder = tmp_path_factory.mktemp("targets")
    src, tgt = zip(*toy_pairs(300), strict=True)
    for name, lines in {"en": src, "de": tgt, "fr": [line.upper() for line in tgt]}.items():
        (folder / f"a.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "my.yaml").write_text(RECIPE.format(folder=folder), encoding="utf-8")
    return folder


LONGER = ["-s", "train.batch_tokens=500", "-s", "train.max_steps=150"]  # than TINY, for two languages


def recipe(folder: Path, *overrides: str) -> Config:
    return load_recipe(str(folder / "my.yaml"), ["tokenizer.vocab_size=340", *overrides])


@pytest.mark.parametrize(
    "overrides", [[], ["tokenizer.joint=false", "model.tie_embeddings=none"]], ids=["joint", "two"]
)
@pytest.mark.parametrize("sampling", ["0", "0.3"])
def test_every_source_begins_with_the_tag_of_its_target(folder: Path, overrides: list[str], sampling: str) -> None:
    made = prepare(recipe(folder, f"train.subword_sampling={sampling}", *overrides), lambda note: None)
    corpus, pairs, tag = made.corpus, made.train_pairs.pairs(1), made.tokenizer.tag
    assert list(corpus.more) == ["fr"]
    assert len(pairs) == len(corpus.train) + len(corpus.more["fr"])
    for number, (src, tgt) in enumerate(zip(pairs.src, pairs.tgt, strict=True)):
        language = "de" if number < len(corpus.train) else "fr"
        assert src[0] == tag(language)
        assert made.tokenizer.decode(tgt) == corpus.all_train.tgt[number]
        assert not {tag("de"), tag("fr")} & {*src[1:].tolist(), *tgt.tolist()}
    assert all(src[0] == tag("de") for src in made.dev_pairs.src)
    assert corpus.dropped["fr: source line is in the dev split"] > 0
    assert not set(corpus.dev.src) & set(corpus.more["fr"].src)


def test_a_tag_is_no_text_to_the_filter_of_lengths(folder: Path) -> None:
    everything = prepare(recipe(folder), lambda note: None).train_pairs.pairs(1)
    sides = [(len(src), len(tgt) + 1) for src, tgt in zip(everything.src, everything.tgt, strict=True)]  # </s> for tag
    alike = [max(pair) <= 1.25 * min(pair) for pair in sides]
    assert alike != [max(src + 1, tgt) <= 1.25 * min(src + 1, tgt) for src, tgt in sides]
    made = prepare(recipe(folder, "data.filter.length_ratio=1.25"), lambda note: None)
    assert len(made.train_pairs.pairs(1)) == sum(alike)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_a_tag_in_a_sentence_is_text(folder: Path, kind: str) -> None:
    with (folder / "a.en").open(encoding="utf-8") as lines:
        text = [*map(str.rstrip, lines), "<2de> <2fr>"]
    made = prepare(recipe(folder, f"tokenizer.model_type={kind}"), lambda note: None)
    tags = {made.tokenizer.tag("de"), made.tokenizer.tag("fr")}
    for ids in made.tokenizer.encode_src(["<2de>", "a <2fr> b", *text]):
        assert not tags & set(ids)
    if made.tokenizer.joint:
        assert [made.tokenizer.decode(ids) for ids in made.tokenizer.encode_src(["<2de> x"])] == ["<2de> x"]


def test_every_part_of_a_long_line_has_the_tag_and_fits(folder: Path) -> None:
    made = prepare(recipe(folder, "data.max_length=24", "model.positions=learned"), lambda note: None)
    translator = Translator.of_model(made.model, made.tokenizer, made.config, Runtime.resolve("cpu"), to="fr")
    line = "onecatssleep" * 30  # no space to cut at, so that the pieces are full
    (ids,) = made.tokenizer.encode_src([line])
    (parts,) = translator._cutter.parts([line])
    assert {part[0] for part in parts} == {made.tokenizer.tag("fr")}
    assert max(map(len, parts)) == 24
    assert [i for part in parts for i in part[1:-1]] == ids


def test_a_run_with_one_target_has_no_tags(folder: Path) -> None:
    made = prepare(recipe(folder, "data.more_targets=[]"), lambda note: None)
    with pytest.raises(DataError, match="no tag for target language de"):
        made.tokenizer.tag("de")
    assert made.corpus.all_train is made.corpus.train


def test_a_tokenizer_without_the_tags_is_refused(folder: Path, tmp_path: Path) -> None:
    prepare(recipe(folder, "data.more_targets=[]"), lambda note: None).tokenizer.save(tmp_path)
    with pytest.raises(DataError, match=r"no tag for target language de(.|\n)*control_symbols"):
        prepare(recipe(folder, f"tokenizer.model={tmp_path / 'tokenizer.model'}"), lambda note: None)


def test_editing_the_other_targets_is_noticed(folder: Path, tmp_path: Path) -> None:
    before = load_corpus(recipe(folder).data, 1).fingerprint
    data = recipe(folder, f"data.more_targets=[{{lang: fr, train: {{src: {folder}/a.en, tgt: {folder}/a.de}}}}]").data
    assert load_corpus(data, 1).fingerprint != before


@pytest.fixture(scope="module")
def bilingual(folder: Path) -> Path:
    """A finished run into both languages."""
    with pytest.raises(SystemExit) as left:
        main(["train", "--config", str(folder / "my.yaml"), "--run", str(folder / "run"), "--quiet", *TINY, *LONGER])
    assert not left.value.code
    return folder / "run"


def test_augment_says_its_languages_and_refuses_files_of_another(
    tfm: Tfm, folder: Path, bilingual: Path, tmp_path: Path
) -> None:
    command = ["augment", "--run", bilingual, "-b", "1", "-o", tmp_path / "out.tsv", "--pairs", folder / "a.en"]
    done = tfm(*command, folder / "a.fr")
    assert (done.code, "a file of de is expected, and it is called .fr" in done.err) == (2, True)
    assert "--to" in done.err
    done = tfm(*command, folder / "a.fr", "--to", "fr", "--json")
    assert (done.code, done.json["languages"]) == (0, ["en", "fr"])
    assert "pairs en-fr" in done.err


def test_dev_sentences_among_the_pairs_of_every_language_are_counted(folder: Path) -> None:
    config = recipe(folder, f"data.dev={{src: {folder}/a.en, tgt: {folder}/a.de}}").data
    notes = load_corpus(config, 1).notes
    assert [note for note in notes if note.endswith("in train (fr) (0 as the same pair)")]


def test_the_language_that_is_asked_for_comes_out(tfm: Tfm, bilingual: Path) -> None:
    run = bilingual
    lines = ["one cats sleep.", "six books fall.", "two dogs wait."]
    plain, german, french = (tfm("translate", "--run", run, *to, *lines) for to in ([], ["--to", "de"], ["--to", "fr"]))
    assert plain.lines == german.lines
    assert all(line.split()[0].islower() for line in german.lines)
    assert all(line.isupper() for line in french.lines)
    assert transformer_cli.load(str(run), "cpu", to="fr").translate(lines) == french.lines
    aligned = tfm("translate", "--run", run, "--to", "fr", "--alignment", "--format", "jsonl", lines[0]).json
    pairs = [pair.split("-") for pair in aligned["alignment"].split()]  # type: ignore[index]
    assert {target for _, target in pairs} == {"0", "1", "2"} >= {source for source, _ in pairs}
    refused = tfm("translate", "--run", run, "--to", "es", *lines)
    assert refused.code == 2
    assert "got: es" in refused.err
    assert "expected: de, fr" in refused.err
    with pytest.raises(UserError, match="does not translate into that language"):
        transformer_cli.load(str(run), "cpu", to="")


def test_a_score_of_another_language_needs_its_references_and_nothing_else(
    tfm: Tfm, folder: Path, bilingual: Path, tmp_path: Path
) -> None:
    sources = load_split(recipe(folder).data, "dev", recipe(folder).train.seed).src
    loud = dict(zip(*read(folder, "en", "fr"), strict=True))
    ref, src = tmp_path / "dev.fr", tmp_path / "dev.en"
    ref.write_text("".join(f"{loud[line]}\n" for line in sources), encoding="utf-8")
    src.write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    command = ["eval", "--run", bilingual, "-b", "1", "--metrics", "bleu", "--json"]
    of_split = tfm(*command, "--split", "dev", "--to", "fr", "--ref", ref).json
    of_files = tfm(*command, "--to", "fr", "--src", src, "--ref", ref).json
    of_main = tfm(*command, "--src", src, "--ref", ref).json
    assert (of_split["score"], of_split["to"]) == (of_files["score"], "fr")
    assert of_split["score"] > of_main["score"]  # German, in small letters
    assert of_main["to"] is None
    stored = [json.loads(line)["to"] for line in (bilingual / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert stored[-3:] == ["fr", "fr", None]
    refused = tfm(*command, "--split", "dev", "--to", "fr")
    assert (refused.code, "the dev split is in de only" in refused.err, "--ref FILE" in refused.err) == (2, True, True)
    refused = tfm(*command, "--to", "es", "--src", src, "--ref", ref)
    assert (refused.code, "expected: de, fr" in refused.err) == (2, True)


def test_training_pairs_and_the_baseline_follow_the_language(folder: Path, bilingual: Path) -> None:
    data, seed = recipe(folder).data, recipe(folder).train.seed
    seen = load_corpus(data, seed).more["fr"]
    assert load_split(data, "train", seed, to="fr") == seen
    request = EvalRequest(run=bilingual, split="train", to="fr", baseline=True, search={"beam_size": 1}, n_bootstrap=0)
    report = run_eval(request)
    assert report.lines == len(seen)
    assert report.baseline[0].value > 90  # German neighbours would share the full stop


def test_the_language_of_a_run_that_is_not_used_is_refused(tfm: Tfm, folder: Path) -> None:
    refused = tfm("eval", "--hyp", folder / "a.fr", "--ref", folder / "a.fr", "--to", "fr")
    assert (refused.code, "--to has no effect" in refused.err, "--tgt-lang" in refused.err) == (2, True, True)


def test_augment_distils_into_the_language_that_is_asked_for(
    tfm: Tfm, folder: Path, bilingual: Path, tmp_path: Path
) -> None:
    lines = ["one cats sleep.", "six books fall."]
    src, tgt, out = tmp_path / "some.en", tmp_path / "some.fr", tmp_path / "out.tsv"
    src.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tgt.write_text("EINS KATZEN SCHLAFEN.\nSECHS BÜCHER FALLEN.\n", encoding="utf-8")
    command = ["augment", "--pairs", src, tgt, "--run", bilingual, "-o", out, "-b", "1", "--json"]
    done = tfm(*command, "--to", "fr")
    assert (done.code, done.json["to"]) == (0, "fr")
    expected = tfm("translate", "--run", bilingual, "-b", "1", "--to", "fr", *lines).lines
    made = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert made
    assert all(dict(zip(lines, expected, strict=True))[src] == tgt for src, tgt in made)
    command[3] = tgt.rename(tmp_path / "some.de")
    assert tfm(*command).json["to"] == "de"
    refused = tfm(*command, "--to", "es")
    assert (refused.code, "expected: de, fr" in refused.err) == (2, True)


def read(folder: Path, *languages: str) -> list[list[str]]:
    return [(folder / f"a.{language}").read_text(encoding="utf-8").splitlines() for language in languages]
