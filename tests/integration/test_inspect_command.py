"""``tfm inspect``: maps of a sentence, and heads over the dev set."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import Tfm
from matplotlib.image import imread
from toy_language import TINY

from transformer_cli import load
from transformer_cli.cli import main
from transformer_cli.inspection.inspector import ROWS, Inspector, SentenceMaps

TEXT = "one cats sleep."


def test_the_translation_is_that_of_translate(tfm: Tfm, run: Path) -> None:
    done = tfm("inspect", "--run", run, TEXT)
    assert done.code == 0
    assert done.lines[0] == tfm("translate", "--run", run, TEXT).lines[0] == load(str(run)).translate([TEXT])[0]
    assert "cross attention, layer" in done.lines[2]
    assert done.lines[2].endswith(": rows (tokens predicted, up to </s>) look at columns")
    assert "from a weight of 0.2 on" in done.lines[3]
    assert done.lines[3].endswith("▁ begins a word")
    assert done.lines[-1].split()[0] == "</s>"


def test_maps_as_json(tfm: Tfm, run: Path) -> None:
    found = tfm("inspect", "--run", run, TEXT, "--json").json
    config = load(str(run)).config.model
    sides = {
        "encoder": ("src_pieces", "src_pieces", config.encoder_layers),
        "decoder": ("tgt_inputs", "tgt_inputs", config.decoder_layers),
        "cross": ("tgt_pieces", "src_pieces", config.decoder_layers),
    }
    for place, (queries, keys, layers) in sides.items():
        weights = np.array(found["weights"][place])
        assert weights.shape == (layers, config.n_heads, len(found[queries]), len(found[keys]))
        assert weights.sum(-1) == pytest.approx(1, abs=1e-3)
    assert np.triu(np.array(found["weights"]["decoder"]), 1).max() == 0
    assert found["src_pieces"][-1] == found["tgt_pieces"][-1] == "</s>"
    assert found["tgt_inputs"][1:] == found["tgt_pieces"][:-1]


def test_a_given_target_takes_the_place_of_the_translation(tfm: Tfm, run: Path) -> None:
    found = tfm("inspect", "--run", run, TEXT, "--target", "vier hunde", "--json").json
    assert found["translation"] == "vier hunde"
    assert "".join(found["tgt_pieces"]).replace("\u2581", " ").strip() == "vier hunde</s>"


def test_a_run_that_translates_with_a_shortlist(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed"
    shutil.copytree(run, listed)
    assert tfm("shortlist", "--run", listed).code == 0
    config = (listed / "config.yaml").read_text(encoding="utf-8")
    (listed / "config.yaml").write_text(config.replace("shortlist: false", "shortlist: true"), encoding="utf-8")
    assert tfm("inspect", "--run", listed, TEXT).lines[0] == tfm("translate", "--run", listed, TEXT).lines[0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_and_arrays(tfm: Tfm, run: Path, tmp_path: Path, ending: str) -> None:
    picture, npz = tmp_path / f"maps.{ending}", tmp_path / "maps.npz"
    assert tfm("inspect", "--run", run, TEXT, "-o", picture, "--npz", npz).code == 0
    if ending == "png":
        assert imread(picture).std() > 0.01
    else:
        assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    shown = tfm("inspect", "--run", run, TEXT, "--json").json
    with np.load(npz, allow_pickle=False) as arrays:
        assert arrays["cross.1"] == pytest.approx(np.array(shown["weights"]["cross"][0]), abs=1e-4)
        for side in ("src_pieces", "tgt_inputs", "tgt_pieces"):
            assert arrays[side].tolist() == shown[side]


def test_a_picture_says_what_its_rows_are(tfm: Tfm, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    assert tfm("inspect", "--run", run, TEXT, "-o", tmp_path / "maps.png").code == 0
    rows = {axes.get_title().split()[0]: axes.get_ylabel() for axes in drawn[0].axes if axes.get_ylabel()}
    assert rows == ROWS
    ticks = {axes.get_title().split()[0]: axes.get_yticklabels() for axes in drawn[0].axes if axes.get_ylabel()}
    assert (ticks["decoder"][0].get_text(), ticks["cross"][-1].get_text()) == ("<s>", "</s>")
    assert "begins a word" in drawn[0].get_suptitle()


def test_arrays_never_replace_a_file_of_the_run(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    (tmp_path / "maps.npz").symlink_to(run / "model.safetensors")
    before = (run / "model.safetensors").read_bytes()
    done = tfm("inspect", "--run", run, TEXT, "--npz", tmp_path / "maps.npz")
    assert (done.code, "is a file of a run" in done.err) == (2, True)
    assert (run / "model.safetensors").read_bytes() == before


def test_a_full_disk_is_named_with_the_arrays_that_found_it(
    tfm: Tfm, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    done = tfm("inspect", "--run", run, TEXT, "--npz", tmp_path / "maps.npz")
    assert (done.code, "maps.npz: the disk is full" in done.err) == (2, True)


def test_a_picture_of_one_layer_or_head_and_of_more_tokens_than_have_room(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    sides: dict[str, tuple[int, ...]] = {}
    for name, words in {"all": [], "layer": ["--layer", "1"], "head": ["--head", "2", "--place", "encoder"]}.items():
        done = tfm("inspect", "--run", run, TEXT, "-o", tmp_path / f"{name}.png", *words)
        assert (done.code, "the picture labels" in done.err) == (0, False)
        sides[name] = imread(tmp_path / f"{name}.png").shape
    assert sides["all"][0] > sides["layer"][0] > 0
    assert sides["layer"][1] > sides["head"][1]
    long = ["a " * 110, "--target", "b " * 110]
    assert "the picture labels one of 2 tokens" in tfm("inspect", "--run", run, *long, "-o", tmp_path / "long.svg").err
    assert "labels" not in tfm("inspect", "--run", run, *long, "--head", 1, "-o", tmp_path / "one.svg").err


@pytest.mark.parametrize("tokens", [1, 5, 40, 81, 82, 100, 256])
@pytest.mark.parametrize("layers", [1, 3, 12])
def test_labels_do_not_run_into_each_other(tokens: int, layers: int) -> None:
    """A label of 6 points is a twelfth of an inch high."""
    from transformer_cli.commands import attention_picture as picture

    weights = np.full((4, tokens, tokens), 1 / tokens, np.float32)
    maps = SentenceMaps("", "", *[["a"] * tokens] * 3, {"cross": [weights] * layers})
    rows = picture.rows_of(maps)
    step, inches = picture.label_step(maps, rows), picture._inches(tokens, max(4, layers))
    assert step * inches / tokens >= 1 / 12
    assert step == 1 or (step - 1) * inches / tokens < 0.11  # no more are left out than need be


def test_letters_that_no_font_has_are_drawn_as_numbers(
    tfm: Tfm, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_cli.commands import attention_picture

    monkeypatch.setattr(attention_picture, "_WIDE_FONTS", ("No Such Font",))
    done = tfm("inspect", "--run", run, "你 $x$", "-o", tmp_path / "maps.png")  # 你 is in no run's vocabulary: bytes
    assert done.code == 0
    labels = attention_picture._labels(
        Inspector.from_run(run).look("a"), "encoder", attention_picture.fonts_for({"你"})[1]
    )
    assert labels[0][-1] == "</s>"
    assert attention_picture.fonts_for({"你", "a", "$"})[1] == {"你"}


def test_heads(tfm: Tfm, run: Path) -> None:
    config = load(str(run)).config.model
    layers = config.encoder_layers + 2 * config.decoder_layers
    found = tfm("inspect", "--run", run, "--heads", "--json").json["heads"]
    assert len(found) == layers * config.n_heads
    assert all(0 <= head["entropy"] <= 1 + 1e-6 and 0 <= head["largest"] <= 1 + 1e-6 for head in found)
    table = tfm("inspect", "--run", run, "--heads").lines
    assert len(table) >= 1 + len(found)
    assert table[1].split()[:3] == ["encoder", "1", "1"]
    kinds = {head["kind"] for head in found}
    assert [kind for kind in kinds if kind.split()[-1] not in " ".join(table[-11:])] == []  # each is explained


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no text was given"),
        (["  "], "the text is blank"),
        (["a", "--target", " "], "the target is blank"),
        (["a " * 400], "longer than one translation"),
        (["a", "--target", "b " * 400], "the target is too long"),
        (["a", "--layer", "9"], "there is no such layer"),
        (["a", "--head", "99"], "there is no such head"),
        (["a", "-o", "maps.gif"], "a plot is a picture"),
        (["a", "--npz", "/no/such/maps.npz"], "there is no such folder"),
        (["a", "--npz", "maps.png"], "a name that ends in .npz"),
        (["a", "--heads"], "takes no text"),
        (["--heads", "--layer", "1"], "takes no --layer"),
    ],
)
def test_what_is_refused(tfm: Tfm, run: Path, arguments: list[str], message: str) -> None:
    done = tfm("inspect", "--run", run, *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.fixture(scope="module")
def mixed(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose encoder attends to mixtures, which have no names."""
    folder = tmp_path_factory.mktemp("mixed") / "run"
    kernels = ["-s", "model.attention={encoder: linformer}", "-s", "model.linformer_rank=5"]
    with pytest.raises(SystemExit):
        main(
            [
                "train",
                "-c",
                str(files / "my.yaml"),
                "--run",
                str(folder),
                "-q",
                *TINY,
                *kernels,
                "-s",
                "train.max_steps=5",
            ]
        )
    return folder


def test_mixtures_are_not_looked_at_as_if_they_were_tokens(tfm: Tfm, mixed: Path, tmp_path: Path) -> None:
    found = tfm("inspect", "--run", mixed, TEXT, "-o", tmp_path / "maps.png", "--json")
    assert (found.code, set(found.json["weights"])) == (0, {"decoder", "cross"})
    assert "linformer" in found.err
    heads = tfm("inspect", "--run", mixed, "--heads", "--json").json["heads"]
    assert {head["place"] for head in heads} == {"decoder", "cross"}
    refused = tfm("inspect", "--run", mixed, TEXT, "--place", "encoder")
    assert (refused.code, "no map of tokens" in refused.err) == (2, True)
    checked = tfm("check", mixed, "--json")
    assert checked.code == 0
    assert {check["name"]: check["sound"] for check in checked.json["checks"]}[
        "warm-up"
    ] is False  # longer than the run
    assert all((check["advice"] is None) == check["sound"] for check in checked.json["checks"])
    assert tfm("report", mixed, "-o", tmp_path / "report.html", "--lines", 8).code == 0
