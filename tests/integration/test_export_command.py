"""``tfm export`` and ``tfm translate --engine ctranslate2``: the run answers from another engine, or says why not."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Tfm
from safetensors.torch import load_file, save_file

import transformer_cli
from transformer_cli.checkpoint.own_files import refuse_foreign
from transformer_cli.commands import export_check

LINES = ["one cats sleep.", "two dogs wait.", "", "six books fall.", "two " * 500]


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run with an export inside; tests read it."""
    copy = tmp_path_factory.mktemp("exported") / "run"
    shutil.copytree(run, copy)
    return copy


@pytest.fixture
def export(tfm: Tfm, exported: Path) -> Path:
    folder = exported / "ctranslate2"
    if not folder.exists():
        done = tfm("export", "--run", exported)
        assert done.code == 0, done.err
        assert (
            "float32        30 of 30 (100.0 %) identical to the run, greedy, dev lines of the run" in done.out.decode()
        )
    return folder


def test_both_engines_translate_alike(tfm: Tfm, exported: Path, export: Path, tmp_path: Path) -> None:
    data = "".join(f"{line}\n" for line in LINES).encode()
    (tmp_path / "in.txt").write_bytes(data)
    plain = tfm("translate", "--run", exported, "-b", "1", *LINES)
    from_run = tfm("translate", "--run", exported, "--engine", "ctranslate2", "-b", "1", *LINES)
    from_pipe = tfm("translate", "--run", export, "--engine", "ctranslate2", "-b", "1", stdin=data)
    command = ["translate", "--run", export, "--engine", "ctranslate2", "-b", "1"]
    from_file = tfm(*command, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    assert [plain.code, from_run.code, from_pipe.code, from_file.code] == [0, 0, 0, 0]
    assert plain.out == from_run.out == from_pipe.out == (tmp_path / "out.txt").read_bytes()
    assert plain.lines[2] == ""
    assert transformer_cli.load(str(export), engine="ctranslate2").translate(LINES[:2], beam_size=1) == plain.lines[:2]
    assert from_run.err == plain.err  # the long line is named; greedy search has nothing else to say
    assert "translated in pieces: line 5" in plain.err


def test_n_best_and_documents_keep_their_form(tfm: Tfm, export: Path) -> None:
    command = ["translate", "--run", export, "--engine", "ctranslate2", "--n-best", "3"]
    texts = tfm(*command, *LINES[:2])
    objects = [json.loads(line) for line in tfm(*command, "--format", "jsonl", *LINES[:2]).lines]
    document = tfm(*command, "--json", *LINES[:2]).json
    assert len(texts.lines) == 6
    assert document["translations"] == objects
    assert [h["text"] for o in objects for h in o["translations"]] == texts.lines
    assert texts.err.count("engine ctranslate2: beam search") == 1
    assert tfm(*command, "--quiet", *LINES[:2]).err == ""


def test_wishes_are_refused_by_their_option(tfm: Tfm, export: Path) -> None:
    command = ["translate", "--run", export, "--engine", "ctranslate2", "--format", "jsonl"]
    for wish in ("--alignment", "--sample", "--mbr 4", "--early-stopping", "--shortlist", "--prefix a", "--workers 2"):
        refused = tfm(*command, *wish.split(), LINES[0])
        assert refused.code == 2
        assert (
            f"error: the engine ctranslate2 does not know {wish.split()[0]}\n  hint: use --engine torch" in refused.err
        )
        assert refused.err.count("\n") == 2


def objects(tfm: Tfm, run: Path, *options: str) -> list[dict[str, Any]]:
    done = tfm("translate", "--run", run, "-b", "1", "--format", "jsonl", *options, *LINES)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines]


def test_translations_say_of_themselves_what_our_engine_says(tfm: Tfm, exported: Path, export: Path) -> None:
    for ours, theirs in zip(objects(tfm, exported), objects(tfm, export, "--engine", "ctranslate2"), strict=True):
        assert theirs["tokens"] == ours["tokens"]
        for name in ("token_logprobs", "end_logprobs"):
            assert theirs[name] == pytest.approx(ours[name], abs=1e-4)
        assert theirs["score"] == pytest.approx(ours["score"], abs=1e-4)


def test_scores_are_those_of_given_translations(tfm: Tfm, exported: Path, export: Path, tmp_path: Path) -> None:
    best = objects(tfm, export, "--engine", "ctranslate2")[:2]
    (tmp_path / "src").write_text("".join(f"{line}\n" for line in LINES[:2]), encoding="utf-8")
    (tmp_path / "tgt").write_text("".join(f"{line['translation']}\n" for line in best), encoding="utf-8")
    done = tfm("score", "--run", exported, "--format", "jsonl", tmp_path / "src", tmp_path / "tgt")
    scored = [json.loads(line) for line in done.lines]
    alike = [number for number in (0, 1) if scored[number]["tokens"] == best[number]["tokens"]]
    assert alike  # the usual spelling of the text is what was found
    for number in alike:
        assert best[number]["score"] == pytest.approx(scored[number]["score"], abs=1e-4)
        assert best[number]["token_logprobs"] == pytest.approx(scored[number]["token_logprobs"], abs=1e-4)


def test_confidence_holds_for_an_export_of_the_weights_in_float32(
    tfm: Tfm, exported: Path, export: Path, files: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(exported, tmp_path / "calibrated"))
    fit = ["eval", "--run", copy, "-b", "1", "--calibrate", "--src", files / "train.en", "--ref", files / "train.de"]
    assert tfm(*fit, "--bootstrap", "0").code == 0
    assert all(tfm(what, "--run", copy, "--quiet").code == 0 for what in ("eval", "shortlist"))
    step = next((copy / "checkpoints").iterdir())
    assert tfm("export", "--run", step, "--quiet").code == 0
    refuse_foreign(copy)  # all that commands write into a run is a run's own
    ours = [line["confidence"] for line in objects(tfm, copy)]
    assert sum(told is not None for told in ours) == len(LINES) - 1  # a line is blank
    for place in (copy, copy / "ctranslate2"):
        told = [line["confidence"] for line in objects(tfm, place, "--engine", "ctranslate2")]
        assert told == [None if p is None else pytest.approx(p, abs=1e-4) for p in ours]
    other = tfm("translate", "--run", copy, "--engine", "ctranslate2", "-b", "2", "--format", "jsonl", LINES[0])
    assert "was fitted for another translation (beam_size differ)" in other.err
    description = json.loads((copy / "ctranslate2/export.json").read_bytes())
    for change, told in (
        ({"quantization": "int8"}, "confidence was not fitted to weights in int8, so it is left out\n"),
        ({"weights_sha256": "0" * 64}, "(weights differ)"),
    ):
        (copy / "ctranslate2/export.json").write_text(json.dumps(description | change), encoding="utf-8")
        command = ["translate", "--run", copy / "ctranslate2", "--engine", "ctranslate2", "-b", "1"]
        done = tfm(*command, "--format", "jsonl", LINES[0])
        assert told in done.err
        assert json.loads(done.lines[0])["confidence"] is None
        assert tfm(*command, LINES[0]).err == ""


@pytest.mark.parametrize("check", [{"lines": 1, "identical": 3}, {"lines": 1}, [1]])
def test_a_description_of_another_shape_is_damaged(tfm: Tfm, export: Path, tmp_path: Path, check: object) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    description = json.loads((copy / "export.json").read_bytes())
    (copy / "export.json").write_text(json.dumps(description | {"check": check}), encoding="utf-8")
    done = tfm("translate", "--run", copy, "--engine", "ctranslate2", LINES[0])
    assert (done.code, "export.json: is damaged" in done.err) == (2, True)


def test_a_flipped_bit_is_noticed(tfm: Tfm, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    model = bytearray((copy / "model.bin").read_bytes())
    model[len(model) // 2] ^= 1
    (copy / "model.bin").write_bytes(model)
    command = ["translate", "--run", copy, "--engine", "ctranslate2", LINES[0]]
    done = tfm(*command)
    assert (done.code, "model.bin: is damaged" in done.err) == (2, True)
    description = json.loads((copy / "export.json").read_bytes())
    del description["model_sha256"]  # as earlier versions wrote it
    (copy / "export.json").write_text(json.dumps(description), encoding="utf-8")
    assert tfm(*command).code == 0


def test_a_vocabulary_that_does_not_fit_is_told_when_it_is_loaded(tfm: Tfm, export: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(export, tmp_path / "copy")
    (copy / "shared_vocabulary.json").write_text("[]", encoding="utf-8")
    done = tfm("translate", "--run", copy, "--engine", "ctranslate2", LINES[0])
    assert (done.code, "CTranslate2 cannot load the model" in done.err) == (2, True)


def test_the_folder_alone_translates_without_torch(export: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(export, alone)
    program = (
        "import sys, contextlib\n"
        "from transformer_cli.cli import main\n"
        f"command = ['translate', '--run', {str(alone)!r}, '--engine', 'ctranslate2', 'one cats sleep.']\n"
        "with contextlib.suppress(SystemExit): main(command)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, loaded = done.stdout.splitlines()
    assert first
    assert loaded == "False"


def test_a_quantised_export_says_how_it_compares(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    done = tfm("export", "--run", run, "-o", tmp_path / "small", "--quantization", "int8", "--json")
    assert done.code == 0
    report = done.json
    assert list(report["agreement"]) == ["float32", "int8"]
    assert report["agreement"]["float32"]["identical"] == 30
    described = json.loads((tmp_path / "small" / "export.json").read_bytes())
    assert described["quantization"] == "int8"
    assert described["check"]["identical"]["int8"] == report["agreement"]["int8"]["identical"] > 0
    assert tfm("translate", "--run", tmp_path / "small", "--engine", "ctranslate2", "one cats sleep.").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small"]
    assert not [path for path in (tmp_path / "small").iterdir() if path.suffix in (".pkl", ".pt", ".tmp")]


def test_a_checkpoint_is_exported_too_and_phrases_stand_in_for_lost_dev_files(
    tfm: Tfm, run: Path, files: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    config = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").write_text(config.replace(str(files), str(tmp_path / "gone")), encoding="utf-8")
    (checkpoint,) = list((copy / "checkpoints").iterdir())[-1:]
    done = tfm("export", "--run", checkpoint, "-o", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert done.json["lines"] == "phrasebook lines in en"
    assert "cannot be read, checking with the phrasebook instead" in done.err


def test_an_export_that_translates_otherwise_is_not_kept(
    tfm: Tfm, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformer_cli.export import ctranslate2_positions

    monkeypatch.setattr(ctranslate2_positions, "sinusoidal_table", lambda n, width: torch.zeros(n, width))
    done = tfm("export", "--run", run, "-o", tmp_path / "out")
    assert done.code == 1
    assert "translates otherwise than the run and was not kept" in done.err
    assert "99 % of the lines" in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_stays(tfm: Tfm, run: Path, export: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine", encoding="utf-8")
    for overwrite in ([], ["--overwrite"]):
        done = tfm("export", "--run", run, "-o", mine, *overwrite)
        assert (done.code, "in the way and is not an export" in done.err) == (2, True)
    refused = tfm("export", "--run", run, "-o", export)
    assert (refused.code, "replace it with --overwrite" in refused.err) == (2, True)
    shutil.copytree(export, tmp_path / "old")
    (tmp_path / "old" / "export.json").touch()
    (tmp_path / "old" / "stale").write_text("stale", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    assert tfm("export", "--run", run, "-o", tmp_path / "link", "--overwrite").code == 0
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "old" / "stale").exists()
    assert (mine / "file").read_text(encoding="utf-8") == "mine"


def test_other_weights_than_the_exported_ones_are_noticed(
    tfm: Tfm, export: Path, exported: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(exported, copy)
    weights = load_file(copy / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, copy / "model.safetensors")
    refused = tfm("translate", "--run", copy, "--engine", "ctranslate2", "one")
    assert (refused.code, "from other weights than the run has now" in refused.err) == (2, True)
    assert tfm("translate", "--run", copy / "ctranslate2", "--engine", "ctranslate2", "one").code == 0


def test_wrong_engines_folders_and_a_missing_package_are_the_users_to_mend(
    tfm: Tfm, run: Path, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = tfm("translate", "--run", export, "one")
    assert (refused.code, "add --engine ctranslate2" in refused.err) == (2, True)
    refused = tfm("translate", "--run", run, "--engine", "ctranslate2", "one")
    assert (refused.code, f"tfm export --run {run}" in refused.err) == (2, True)
    assert tfm("translate", "--run", run, "--engine", "fast", "one").code == 2
    refused = tfm("export", "--run", run, "--quantization", "int4")
    assert (refused.code, "'int4' is not one of 'float32'" in refused.err, "Value error" in refused.err) == (
        2,
        True,
        False,
    )
    assert tfm("export", "--run", tmp_path / "none").code == 2
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused = tfm("export", "--run", run, "-o", tmp_path / "file" / "out")
    assert (refused.code, f"{tmp_path / 'file' / 'out'}: cannot be written" in refused.err) == (2, True)
    assert "choose another folder with --output" in refused.err
    assert not any(wrong in refused.err for wrong in (".tmp", "--run"))
    refused = tfm("translate", "--run", export, "--engine", "ctranslate2", "--to", "fr", "one")
    assert (refused.code, "does not translate into that language" in refused.err) == (2, True)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for command in (["export", "--run", run], ["translate", "--run", export, "--engine", "ctranslate2", "one"]):
        refused = tfm(*command)
        assert (refused.code, "pip install 'transformer-cli[ctranslate2]'" in refused.err) == (2, True)


def test_agreement_counts_and_judges() -> None:
    assert str(export_check.Agreement(198, 200, ("a", "b", "c"))) == "198 of 200 (99.0 %)"
    export_check.refuse_unlike(export_check.Agreement(198, 200, ("a", "b", "c")))
    with pytest.raises(Exception, match="197 of 200"):
        export_check.refuse_unlike(export_check.Agreement(197, 200, ("a", "b", "c")))


def test_auto_takes_the_export_where_it_says_the_same(
    tfm: Tfm, exported: Path, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tfm("translate", "--run", exported, "-b", "1", *LINES)

    def told(run: Path, *options: str) -> str:
        done = tfm("translate", "--run", run, "--engine", "auto", *options, LINES[0])
        assert done.code == 0, done.err
        return done.err.splitlines()[0]

    taken = tfm("translate", "--run", exported, "--engine", "auto", "-b", "1", *LINES)
    assert taken.out == plain.out
    assert taken.err.splitlines()[0] == told(export, "-b", "1") == "engine ctranslate2"
    assert told(exported, "-b", "2") == "engine torch: with a beam ctranslate2 may find other translations"
    assert told(exported, "-b", "1", "--format", "jsonl") == "engine ctranslate2"
    assert "does not know --prefix" in told(exported, "-b", "1", "--prefix", "zwei")
    assert "does not know --sample" in told(exported, "--sample")
    early = shutil.copytree(exported, tmp_path / "early") / "ctranslate2" / "export.json"
    described = json.loads(early.read_text(encoding="utf-8"))
    described["recipe"]["decode"]["early_stopping"] = True
    early.write_text(json.dumps(described), encoding="utf-8")
    assert told(tmp_path / "early", "-b", "1").endswith("the engine ctranslate2 does not know early_stopping")
    (tmp_path / "in.jsonl").write_text('{"source": "a", "prefix": "b"}\n', encoding="utf-8")
    done = tfm("translate", "--run", exported, "--engine", "auto", "-b", "1", "-i", tmp_path / "in.jsonl")
    assert (done.code, done.err.splitlines()[0]) == (0, "engine torch: JSON lines may bring prefixes")
    bare = shutil.copytree(exported, tmp_path / "bare", ignore=shutil.ignore_patterns("ctranslate2"))
    assert "has no CTranslate2 export" in told(bare, "-b", "1")
    unlike = shutil.copytree(exported, tmp_path / "unlike")
    described = json.loads((unlike / "ctranslate2" / "export.json").read_text(encoding="utf-8"))
    described["check"]["identical"]["float32"] -= 1
    (unlike / "ctranslate2" / "export.json").write_text(json.dumps(described), encoding="utf-8")
    assert "did not translate all lines of its check" in told(unlike, "-b", "1")
    described["check"]["identical"]["float32"] += 1
    described["quantization"] = "int8"
    (unlike / "ctranslate2" / "export.json").write_text(json.dumps(described), encoding="utf-8")
    assert "did not translate all lines of its check" in told(unlike, "-b", "1")
    monkeypatch.setattr("transformer_cli.commands.shared.engine_choice.find_spec", lambda _: None)
    assert told(exported, "-b", "1") == "engine torch: ctranslate2 is not installed"
