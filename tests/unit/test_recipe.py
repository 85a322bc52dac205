"""Recipes: what is read, what is refused, and how the refusal reads."""

import json
from pathlib import Path

import pytest

from transformer_cli.commands.train import TrainRequest, requested_config
from transformer_cli.config import Config
from transformer_cli.errors import ConfigError
from transformer_cli.recipe import all_keys, load_recipe, to_yaml
from transformer_cli.schema import schema_path, schema_text
from transformer_cli.shipped import shipped_recipes

MINIMAL = "data: {corpus: phrasebook}\ntrain: {max_steps: 10}\n"


@pytest.fixture
def recipe(tmp_path: Path):
    def write(text: str | bytes, *overrides: str) -> Config:
        path = tmp_path / "r.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_recipe(str(path), overrides)

    return write


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_loads_and_survives_a_round_trip(name: str, recipe) -> None:
    config = load_recipe(name)
    assert recipe(to_yaml(config)) == config
    assert load_recipe(name.removesuffix(".yaml")) == config


def test_base_recipe_shows_every_key() -> None:
    import yaml

    from transformer_cli.shipped import shipped

    plain = yaml.safe_load((shipped("configs") / "base.yaml").read_text(encoding="utf-8"))
    assert [f"{section}.{key}" for section, keys in plain.items() for key in keys] == all_keys()


def test_schema_is_kept_in_step() -> None:
    assert schema_path().read_text(encoding="utf-8") == schema_text()
    assert json.loads(schema_text())["additionalProperties"] is False


@pytest.mark.parametrize(
    ("text", "overrides", "read", "value"),
    [
        (MINIMAL, ["train.lr=1e-4"], lambda c: c.train.lr, 1e-4),
        ("data: {src_lang: no, train: {src: a, tgt: b}}\ntrain: {max_steps: 10}", [], lambda c: c.data.src_lang, "no"),
        ("data: {src_lang: 010, train: {src: a, tgt: b}}\ntrain: {max_steps: 10}", [], lambda c: c.data.src_lang, "010"),
        ("data: {src_lang: 1:30, train: {src: a, tgt: b}}\ntrain: {max_steps: 10}", [], lambda c: c.data.src_lang, "1:30"),
        ("data: {train: {src: 2020-01-01, tgt: b}}\ntrain: {max_steps: 10}", [], lambda c: c.data.train.src, "2020-01-01"),
        (MINIMAL, ["train.clip_norm=null"], lambda c: c.train.clip_norm, None),
        (MINIMAL, ["model.bias=false"], lambda c: c.model.bias, False),
        (MINIMAL, ["model.attention=naive"], lambda c: c.model.attention.cross, "naive"),
        (MINIMAL, ["model.attention.cross=naive"], lambda c: (c.model.attention.cross, c.model.attention.encoder), ("naive", "sdpa")),
        (MINIMAL, ["data.corpus=null", "data.train={tsv: a.tsv, tgt_column: 2}"], lambda c: (c.data.train.kind, c.data.train.tgt_column), ("tsv", 2)),
        (MINIMAL, ["data.corpus=null", "data.train.src=[a, b]", "data.train.tgt=[c, d]"], lambda c: c.data.train.src, ["a", "b"]),
        ("\ufeff" + MINIMAL, [], lambda c: c.train.max_steps, 10),
    ],
)  # fmt: skip
def test_scalars_are_what_the_schema_says(recipe, text, overrides, read, value) -> None:
    assert read(recipe(text, *overrides)) == value


@pytest.mark.parametrize(
    ("text", "overrides", "parts"),
    [
        (MINIMAL + "  ", ["model.dmodel=64"], ["unknown key model.dmodel", "did you mean model.d_model?"]),
        (MINIMAL, ["learning_rate=1"], ["unknown key learning_rate", "one of data, tokenizer, model, train, decode"]),
        (MINIMAL, ["d_model=1"], ["unknown key d_model", "did you mean model.d_model?"]),
        ("data: {corpus: phrasebook}\ntrain:\n  max_steps: 10\n  lrr: 3\n", [], ["r.yaml:4:3: unknown key train.lrr", "train.lr?"]),
        ("data: {corpus: phrasebook}\ntrain:\n  max_steps: 10\n  lr: fast\n", [], ["r.yaml:4:3", "train.lr", "'fast'", "a valid number"]),
        (MINIMAL, ["train.lr=-1"], ["-s train.lr=-1", "train.lr is not valid", "greater than 0"]),
        (MINIMAL, ["train.lr=nan"], ["train.lr is not valid", "finite"]),
        (MINIMAL, ["model.norm_placement=mid"], ["model.norm_placement", "'mid'", "'pre' or 'post'"]),
        (MINIMAL, ["train.seed=1:30"], ["train.seed", "'1:30'", "a valid integer"]),
        (MINIMAL, ["train.max_steps=1.5"], ["train.max_steps", "a valid integer"]),
        (MINIMAL, ["model.bias=maybe"], ["model.bias", "a valid boolean"]),
        (MINIMAL, ["train.lr"], ["cannot read the override 'train.lr'", "section.key=value"]),
        (MINIMAL, ["train.lr=[1"], ["-s train.lr=[1", "is not YAML"]),
        ("", [], ["r.yaml:1:1: is not a recipe", "an empty file"]),
        ("# only a comment\n", [], ["is not a recipe", "an empty file"]),
        ("- a\n- b\n", [], ["is not a recipe", "a top-level list"]),
        ("text\n", [], ["is not a recipe", "a top-level text"]),
        ("data:\n  a: 1\n b: 2\n", [], ["r.yaml:3:2: is not YAML", "indentation"]),
        ("data:\n\ta: 1\n", [], ["r.yaml:2:1: is not YAML", "spaces, not tabs"]),
        (MINIMAL + "data: {}\n", [], ["r.yaml:3:1: key data is given twice"]),
        ("data: {corpus: phrasebook, corpus: null}\n", [], ["r.yaml:1:28: key data.corpus is given twice"]),
        (b"data: \xff\n", [], ["is not UTF-8", "byte 6"]),
        ("data: {corpus: phrasebook}\n", [], ["key train is missing"]),
        ("daten: {corpus: phrasebook}\n", [], ["r.yaml:1:1: unknown key daten", "did you mean data?", "2 more problems"]),
        ("data: 3\ntrain: {max_steps: 1}\n", [], ["r.yaml:1:1: data is not valid"]),
    ],
)  # fmt: skip
def test_mistakes_name_place_value_and_remedy(recipe, text, overrides, parts) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(text, *overrides)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        (["data.corpus=null"], "exactly one of corpus and train"),
        (["data.train={src: a, tgt: b}"], "exactly one of corpus and train"),
        (["data.dev={src: a, tgt: b}"], "corpus brings its own dev and test"),
        (["data.tgt_lang=fr"], "corpus phrasebook has de, en, zh: choose two"),
        (["data.tgt_lang=en"], "corpus phrasebook has de, en, zh: choose two"),
        (["data.corpus=null", "data.train={src: a}"], "needs src and tgt"),
        (["data.corpus=null", "data.train={tsv: a, src: b}"], "src cannot be combined with tsv"),
        (["data.corpus=null", "data.train={tsv: a, src_column: en}"], "numbers, counted from 0"),
        (["data.corpus=null", "data.train={tsv: a, src_column: 1}"], "src_column and tgt_column are both 1"),
        (["data.corpus=null", "data.train={src: a, tgt: b, split: train}"], "split cannot be combined with src/tgt"),
        (["tokenizer.joint=false"], "model.tie_embeddings: all needs one vocabulary"),
        (["tokenizer.joint=false", "model.tie_embeddings=none", "tokenizer.model=a.model"], "serves both sides"),
        (["model.d_model=130"], "d_model 130 is not divisible by n_heads 4"),
        (["model.d_model=9", "model.n_heads=3"], "sinusoidal positions need an even d_model"),
        (
            ["train.subword_sampling=0.1", "tokenizer.model_type=char"],
            "needs tokenizer.model_type bpe or unigram, got char",
        ),
        (["train.sampled_sides=source"], "sampled_sides source means nothing while subword_sampling is 0"),
        (["train.bidirectional_epochs=2", "model.tie_embeddings=decoder"], "needs tokenizer.joint: true and model.tie"),
        (["train.bidirectional_epochs=2", "data.more_targets=[{lang: fr, train: {tsv: a}}]"], "exclude each other"),
        (["data.more_targets=[{lang: de, train: {tsv: a}}]"], "name each language once, got de twice"),
        (["data.more_targets=[{lang: fr, train: {src: a}}]"], "needs src and tgt, or tsv"),
        (["data.more_targets=[{lang: fr, train: {tsv: a}}]", "data.max_length=2"], "max_length of at least 3"),
        (["data.more_targets=[{lang: 'f,r', train: {tsv: a}}]"], "more_targets.0.lang is not valid"),
        (["train.max_steps=null"], "at least one of max_steps, max_epochs and max_minutes"),
        (["train.muon_lr=0.1"], "muon_lr and muon_momentum need optimizer: muon"),
        (["train.muon_momentum=0.9"], "muon_lr and muon_momentum need optimizer: muon"),
        (["train.decay_share=0.5", "train.schedule=cosine"], "decay_share needs schedule: trapezoidal"),
        (["train.average_last=3", "train.average_best=3"], "average_last and average_best exclude each other"),
    ],
)
def test_combinations_without_meaning_are_refused_by_name(recipe, overrides: list[str], part: str) -> None:
    with pytest.raises(ConfigError, match=part.replace("(", r"\(")):
        recipe(MINIMAL, *overrides)


@pytest.mark.parametrize(
    ("overrides", "blamed"),
    [
        (["model.encoder_layers=1", "model.sparse.window=4"], ["model.sparse.window=4"]),
        (["model.d_model=130", "model.n_heads=3", "model.d_ff=8"], ["model.d_model=130", "model.n_heads=3"]),
        (["model.n_heads=8", "model.d_k=7", "model.positions=rotary"], ["model.d_k=7", "model.positions=rotary"]),
        (["train.lr=0.1", "tokenizer.joint=false", "data.max_length=9"], ["tokenizer.joint=false"]),
        (["model.attention=sdpa", "model.attention.cross=sparse"], ["model.attention.cross=sparse"]),
        (["train.lr=0.1", "train.lr=fast"], ["train.lr=fast"]),
        (
            ["train.lr=0.1", "train.muon_lr=0.1", "train.muon_momentum=0.9"],
            ["train.muon_lr=0.1", "train.muon_momentum=0.9"],
        ),
    ],
)
def test_only_the_overrides_that_make_a_problem_are_its_place(recipe, overrides: list[str], blamed: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(MINIMAL, *overrides)
    assert caught.value.where == " ".join(f"-s {override}" for override in blamed)


def test_a_problem_of_the_file_is_not_blamed_on_an_override(recipe) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(MINIMAL + "model: {sparse: {window: 4}}\n", "model.d_model=64")
    assert caught.value.where.endswith("r.yaml:3:1")


@pytest.mark.parametrize(
    ("overrides", "more"),
    [
        (["model.attention=sparze"], None),
        (["model.attention=sparze", "train.lr=fast"], "1 more problem, told when this one is mended"),
        (["model.attention.cross=x", "model.attention.encoder=x"], "1 more problem, told when this one is mended"),
    ],
)
def test_a_value_that_is_wrong_in_several_places_is_one_problem(recipe, overrides: list[str], more: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(MINIMAL, *overrides)
    assert caught.value.hint == more


def test_an_unknown_recipe_lists_the_shipped_ones() -> None:
    with pytest.raises(ConfigError, match=r"base\.yaml"):
        load_recipe("no-such.yaml")


def test_a_configuration_is_the_same_wherever_its_files_lie(recipe) -> None:
    files = "data: {train: {src: %s/a.en, tgt: %s/a.de}}\ntrain: {max_steps: 10, init_from: %s/run}\n"
    here, there = (recipe(files.replace("%s", place)) for place in ("here", "there"))
    assert here != there
    assert here.fingerprint() == there.fingerprint()
    others = ("train.lr=0.5", "data.tgt_lang=fr", "model.d_model=64", "tokenizer.vocab_size=77", "decode.beam_size=3")
    hashes = {recipe(files.replace("%s", "here"), override).fingerprint() for override in others} | {here.fingerprint()}
    assert len(hashes) == len(others) + 1


def test_more_targets_count_but_not_their_files(recipe) -> None:
    more = "data: {corpus: phrasebook, more_targets: [{lang: %s, train: {tsv: %s.tsv}}]}\ntrain: {max_steps: 10}\n"
    czech, moved, french = (recipe(more % of).fingerprint() for of in (("cs", "a"), ("cs", "b"), ("fr", "a")))
    assert czech == moved != french


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.tgt_lang='a: b #'"], r"data\.tgt_lang is no language code"),
        (["data.src_lang='en\n'"], r"data\.src_lang is no language code"),
        (["data.more_targets=[{lang: en, train: {tsv: c}}]"], "both the source and one of several targets"),
    ],
)
def test_odd_languages_are_refused_for_a_new_run_but_load_for_an_old_one(
    recipe, tmp_path: Path, overrides: list[str], said: str
) -> None:
    text = "data: {train: {src: a, tgt: b}}\ntrain: {max_steps: 10}\n"
    config = recipe(text, *overrides)
    with pytest.raises(ConfigError, match=said):
        config.data.refuse_odd_languages()
    with pytest.raises(ConfigError, match=said):
        requested_config(TrainRequest(str(tmp_path / "r.yaml"), tuple(overrides)))
    recipe(text, "data.tgt_lang=zh_Hans-CN").data.refuse_odd_languages()


NINE = "\n".join(f"{x}: &{x} [{', '.join(['1' if x == 'a' else f'*{chr(ord(x) - 1)}'] * 9)}]" for x in "abcdefghi")


ENDLESS = "is nested too deeply, or refers to itself"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(NINE, "stands for more than 100,000 values, aliases written out", id="bomb"),
        pytest.param("a: &a [*a, *a]", ENDLESS, id="list"),
        pytest.param("a: &a {b: *a}", ENDLESS, id="mapping"),
        pytest.param("[" * 5000, ENDLESS, id="deep"),
    ],
)
def test_a_recipe_that_would_never_end_is_refused_at_once(recipe, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        recipe(text)


def test_anchors_may_be_used_again(recipe) -> None:
    config = recipe("data: {train: &files {src: a, tgt: b}, dev: *files}\ntrain: {max_steps: 10}\n")
    assert config.data.dev == config.data.train


def test_what_is_no_file_is_not_called_an_unknown_recipe(tmp_path: Path) -> None:
    for name, said in ((str(tmp_path), "is a folder"), ("/dev/null", "is no file")):
        with pytest.raises(ConfigError, match=f"{name}: {said}"):
            load_recipe(name)


def test_a_long_override_is_shortened_wherever_it_is_told(recipe) -> None:
    long = "x" * 5000
    for override in (f"train.lr={long}", f"train.lr=[{long}", long, f"data.nokey=[{long}]"):
        with pytest.raises(ConfigError) as caught:
            recipe(MINIMAL, override)
        assert max(map(len, str(caught.value).splitlines())) < 300
