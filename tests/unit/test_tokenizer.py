import io
from pathlib import Path

import pytest
import sentencepiece

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.errors import DataError

LINES = [
    f"the {word} number {i} is here, and {word}s are there！？"
    for i, word in enumerate(["cat", "dog", "tree", "house"] * 25)
]


def train(lines: list[str] = LINES, tgt: list[str] | None = None, note=pytest.fail, **keys: object) -> Tokenizer:
    return train_tokenizer(TokenizerConfig.model_validate({"vocab_size": 320, **keys}), lines, tgt or [], note)


@pytest.mark.parametrize("model_type", ["bpe", "unigram", "char"])
def test_the_odd_corpus_survives_encoding(odd_corpus, model_type: str) -> None:
    notes: list[str] = []
    tokenizer = train(odd_corpus.src + LINES, odd_corpus.tgt, notes.append, model_type=model_type, vocab_size=400)
    for encode, lines in ((tokenizer.encode_src, odd_corpus.src), (tokenizer.encode_tgt, odd_corpus.tgt)):
        ids = encode(lines)
        assert [tokenizer.decode(line) for line in ids] == lines
        assert all(i > EOS for line in ids for i in line)
    assert "1 line longer than 4192 bytes left out when the tokenizer was trained" in notes


@pytest.mark.parametrize("model_type", ["bpe", "unigram", "char"])
def test_equal_lines_give_equal_bytes(tmp_path: Path, model_type: str) -> None:
    first, second = (train(model_type=model_type, note=lambda text: None) for _ in range(2))
    assert first.sha256 == second.sha256
    first.save(tmp_path)
    assert str(tmp_path).encode() not in (tmp_path / "tokenizer.model").read_bytes()


def test_special_pieces_and_sizes() -> None:
    tokenizer = train()
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert tokenizer.src_vocab_size == tokenizer.tgt_vocab_size == 320
    assert tokenizer.tgt_pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = tokenizer.encode_src(["the cat"])[0]
    assert "".join(tokenizer.src_pieces(ids)) == "▁the▁cat"
    assert tokenizer.decode([BOS, *ids, UNK, EOS, PAD, PAD]) == "the cat"
    assert tokenizer.encode_src([]) == []
    assert tokenizer.encode_src([""]) == [[]]
    assert tokenizer.decode([]) == ""


def test_the_only_exception_is_the_sign_for_space() -> None:
    assert train().decode(train().encode_src(["a\u2581b"])[0]) == "a b"


def test_too_large_a_vocabulary_is_lowered_with_a_warning() -> None:
    for model_type in ("bpe", "unigram", "char"):
        notes: list[str] = []
        tokenizer = train(note=notes.append, vocab_size=50_000, model_type=model_type)
        assert notes == [
            f"tokenizer.vocab_size 50000 is more than the text has pieces for: lowered to {tokenizer.src_vocab_size}"
        ]


@pytest.mark.parametrize("model_type", ["bpe", "unigram", "char"])
def test_too_small_a_vocabulary_names_a_minimum_that_works(model_type: str) -> None:
    with pytest.raises(DataError, match="too small") as caught:
        train(vocab_size=100, model_type=model_type)
    minimum = int(str(caught.value.expected).removeprefix("at least "))
    assert train(vocab_size=minimum, model_type=model_type).src_vocab_size == minimum
    with pytest.raises(DataError, match="too small"):
        train(vocab_size=minimum - 1, model_type=model_type)


@pytest.mark.parametrize("lines", [[], [""], ["x" * 5000]])
def test_nothing_to_learn_from_is_a_user_error(lines: list[str]) -> None:
    with pytest.raises(DataError, match="no line to learn from"):
        train(lines, note=lambda text: None)


def test_two_vocabularies_keep_to_their_sides(tmp_path: Path) -> None:
    german = [line.replace("the", "die").replace("cat", "Katze") for line in LINES]
    tokenizer = train(LINES, german, joint=False, vocab_size=330)
    assert not tokenizer.joint
    ids = tokenizer.encode_tgt(["die Katze"])[0]
    assert tokenizer.decode(ids) == "die Katze"
    assert ids != tokenizer.encode_src(["die Katze"])[0]
    tokenizer.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.src.model", "tokenizer.tgt.model"]
    again = Tokenizer.load(tmp_path)
    assert (again.sha256, again.joint) == (tokenizer.sha256, False)
    swapped = Tokenizer(
        (tmp_path / "tokenizer.tgt.model").read_bytes(), (tmp_path / "tokenizer.src.model").read_bytes()
    )
    twice = Tokenizer(*[(tmp_path / "tokenizer.src.model").read_bytes()] * 2)
    joint = Tokenizer((tmp_path / "tokenizer.src.model").read_bytes())
    assert len({each.sha256 for each in (tokenizer, swapped, twice, joint)}) == 4


def test_lines_that_the_trainer_skips_are_counted_and_still_survive() -> None:
    notes: list[str] = []
    odd = ["a bar \u2585\u2585 of blocks", "ü" * 2097]
    tokenizer = train([*LINES, *odd], ["ü" * 2096], notes.append)
    assert [note[:20] for note in notes] == ["1 line longer than 4", "1 line with U+2585, "]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_src(odd)] == odd


def test_notes_of_two_vocabularies_name_the_side() -> None:
    notes: list[str] = []
    train(LINES, LINES, notes.append, joint=False, vocab_size=50_000)
    assert [note.partition(":")[0] for note in notes] == ["source", "target"]


def test_save_and_load(tmp_path: Path) -> None:
    tokenizer = train()
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.sha256, again.joint) == (tokenizer.sha256, True)
    assert again.encode_src(LINES) == tokenizer.encode_src(LINES)


def test_missing_and_damaged_models_are_user_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Tokenizer.load(tmp_path)
    train().save(tmp_path)
    path = tmp_path / "tokenizer.model"
    for data in (b"", b"garbage", path.read_bytes()[:-100]):
        path.write_bytes(data)
        with pytest.raises(DataError, match="damaged") as caught:
            Tokenizer.load(tmp_path)
        assert caught.value.where == str(path)
    train(LINES, LINES, joint=False).save(tmp_path)
    (tmp_path / "tokenizer.tgt.model").unlink()
    with pytest.raises(DataError, match=r"tokenizer\.tgt\.model: the tokenizer cannot be read"):
        Tokenizer.load(tmp_path)


def library_model(path: Path, **keys: object) -> str:
    model = io.BytesIO()
    trainer = sentencepiece.SentencePieceTrainer
    trainer.train(sentence_iterator=iter(LINES), model_writer=model, vocab_size=45, minloglevel=2, **keys)
    path.write_bytes(model.getvalue())
    return str(path)


def test_a_given_model_is_used_and_what_it_changes_is_told(tmp_path: Path) -> None:
    path = library_model(tmp_path / "given.model", pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    notes: list[str] = []
    tokenizer = train(model=path, note=notes.append, tgt=["plain", "two  spaces"])
    assert tokenizer.sha256 == Tokenizer(Path(path).read_bytes()).sha256
    assert tokenizer.src_vocab_size == 45
    assert len(notes) == 2
    assert "vocab_size (45)" in notes[0]
    assert ": changes " in notes[1]


def test_a_given_model_of_ours_changes_nothing(tmp_path: Path) -> None:
    tokenizer, notes = train(), list[str]()
    tokenizer.save(tmp_path)
    assert train(model=str(tmp_path / "tokenizer.model"), note=notes.append).sha256 == tokenizer.sha256
    assert len(notes) == 1


def test_a_given_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="pad, unk, bos, eos = -1, 0, 1, 2"):
        train(model=library_model(tmp_path / "given.model"))
    with pytest.raises(DataError, match="cannot be read"):
        train(model=str(tmp_path / "missing.model"))


def test_the_trainer_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    train()
    with pytest.raises(DataError):
        train(vocab_size=100)
    assert capfd.readouterr() == ("", "")
