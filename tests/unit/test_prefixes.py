import pytest
from decoding_rig import config, sentences, tokenizer, transformer, translator
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.data.tokenizer import UNK
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.decoding.translator import Translator
from transformer_cli.decoding.wishes import Wishes
from transformer_cli.errors import UserError

HOW = DecodeSettings(beam_size=2, max_length_ratio=0.5)
ODD = st.text(st.sampled_from("eiznhudratKß ,.你好\u3000\U0001f600e\u0301"), min_size=1, max_size=8)


def prefix_ids(text: str, limit: int) -> list[int]:
    return Wishes(tokenizer(), "de", "en", limit).prefix_ids(text)


@pytest.fixture(scope="module")
def small() -> Translator:
    return translator(transformer(config(), weights=2.0), config())


@pytest.mark.parametrize(
    "prefix", ["ein", "ein hun", "Ein H", "zwei  katzen,", "你好", "\U0001f600", "e\u0301", "x-\u0301", "1.5"]
)
@pytest.mark.parametrize("changes", [{}, {"beam_size": 1}, {"sampling": True, "beam_size": 3, "n_best": 3}])
def test_every_translation_starts_with_its_prefix(small: Translator, prefix: str, changes: dict[str, object]) -> None:
    lines = sentences(4, seed=3, longest=6)
    found = small.translate_window(lines, HOW.but(changes), prefixes=[prefix] * 4)
    texts = [hypothesis.text for translation in found for hypothesis in translation.hypotheses]
    assert all(text.startswith(prefix) for text in texts)
    assert any(len(text) > len(prefix) for text in texts)


@given(ODD)
def test_whatever_ids_follow_the_text_starts_with_the_prefix(text: str) -> None:
    if not text.strip():
        with pytest.raises(UserError, match="prefix of a translation is empty"):
            prefix_ids(text, 100)
        return
    ids = prefix_ids(text, 100)
    for following in range(4, tokenizer().tgt_vocab_size, 3):
        assert tokenizer().decode([*ids, following]).startswith(text.strip())


def test_the_last_word_may_grow_and_white_space_at_the_ends_is_left_away(small: Translator) -> None:
    assert prefix_ids(" ein hun \t", 9) == prefix_ids("ein hun", 9)
    assert tokenizer().decode([*prefix_ids("ein hun", 9), tokenizer().encode_tgt(["xd"])[0][-1]]) == ("ein hund")
    (found,) = small.translate_window(["zwei katze"], HOW, prefixes=["ein\u2028hund\n"])
    assert found.text.startswith("ein hund")


def test_lines_have_prefixes_of_their_own_and_do_not_depend_on_each_other(small: Translator) -> None:
    lines = sentences(5, seed=4, longest=6)
    prefixes = ["ein hund", None, "zwei", None, "rot rot rot"]
    whole = small.translate_window(lines, HOW, prefixes=prefixes)
    free = small.translate_window(lines, HOW)
    for number, (line, prefix) in enumerate(zip(lines, prefixes, strict=True)):
        assert small.translate_window([line], HOW, number, [prefix]) == [whole[number]]
        assert (whole[number] == free[number]) == (prefix is None)


def test_of_a_long_line_the_first_piece_has_the_prefix_and_a_blank_line_has_none(small: Translator) -> None:
    long = " ".join(["hund katze rot baum."] * 20)
    whole, blank = small.translate_window([long, " "], HOW, prefixes=["Stern wald"] * 2)
    free = small.translate_window([long], HOW)[0]
    assert whole.pieces > 1
    assert whole.text.startswith("Stern wald")
    assert "Stern wald" not in whole.text[1:]
    assert whole.text.split()[-1] == free.text.split()[-1]
    assert blank.text == ""


def test_a_prefix_that_the_model_would_have_chosen_changes_nothing(small: Translator) -> None:
    for line in sentences(4, seed=5, longest=6):
        free = small.translate_window([line], HOW.but({"beam_size": 1}))[0]
        ids = tokenizer().encode_tgt([free.text])[0]
        if tokenizer().tgt_pieces(ids) == free.hypotheses[0].tokens:
            again = small.translate_window([line], HOW.but({"beam_size": 1}), prefixes=[free.text])[0]
            assert again.text == free.text


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_prefix_may_fill_the_limit_and_not_exceed_it(positions: str) -> None:
    how = config(model={"positions": positions})
    subject = translator(transformer(how), how)
    text = "ein"
    while len(tokenizer().encode_tgt([text + " x"])[0]) <= 39:
        text += " x"
    (found,) = subject.translate_window(["hund"], HOW, prefixes=[text])
    assert found.text.startswith(text)
    with pytest.raises(UserError, match="longer than a translation may be") as caught:
        subject.translate_window(["hund"], HOW, prefixes=[text + " x x"])
    assert caught.value.expected == "at most 39"


def test_what_the_tokenizer_cannot_spell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(tokenizer()), "encode_tgt", lambda self, lines: [[5, UNK]])
    with pytest.raises(UserError, match="cannot spell this"):
        prefix_ids("ab", 9)
