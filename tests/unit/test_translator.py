import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from decoding_rig import config, sentences, tokenizer, transformer, translator

from transformer_cli.checkpoint import RunFolder
from transformer_cli.commands.translate.formats import RENDER
from transformer_cli.decoding.batch_decoder import BatchDecoder
from transformer_cli.decoding.pool import Finished, length_norm
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.source import Source
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import RunError, UserError

HOW = DecodeSettings(beam_size=2, max_length_ratio=0.5)
BLANKS = ["", " ", "\t", "\u00a0", "\u3000 \u00a0", "\u2028", "\x0c"]


@pytest.fixture(scope="module")
def small() -> Translator:
    return translator(transformer(config(), weights=2.0), config())


def say(monkeypatch: pytest.MonkeyPatch, translator: Translator, *texts: str) -> None:
    """Let the search find these texts for every source."""
    found = [Finished(-rank, tokenizer().encode_tgt([text])[0], False) for rank, text in enumerate(texts)]
    monkeypatch.setattr(BatchDecoder, "search", lambda self, sources, settings: [found for _ in sources])


def test_translate_and_stream_agree_in_order(small: Translator) -> None:
    lines = sentences(30, seed=1)
    streamed = list(small.stream(lines, DecodeSettings(beam_size=2), window=7))
    assert [translation.source for translation in streamed] == lines
    overridden = small.translate(lines, beam_size=2)
    one_by_one = [small.translate([line], beam_size=2)[0] for line in lines[:5]]
    recipe = DecodeSettings.from_config(small.config.decode).but({"beam_size": 2})
    assert overridden == [translation.text for translation in small.stream(lines, recipe)]
    assert overridden[:5] == one_by_one
    assert len(set(overridden)) > 10


def test_blank_lines_stay_blank_and_cost_nothing(small: Translator) -> None:
    lines = [*BLANKS, "ein hund.", *BLANKS]
    translations = list(small.stream(lines, HOW))
    texts = [translation.text for translation in translations]
    assert texts[: len(BLANKS)] == texts[-len(BLANKS) :] == [""] * len(BLANKS)
    assert texts[len(BLANKS)] == small.translate_window(["ein hund."], HOW)[0].text
    assert [translation.pieces for translation in translations] == [0] * len(BLANKS) + [1] + [0] * len(BLANKS)


def test_what_is_alike_is_searched_once(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["ein hund.", "zwei hund.", "ein hund.", "", "ein hund.", "ein hund."]
    wishes = [None, None, None, None, "ein", "ein rot"]
    alone = [small.translate_window([line], HOW, prefixes=[wish])[0] for line, wish in zip(lines, wishes, strict=True)]
    search, asked = BatchDecoder.search, []

    def counted(self: BatchDecoder, sources: list[Source], settings: DecodeSettings) -> list[list[Finished]]:
        asked.append(len(sources))
        return search(self, sources, settings)

    monkeypatch.setattr(BatchDecoder, "search", counted)
    assert small.translate_window(lines, HOW, prefixes=wishes) == alone
    assert small.translate_window(["a" * 20_000], replace(HOW, beam_size=1))[0].pieces > 500
    drawn = small.translate_window(lines[:3], DecodeSettings(beam_size=1, sampling=True))
    assert asked == [4, 3, 3]  # a line without a space: its beginning, its end, and all between that is alike
    assert drawn[0].text != drawn[2].text


def test_samples_of_an_over_long_line_are_joined_by_draw_and_ordered_afterwards(
    small: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [tokenizer().encode_tgt([word])[0] for word in ("hund", "katze", "baum", "see")]
    first = [Finished(-score, ids[draw], False, [], draw) for draw, score in enumerate([3.0, 1.0, 2.0])]
    last = [Finished(-score, ids[3 - draw], False, [], draw) for draw, score in enumerate([1.0, 9.0, 1.0])]
    pieces = [sorted(piece, key=lambda sample: -sample.score) for piece in (first, last)]
    monkeypatch.setattr(BatchDecoder, "search", lambda self, asked, settings: pieces[: len(asked)])
    drawn = DecodeSettings(beam_size=3, n_best=3, sampling=True)
    (found,) = small.translate_window(["hund " * 60], drawn)
    assert found.pieces == 2
    assert [(h.text, h.score) for h in found.hypotheses] == [("baum katze", -1.5), ("hund see", -2), ("katze baum", -5)]
    del pieces[1][1]  # a draw that ended with nothing
    assert [h.score for h in small.translate_window(["hund " * 60], drawn)[0].hypotheses] == [-2, -5, -math.inf]
    pieces = [[], []]
    assert small.translate_window(["hund " * 60], drawn)[0].failed


def test_no_lines(small: Translator) -> None:
    assert small.translate([]) == []


def test_only_blank_lines_never_reach_the_model(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*_: object) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr(type(small._decoder._model), "encode", encode)
    assert small.translate(BLANKS) == [""] * len(BLANKS)


def test_line_breaks_in_the_output_become_spaces(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, small, "a\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch\x1ci\x1dj\x1ek")
    (text,) = small.translate(["ein hund."])
    assert text == "a b c d e f g h i j k"
    assert len(text.splitlines()) == 1


def test_n_best_holds_no_text_twice(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, small, "hund", "hund", "katze", "hund", "baum")
    (translation,) = small.stream(["ein hund."], DecodeSettings(beam_size=3, n_best=3))
    assert [(h.text, h.score) for h in translation.hypotheses] == [("hund", 0), ("katze", -2), ("baum", -4)]


def test_n_best_of_a_real_search(small: Translator) -> None:
    for translation in small.stream(sentences(8, seed=2), DecodeSettings(beam_size=4, n_best=4, max_length_ratio=0.5)):
        scores = [h.score for h in translation.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({h.text for h in translation.hypotheses}) == len(scores) <= 4
        assert translation.text == small.translate_window([translation.source], HOW_4)[0].text


HOW_4 = DecodeSettings(beam_size=4, max_length_ratio=0.5)


def test_a_long_line_is_translated_in_pieces(small: Translator) -> None:
    first, second = " ".join(["hund"] * 12) + ".", " ".join(["katze"] * 15) + "?"
    assert max(len(ids) for ids in tokenizer().encode_src([first, second])) <= 39 < 27 * 2
    long = " ".join([first, second] * 4)
    (whole,) = small.stream([long], HOW)
    assert whole.pieces > 1
    assert all(small.translate_window([part], HOW)[0].pieces == 1 for part in (first, second))
    assert len(whole.text.split()) > len(small.translate_window([first], HOW)[0].text.split())


def test_pieces_are_those_of_cutting_and_join_in_order(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def echo(self: BatchDecoder, asked: list[Source], settings: DecodeSettings) -> list[list[Finished]]:
        seen.extend(list(sentence.ids) for sentence in asked)
        return [[Finished(-1.0 - n, list(sentence.ids[:-1]), n == 1)] for n, sentence in enumerate(asked)]

    monkeypatch.setattr(BatchDecoder, "search", echo)
    line = " ".join(sentences(12, seed=3))  # no part of it twice
    (translation,) = small.stream([line], HOW)
    assert translation.pieces == len(seen) > 1
    assert all(len(source) <= 40 and source[-1] == 3 for source in seen)
    assert translation.text == line
    assert translation.capped
    assert translation.hypotheses[0].score == pytest.approx(-1 - (len(seen) - 1) / 2)


def test_log_probs_explain_the_score(small: Translator) -> None:
    how = DecodeSettings(beam_size=3, n_best=3, max_length_ratio=0.5, length_penalty=0.7)
    for translation in small.stream([*sentences(6, seed=5), ""], how):
        for found in translation.hypotheses:
            assert found.token_logprobs is not None
            assert found.end_logprobs is not None
            assert len(found.token_logprobs) == len(found.tokens)
            assert len(found.end_logprobs) == translation.pieces
            total = sum(found.token_logprobs) + sum(found.end_logprobs)
            assert found.score == pytest.approx(total / length_norm(len(found.tokens) + 1, how), abs=1e-6)


def test_log_probs_of_pieces_are_concatenated(small: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [[Finished(-1.0, [20, 21], False, [-0.1, -0.2, -0.3])], [Finished(-1.0, [22], False, [-0.4, -0.5])]]
    monkeypatch.setattr(BatchDecoder, "search", lambda self, asked, settings: parts[: len(asked)])
    (translation,) = small.translate_window(["hund " * 60], HOW)
    assert translation.pieces == 2
    assert translation.hypotheses[0].token_logprobs == [-0.1, -0.2, -0.4]
    assert translation.hypotheses[0].end_logprobs == [-0.3, -0.5]
    parts[1] = [Finished(-1.0, [22], False)]
    assert small.translate_window(["hund " * 60], HOW)[0].hypotheses[0].token_logprobs is None


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_line_of_any_length_is_translated(positions: str) -> None:
    how = config(model={"positions": positions}, data={"max_length": 16})
    lines = ["hund " * 2000, "x" * 300, "你" * 100, "ein hund.", "\U0001f600" * 30]
    translations = list(translator(transformer(how), how).stream(lines, HOW))
    assert [translation.source for translation in translations] == lines
    assert [translation.pieces > 1 for translation in translations] == [True, True, True, False, True]
    assert all(translation.text for translation in translations)


def test_capped_is_told(small: Translator) -> None:
    silent = transformer(config())
    with torch.no_grad():
        silent.tgt_embedding.tokens.weight[3] = 0  # </s> is never worth it
        silent.decoder.norm.weight.zero_()
        silent.decoder.norm.bias.copy_(silent.tgt_embedding.tokens.weight[7])
    (translation,) = translator(silent, config()).stream(["ein hund."], HOW)
    assert translation.capped
    assert (
        len(translation.hypotheses[0].tokens) == HOW.max_length(len(tokenizer().encode_src(["ein hund."])[0]) + 1) - 1
    )


def test_a_window_is_never_exceeded_and_answered_before_the_next(
    small: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, small, "hund")
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield f"hund {number}"

    stream = small.stream(endless(), HOW, window=5)
    for number, translation in enumerate(itertools.islice(stream, 203)):
        assert translation.source == f"hund {number}"
        assert number < taken <= (number // 5 + 1) * 5
    line_by_line = small.stream(endless(), HOW, window=1)
    taken = 0
    for answered in range(1, 20):
        next(line_by_line)
        assert taken == answered


def test_translating_leaves_no_trace_in_a_model_that_is_being_trained() -> None:
    how = config(model={"dropout": 0.3})
    model = transformer(how)
    model.train()
    model.encoder.layers[0].eval()  # a part that is frozen stays frozen
    modes = [module.training for module in model.modules()]
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = translator(model, how).translate(["ein hund.", "zwei katze"])
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in model.modules()] == modes
    assert first == translator(model.eval(), how).translate(["ein hund.", "zwei katze"])
    model.train()
    model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 5]])).sum().backward()  # what inference made can be trained with
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "transformer_xl", "t5", "alibi"])
def test_a_search_further_than_training_has_been_leaves_positions_to_train_with(positions: str) -> None:
    """130 tokens: more than a table of positions has to begin with, so the search makes a longer one."""
    how = config(model={"positions": positions}, data={"max_length": 200}, decode={"min_length": 130})
    model = transformer(how)
    step = (torch.tensor([[5, 6, 3]]), torch.tensor([[2, 5]]))
    model.train()
    model(*step).sum().backward()
    line, search = " ".join(["ein hund"] * 70), DecodeSettings.from_config(how.decode)
    (found,) = translator(model, how).translate_window([line], search)
    assert found.pieces == 1
    assert len(found.hypotheses[0].tokens) >= 130
    model(*step).sum().backward()


def test_a_diverged_model_answers_every_line() -> None:
    model = transformer(config())
    with torch.no_grad():
        model.encoder.norm.weight.fill_(float("nan"))
    lines = ["ein hund.", "", "zwei katze"]
    assert translator(model, config()).translate(lines) == ["", "", ""]


def test_a_line_for_which_nothing_was_found_has_no_score_in_json(
    small: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchDecoder, "search", lambda self, asked, settings: [[] for _ in asked])
    (found,) = small.translate_window(["ein hund."], HOW)
    assert (found.failed, found.capped, found.text) == (True, False, "")
    (line,) = RENDER["jsonl"](found, 0, 1, {}).splitlines()
    assert json.loads(line, parse_constant=pytest.fail)["score"] is None
    assert not small.translate_window([" "], HOW)[0].failed


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(UserError, match="n-best"):
        DecodeSettings(beam_size=2, n_best=3)


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_half_precision(amp: str) -> None:
    from transformer_cli.runtime import Runtime

    model = transformer(config(), weights=2.0)
    runtime = Runtime.resolve("cpu", amp)  # type: ignore[arg-type]
    half = Translator.of_model(model, tokenizer(), config(), runtime)
    lines = sentences(12, seed=4)
    assert all(half.translate(lines))
    assert half.translate(lines, batch_size=5) == half.translate(lines)


def test_from_run(tmp_path: Path, small: Translator) -> None:
    how = config()
    run = RunFolder.create(tmp_path / "run", how, tokenizer(), {}, overwrite=False)
    run.save_model(dict(small._decoder._model.named_parameters()))
    lines = sentences(5, seed=6)
    assert Translator.from_run(tmp_path / "run").translate(lines) == small.translate(lines)
    with pytest.raises(RunError):
        Translator.from_run(tmp_path / "nothing")
