"""What holds for every text, every corpus and every set of lengths."""

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import DataConfig, TokenizerConfig
from transformer_cli.data.batching import TokenizedPairs, collate, count_batches, epoch_batches, token_share
from transformer_cli.data.corpus import load_corpus
from transformer_cli.data.lines import iter_lines, read_lines
from transformer_cli.data.tokenizer import BOS, EOS, PAD, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.errors import DataError

_CUTTERS = "\r\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e \t\u3000\ufeff"
characters = st.one_of(
    st.sampled_from(_CUTTERS), st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\u2581")
)
texts = st.one_of(
    st.text(characters, max_size=12),
    st.text(st.sampled_from(" ab\u3000<s>/\u2585"), max_size=12),
    st.lists(st.sampled_from(["</s>", "<s>", "<pad>", "<unk>", "<0x41>", "，", "ﬁ", "e\u0301", " "])).map("".join),
)


@pytest.fixture(scope="module")
def folder() -> Path:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    lines = [f"a few words {i} in  a line，<s> </s> <0x41>" for i in range(50)]
    return train_tokenizer(TokenizerConfig(model_type=request.param, vocab_size=300), lines, lines, lambda note: None)


@given(st.lists(texts), st.booleans(), st.booleans(), st.booleans())
def test_written_lines_come_back(folder: Path, lines: list[str], bom: bool, crlf: bool, last_newline: bool) -> None:
    end = "\r\n" if crlf else "\n"
    data = (end.join(lines) + end * last_newline * bool(lines)).encode()
    path = folder / "lines"
    path.write_bytes(b"\xef\xbb\xbf" * bom + data)
    seen = lines if last_newline or not lines or lines[-1] else lines[:-1]
    expected = [
        line if crlf and (i < len(lines) - 1 or last_newline) else line.removesuffix("\r")
        for i, line in enumerate(seen)
    ]
    if not bom and expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert read_lines(path) == expected
    assert list(iter_lines(io.BytesIO(path.read_bytes()), pytest.fail)) == expected


parts = st.one_of(st.binary(max_size=6), st.sampled_from([b"\n", b"\r\n", b"\0", b"\xff", b"ok"]))
#: Not what UTF-16 or gzip begins with, nor with as many NULs as UTF-16 without a mark has.
any_bytes = (
    st.lists(parts)
    .map(b"".join)
    .filter(lambda data: data[:2] not in (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"))
    .filter(lambda data: data.count(b"\0") < 4)
)


@given(any_bytes)
def test_one_line_for_each_newline_and_an_unfinished_end(data: bytes) -> None:
    body = data.removeprefix(b"\xef\xbb\xbf")
    repaired: list[int] = []
    lines = list(iter_lines(io.BytesIO(data), repaired.append))
    assert len(lines) == body.count(b"\n") + (not body.endswith(b"\n") and body != b"")
    assert not any("\n" in line or "\0" in line for line in lines)
    assert repaired == sorted(set(repaired))
    assert all("\ufffd" in lines[number - 1] for number in repaired)


@given(any_bytes)
def test_strict_reading_is_an_error_at_the_first_line_that_the_other_would_repair(folder: Path, data: bytes) -> None:
    (folder / "bytes").write_bytes(data)
    repaired: list[int] = []
    lines = list(iter_lines(io.BytesIO(data), repaired.append))
    if repaired:
        with pytest.raises(DataError) as caught:
            read_lines(folder / "bytes")
        assert caught.value.where == f"{folder / 'bytes'}:{repaired[0]}"
    else:
        assert read_lines(folder / "bytes") == lines


@given(st.lists(texts, max_size=8))
def test_decode_inverts_encode(tokenizer: Tokenizer, lines: list[str]) -> None:
    ids = tokenizer.encode_tgt(lines)
    assert [tokenizer.decode(line) for line in ids] == lines
    assert all(i > EOS for line in ids for i in line)


@given(st.lists(st.integers(0, 299), max_size=20))
def test_any_ids_decode_to_text(tokenizer: Tokenizer, ids: list[int]) -> None:
    tokenizer.decode([min(i, tokenizer.tgt_vocab_size - 1) for i in ids]).encode()


short = st.text(st.sampled_from("ab \u3000"), max_size=3)


@given(st.lists(st.tuples(short, short), max_size=30), st.integers(1, 5), st.integers(0, 3))
@settings(max_examples=60)
def test_every_pair_is_kept_dropped_or_held_out(
    folder: Path, pairs: list[tuple[str, str]], dev_size: int, seed: int
) -> None:
    pairs = [*pairs, ("one", "eins"), ("two", "zwei")]
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    corpus = load_corpus(DataConfig.model_validate({"train": {"tsv": str(path)}, "dev_size": dev_size}), seed)
    train, dev = (list(zip(text.src, text.tgt, strict=True)) for text in (corpus.train, corpus.dev))
    assert len(train) + len(dev) + sum(corpus.dropped.values()) == len(pairs)
    assert set(train) | set(dev) <= {pair for pair in pairs if pair[0].strip() and pair[1].strip()}
    assert not set(corpus.train.src) & set(corpus.dev.src)
    assert train == [pair for pair in pairs if pair[0] not in corpus.dev.src and pair[0].strip() and pair[1].strip()]
    assert 1 <= len(dev) <= max(1, min(dev_size, len(pairs) // 10))
    assert len(set(corpus.dev.src)) == len(dev)


lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=80)


@given(lengths, st.integers(1, 300), st.integers(0, 2**31 - 1), st.integers(0, 100))
def test_batches_are_a_partition_within_the_budget_and_pure(
    sides: list[tuple[int, int]], batch_tokens: int, seed: int, epoch: int
) -> None:
    src, tgt = np.array(sides, dtype=np.int32).T
    batches = epoch_batches(src, tgt, batch_tokens, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sides)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(src[batch].max(), tgt[batch].max()) <= batch_tokens
    np.random.seed(epoch % 7)  # the global generator has no say
    assert count_batches(np.sort(np.maximum(src, tgt)), batch_tokens, seed=seed, epoch=epoch) == len(batches)
    again = epoch_batches(src.copy(), tgt.copy(), batch_tokens, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in again]


@given(lengths)
def test_collating_loses_and_invents_nothing(sides: list[tuple[int, int]]) -> None:
    pairs = TokenizedPairs(
        *([np.array([7] * (n - 1) + [EOS], np.int32) for n in side] for side in zip(*sides, strict=True))
    )
    everything = np.arange(len(sides))
    batch = collate(pairs, everything)
    for row, (src, tgt) in enumerate(sides):
        assert batch.src[row, :src].tolist() == pairs.src[row].tolist()
        assert batch.tgt_out[row, :tgt].tolist() == pairs.tgt[row].tolist()
        assert batch.tgt_in[row, :tgt].tolist() == [BOS, *pairs.tgt[row][:-1].tolist()]
        assert (batch.src[row, src:] == PAD).all()
        assert (batch.tgt_in[row, tgt:] == PAD).all()
        assert (batch.tgt_out[row, tgt:] == PAD).all()
    assert batch.n_tokens == sum(tgt for _, tgt in sides) == int((batch.tgt_out != PAD).sum())
    real = sum(src + tgt for src, tgt in sides)
    assert token_share(pairs, [everything]) == real / (batch.src.numel() + batch.tgt_out.numel())
