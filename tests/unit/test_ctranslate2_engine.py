"""The search by CTranslate2 behind the call of our own: limits, order, refusals, and a folder that stands alone."""

import hashlib
import json
import re
import sys
from pathlib import Path

import pytest
from decoding_rig import config, sentences, tokenizer
from export_rig import POSITIONS, both, export, pronounced

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import EOS, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.ctranslate2_engine import CTranslate2Engine, differences
from transformer_cli.decoding.forbidden import ForbiddenPhrases
from transformer_cli.decoding.pool import Finished
from transformer_cli.decoding.scoring import Pair, score_pairs
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.texts import _LINE_BREAKS
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError, UserError
from transformer_cli.export.folder import ExportFolder

UNTIED = {"tie_embeddings": "none"}  # so that </s> can be made likely
GREEDY = DecodeSettings(beam_size=1, length_penalty=0.0)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> tuple[BatchDecoder, CTranslate2Engine]:
    """One model behind both; half of its translations end before the limit."""
    ours, theirs = both(tmp_path_factory.mktemp("engine"), config(model=UNTIED), ends=3.0)
    return ours._decoder, theirs._decoder  # type: ignore[return-value]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [Source([*ids, EOS]) for ids in tokenizer().encode_src(sentences(40, seed=11, longest=8))]


def said(found: list[list[Finished]]) -> list[tuple[list[int], bool]]:
    return [(hypotheses[0].tokens, hypotheses[0].capped) for hypotheses in found]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_length_ratio": 0.2},
        {"max_length_ratio": 100.0},  # beyond the table of positions
        {"min_length": 0},
        {"min_length": 12},
        {"min_length": 10_000},  # more than the limit allows: it gives way
        {"no_repeat_ngram": 1, "max_length_ratio": 0.5},
        {"no_repeat_ngram": 2},
    ],
    ids=str,
)
def test_greedy_tokens_limits_and_cut_ends_are_ours(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source], changes: dict[str, object]
) -> None:
    how = GREEDY.but(changes)
    ours, theirs = engines
    found = theirs.search(sources, how)
    capped = [hypotheses[0].capped for hypotheses in found]
    if how.max_length_ratio == 100:
        longest = max(len(hypotheses[0].tokens) for hypotheses in found)
        assert longest == POSITIONS - 1
        assert [len(h[0].tokens) == longest for h in found] == capped
        return
    assert said(found) == said(ours.search(sources, how))
    assert any(capped)
    assert how.min_length > 12 or not all(capped)


def test_what_would_have_ended_at_the_limit_is_not_called_cut(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    longer = GREEDY.but({"min_length": 12})
    free = said(engines[0].search(sources, longer))
    ends = [(source, len(tokens)) for source, (tokens, capped) in zip(sources, free, strict=True) if not capped]
    just_enough = [(source, (n - 9 + 0.5) / len(source.ids), n) for source, n in ends]
    assert just_enough
    for source, ratio, n in just_enough:
        how = longer.but({"max_length_ratio": ratio})
        assert how.max_length(len(source.ids)) == n + 1
        ours, theirs = (said(engine.search([source], how)) for engine in engines)
        assert ours == theirs
        assert not theirs[0][1]


def test_scores_are_ours_but_for_what_must_not_be_chosen(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    how = GREEDY.but({"length_penalty": 0.7, "min_length": 0})
    ours, theirs = (engine.search(sources, how) for engine in engines)
    for our, their in zip(ours, theirs, strict=True):
        assert their[0].score == pytest.approx(our[0].score, rel=0.02)
        if their[0].capped:
            assert their[0].score == pytest.approx(our[0].score, abs=2e-3)  # scored afresh, with </s>


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("changes", [{}, {"min_length": 0}, {"max_length_ratio": 0.2}], ids=str)
def test_log_probabilities_and_scores_of_what_was_found_are_ours(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source], beam_size: int, changes: dict[str, object]
) -> None:
    how = DecodeSettings(beam_size=beam_size, n_best=beam_size).but(changes)
    ours, theirs = engines
    found = theirs.search(sources, how)
    asked = [(source.ids, hypothesis) for source, of_line in zip(sources, found, strict=True) for hypothesis in of_line]
    told = theirs.told(asked, how.but({"batch_size": 7}))
    pairs = [Pair(ids, hypothesis.tokens) for ids, hypothesis in asked]
    expected = score_pairs([ours._model], ours._runtime, pairs, how)
    for (_, before), after, reference in zip(asked, told, expected, strict=True):
        assert (after.tokens, after.capped) == (before.tokens, before.capped)
        assert before.log_probs == []
        assert after.log_probs == pytest.approx(reference.log_probs, abs=1e-4)
        assert after.score == pytest.approx(reference.score, abs=1e-4)


def test_the_n_best_are_different_and_in_the_order_of_our_penalty(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    how = DecodeSettings(beam_size=4, n_best=4, length_penalty=1.0)
    ours, theirs = (engine.search(sources, how) for engine in engines)
    for found in theirs:
        assert len(found) >= 4
        assert len({tuple(hypothesis.tokens) for hypothesis in found}) == len(found)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
    alike = [our[0].tokens == their[0].tokens for our, their in zip(ours, theirs, strict=True)]
    assert sum(alike) > len(alike) / 2  # the search differs, as differences() says
    by_tokens = [{tuple(hypothesis.tokens): hypothesis.score for hypothesis in found} for found in ours]
    shared = [
        (hypothesis.score, known[tuple(hypothesis.tokens)])
        for found, known in zip(theirs, by_tokens, strict=True)
        for hypothesis in found
        if tuple(hypothesis.tokens) in known
    ]
    assert len(shared) > 50
    assert all(their == pytest.approx(our, rel=0.02) for their, our in shared)


def test_batches_keep_the_order_and_change_nothing(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    engine = engines[1]
    whole = engine.search(sources, GREEDY)
    for small in ({"batch_size": 3}, {"batch_tokens": 1}, {"batch_size": 1}):
        assert said(engine.search(sources, GREEDY.but(small))) == said(whole)
    assert said(engine.search(sources[::-1], GREEDY)) == said(whole)[::-1]
    assert engine.search([], GREEDY) == []


def test_lines_in_pieces_blank_lines_and_n_best_through_the_translator(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path, config(model=UNTIED), ends=3.0)
    lines = ["", "hund.", " ".join(sentences(12, longest=20)), "\u3000", "katze baum"]
    how = DecodeSettings(beam_size=1, max_length_ratio=1.0)
    expected, found = (engine.translate_window(lines, how) for engine in (ours, theirs))
    assert [(t.text, t.pieces, t.capped) for t in found] == [(t.text, t.pieces, t.capped) for t in expected]
    assert found[2].pieces > 1
    assert len(theirs.translate_window(["hund."], how.but({"beam_size": 3, "n_best": 3}))[0].hypotheses) == 3


def test_what_differs_is_said_and_what_cannot_be_done_is_refused(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    assert differences(GREEDY) is None
    assert "length^0.6" in str(differences(DecodeSettings(length_penalty=0.6)))
    with pytest.raises(UserError, match="length_penalty is too large"):
        engines[1].search(sources, DecodeSettings(length_penalty=11))

    with pytest.raises(UserError, match=r"does not know sampling\n  hint: use --engine torch"):
        engines[1].search(sources[:1], DecodeSettings(beam_size=1, sampling=True))
    with pytest.raises(UserError, match="does not know prefixes"):
        engines[1].search([Source([5, EOS], prefix=[7])], GREEDY)
    for wish in ({"forbidden": ForbiddenPhrases(["a"], [])}, {"required": [[7]]}):
        with pytest.raises(UserError, match="does not know phrases"):
            engines[1].search([Source([5, EOS], **wish)], GREEDY)


def test_plain_normalisation_is_the_engines_own(
    engines: tuple[BatchDecoder, CTranslate2Engine], sources: list[Source]
) -> None:
    how = DecodeSettings(beam_size=1, length_normalization="plain")
    ours, theirs = (engine.search(sources, how) for engine in engines)
    for our, their in zip(ours, theirs, strict=True):
        assert their[0].score == pytest.approx(our[0].score, rel=0.02)


@pytest.mark.parametrize(
    ("device", "message"),
    [("tpu", "unknown device"), ("cuda:x", "unknown device"), ("cuda:99", "is not there")],
)
def test_devices_that_are_not_there_are_refused(tmp_path: Path, device: str, message: str) -> None:
    folder = export(pronounced(config()), config(), tmp_path)
    with pytest.raises(UserError, match=message):
        CTranslate2Engine(folder, device)


def test_without_the_package_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = export(pronounced(config()), config(), tmp_path)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r"not installed(.|\n)*pip install 'transformer-cli\[ctranslate2\]'"):
        CTranslate2Engine(folder)


@pytest.mark.parametrize("damage", ["model.bin", "export.json", "recipe", "format", "type", "tokenizer.model"])
def test_a_damaged_folder_is_named(tmp_path: Path, damage: str) -> None:
    export(pronounced(config()), config(), tmp_path)
    description = json.loads((tmp_path / "export.json").read_bytes())
    changed = {"recipe": {"recipe": {}}, "format": {"format": 99}, "type": {"positions": "many"}}
    if damage in changed:
        (tmp_path / "export.json").write_text(json.dumps(description | changed[damage]), encoding="utf-8")
    else:
        (tmp_path / damage).write_bytes(b"{broken")
    with pytest.raises(UserError) as raised:
        Translator.from_run(tmp_path, "cpu", engine="ctranslate2")
    assert str(tmp_path) in str(raised.value)


def test_an_export_is_found_in_and_beside_its_run_and_only_with_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(RunError, match=r"has no CTranslate2 export(.|\n)*tfm export --run"):
        ExportFolder.of(run)
    monkeypatch.chdir(tmp_path)
    for place, named in ((run, str(tmp_path)), (Path("run"), "in run-ctranslate2")):
        with pytest.raises(RunError, match="no CTranslate2 export") as raised:
            ExportFolder.of(place)
        assert (str(tmp_path) in str(raised.value), named in str(raised.value)) == (place.is_absolute(), True)
    made = export(pronounced(config()), config(), run / "ctranslate2")
    with pytest.raises(RunError, match=r"from other weights(.|\n)*--overwrite"):
        ExportFolder.of(run)
    description = json.loads((made.path / "export.json").read_bytes())
    description["weights_sha256"] = hashlib.sha256(b"weights").hexdigest()
    (made.path / "export.json").write_text(json.dumps(description), encoding="utf-8")
    assert ExportFolder.of(run).path == made.path
    beside = made.path.rename(tmp_path / "run-ctranslate2")
    assert ExportFolder.of(run).path == beside
    monkeypatch.chdir(run)
    assert ExportFolder.of(Path()).path.resolve() == beside
    assert ExportFolder.of(beside).config == config()


def follow_the_readme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run the code of README.txt, as somebody without this package would."""
    text = (folder / "README.txt").read_text(encoding="utf-8")
    code = "\n".join(line[4:] for line in text.splitlines() if re.match(r" {4}|$", line))
    names: dict[str, object] = {}
    monkeypatch.chdir(folder)
    exec(compile(code, "README.txt", "exec"), names)
    return names


@pytest.mark.parametrize("joint", [True, False])
def test_the_folder_alone_answers_by_its_own_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], joint: bool
) -> None:
    how = config(
        model={"tie_embeddings": "decoder"},
        tokenizer={"joint": joint},
        decode={"beam_size": 1, "max_length_ratio": 0.5, "length_penalty": 0.6, "no_repeat_ngram": 3},
    )
    ours, theirs = both(tmp_path / "made", how, tokenizer=tokenizer() if joint else two_sided())
    lines = sentences(20, seed=2, longest=8)
    moved = (tmp_path / "made").rename(tmp_path / "moved")
    translate = follow_the_readme(moved, monkeypatch)["translate"]
    alone = [translate(line).translate(_LINE_BREAKS) for line in lines]  # type: ignore[operator]
    assert alone == ours.translate(lines) == theirs.translate(lines)
    assert capsys.readouterr().out.count("\n") == 1  # the example of the README


def two_sided() -> Tokenizer:
    text = sentences(200)
    loud = [line.upper() for line in text]
    return train_tokenizer(TokenizerConfig(vocab_size=400, joint=False), text, loud, lambda _: None)


def test_the_readme_of_several_languages_puts_the_tag_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = sentences(200)
    tagged = train_tokenizer(TokenizerConfig(vocab_size=400), text, text, lambda _: None, ["de", "fr"])
    train = {"src": "a.en", "tgt": "a.de"}
    how = config(
        data={"corpus": None, "train": train, "more_targets": [{"lang": "fr", "train": train}]},
        decode={"beam_size": 1, "max_length_ratio": 0.5},
    )
    ours, theirs = both(tmp_path, how, tokenizer=tagged)
    described = json.loads((tmp_path / "export.json").read_bytes())
    assert described["languages"] == {"source": "en", "targets": ["de", "fr"], "tags": {"de": "<2de>", "fr": "<2fr>"}}
    readme = (tmp_path / "README.txt").read_text(encoding="utf-8")
    assert "The first token of the source asks for the language: <2de> for de, <2fr> for fr." in readme
    lines = sentences(10, seed=2, longest=8)
    translate = follow_the_readme(tmp_path, monkeypatch)["translate"]
    alone = [translate(line).translate(_LINE_BREAKS) for line in lines]  # type: ignore[operator]
    assert alone == ours.translate(lines) == theirs.translate(lines)
    french = Translator.from_run(tmp_path, "cpu", "fr", "ctranslate2").translate(lines)
    assert french != theirs.translate(lines)
