"""An exported model is the same function in CTranslate2: forced scores and translations of every variant."""

from pathlib import Path

import ctranslate2
import pytest
import torch
from decoding_rig import config, sentences, tokenizer
from export_rig import both, export, pronounced, translated

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from transformer_cli.data.tokenizer_training import train_tokenizer
from transformer_cli.decoding.settings import DecodeSettings
from transformer_cli.errors import UserError
from transformer_cli.model.transformer import Transformer

BOTH = {"encoder": "sparse", "decoder": "sparse"}
VARIANTS: dict[str, dict[str, object]] = {
    "plain": {},
    "naive attention": {"attention": "naive"},
    "post": {"norm_placement": "post"},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu"},
    "no bias": {"bias": False},
    "swiglu without bias": {"activation": "swiglu", "bias": False},
    "learned": {"positions": "learned"},
    "untied": {"tie_embeddings": "none"},
    "decoder tied": {"tie_embeddings": "decoder"},
    "unscaled": {"attention_scale": False},
    "narrow heads": {"d_k": 4, "d_v": 4},
    "wide heads": {"d_k": 16, "d_v": 16},
    "d_k < d_v": {"d_k": 4, "d_v": 12},
    "d_k > d_v": {"d_k": 12, "d_v": 4},
    "narrow d_v, no bias": {"d_v": 4, "bias": False},
    "indivisible": {"n_heads": 5, "d_k": 7, "d_v": 3},
    "one head": {"n_heads": 1},
    "odd widths": {"d_model": 30, "n_heads": 3, "d_ff": 51},
    "unlike depths": {"encoder_layers": 3, "decoder_layers": 1},
    "rms": {"norm": "rms"},
    "rms, post": {"norm": "rms", "norm_placement": "post"},
    "none": {"positions": "none"},
    "rotary": {"positions": "rotary"},
    "rotary, d_k < d_v": {"positions": "rotary", "d_k": 4, "d_v": 12},
    "rotary, d_k > d_v": {"positions": "rotary", "d_k": 12, "d_v": 4},
    "alibi": {"positions": "alibi"},
    "alibi, six heads": {"positions": "alibi", "n_heads": 6, "d_k": 8, "d_v": 8},
    "t5": {"positions": "t5", "encoder_layers": 3},
    "transformer_xl": {"positions": "transformer_xl"},
    "transformer_xl, no bias": {"positions": "transformer_xl", "bias": False, "attention_scale": 0.7},
    "transformer_xl, d_k < d_v": {"positions": "transformer_xl", "n_heads": 2, "d_k": 3, "d_v": 24},
    "window": {"positions": "rotary", "attention": BOTH, "sparse": {"window": 2}},
    "dilated": {
        "positions": "none", "attention": {"encoder": "naive", "decoder": "sparse"},
        "sparse": {"pattern": "dilated", "window": 1, "dilation": 3},
    },
    "window in the encoder": {"positions": "none", "attention": {"encoder": "sparse"}, "sparse": {"window": 1}},
    "qk_norm, one head": {"qk_norm": True, "n_heads": 1, "d_v": 16},
    "qk_norm, one head, rms": {"qk_norm": True, "n_heads": 1, "norm": "rms", "positions": "rotary"},
    "everything": {
        "norm_placement": "post", "activation": "swiglu", "bias": False, "positions": "learned",
        "tie_embeddings": "none", "attention_scale": False, "d_k": 6, "d_v": 10,
    },
}  # fmt: skip


def largest_difference(model: Transformer, folder: Path, names: Tokenizer, n: int = 15) -> float:
    """Compare log P of random targets, token by token, in units of its size: float32 has seven digits."""
    generator = torch.Generator().manual_seed(3)
    sources = [[*ids, EOS] for ids in names.encode_src(sentences(6, seed=3, longest=8))]
    targets = torch.randint(4, names.tgt_vocab_size, (len(sources), n), generator=generator).tolist()
    found = ctranslate2.Translator(str(folder), compute_type="float32").score_batch(
        [names.src_pieces(source) for source in sources], [names.tgt_pieces(target) for target in targets]
    )
    worst = []
    for source, target, scored in zip(sources, targets, found, strict=True):
        with torch.no_grad():
            log_probs = model(torch.tensor([source]), torch.tensor([[BOS, *target]])).log_softmax(-1)[0]
        expected = log_probs.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        worst.append(((expected - torch.tensor(scored.log_probs)) / expected.abs().clamp(min=1)).abs().max())
    return float(torch.stack(worst).max())  # NaN stays NaN


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_log_probabilities_and_greedy_translations_are_ours(variant: dict[str, object], tmp_path: Path) -> None:
    how = config(model=variant)
    ours, theirs = both(tmp_path, how)
    assert largest_difference(pronounced(how), tmp_path, tokenizer()) < 1e-4
    expected = translated(ours)
    assert translated(theirs) == expected
    assert len(set(expected)) > 10  # the source is heard


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_beams_find_the_same(variant: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours without what must not be chosen, which leaves the softmax there; what is cut off ends otherwise by a word."""
    hidden, project = torch.tensor([PAD, UNK, BOS]), Transformer.project
    monkeypatch.setattr(Transformer, "project", lambda self, h: project(self, h).index_fill(-1, hidden, -1e9))
    ours, theirs = both(tmp_path, config(model={"tie_embeddings": "none"} | variant), ends=4.0)
    how = DecodeSettings(beam_size=4, length_penalty=0.0, max_length_ratio=1.0)
    pairs = list(
        zip(*(one.translate_window(sentences(30, seed=5, longest=8), how) for one in (ours, theirs)), strict=True)
    )
    different = [pair for pair in pairs if pair[0].text != pair[1].text]
    assert len(different) <= 6
    assert all(any(one.hypotheses[0].capped for one in pair) for pair in different)


def test_distances_far_beyond_the_buckets_of_t5(tmp_path: Path) -> None:
    how = config(model={"positions": "t5"}, data={"max_length": 150})
    model = pronounced(how)
    export(model, how, tmp_path)
    assert largest_difference(model, tmp_path, tokenizer(), n=140) < 1e-4


def test_two_tokenizers_and_unlike_vocabularies(tmp_path: Path) -> None:
    text = sentences(200)
    loud = [line.upper() for line in text]
    names = train_tokenizer(TokenizerConfig(vocab_size=400, joint=False), text, loud, lambda _: None)
    how = config(model={"tie_embeddings": "decoder"}, tokenizer={"joint": False})
    ours, theirs = both(tmp_path, how, tokenizer=names)
    assert largest_difference(pronounced(how, names), tmp_path, names) < 1e-4
    assert translated(theirs) == translated(ours)
    assert {path.name for path in tmp_path.glob("*_vocabulary.json")} == {
        "source_vocabulary.json",
        "target_vocabulary.json",
    }


@pytest.mark.parametrize("changes", [{}, {"positions": "transformer_xl"}, {"positions": "rotary", "attention": BOTH}])
@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int16", "int8", "int8_float16"])
def test_quantised_weights_answer_and_leave_the_model_as_it_was(
    quantization: str, changes: dict[str, object], tmp_path: Path
) -> None:
    how = config(model={"d_model": 30, "n_heads": 3, "d_ff": 51} | changes)  # no multiple of anything
    model = pronounced(how)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    export(model, how, tmp_path, quantization)
    assert 1e-6 < largest_difference(model, tmp_path, tokenizer()) < 2
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize(
    ("changes", "got", "expected"),
    [
        ({"qk_norm": True}, "model.qk_norm: true", "one head"),
        ({"qk_norm": True, "n_heads": 1, "d_k": 4, "d_v": 8}, "model.qk_norm: true", "d_k at least as large as d_v"),
        ({"attention": {"encoder": "linformer"}}, "model.attention.encoder: linformer", "dense attention"),
        ({"attention": BOTH}, "model.positions: sinusoidal", "model.positions: rotary or none"),
        ({"attention": {"decoder": "sparse"}, "positions": "learned"}, "model.positions: learned", "rotary or none"),
        ({"attention": BOTH, "sparse": {"global_tokens": 1}}, "model.sparse.pattern: window", "global_tokens: 0"),
        ({"attention": BOTH, "sparse": {"pattern": "blocks"}}, "model.sparse.pattern: blocks", "window or dilated"),
        ({"attention": BOTH, "sparse": {"pattern": "bigbird"}}, "model.sparse.pattern: bigbird", "window or dilated"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(
    changes: dict[str, object], got: str, expected: str, tmp_path: Path
) -> None:
    how = config(model=changes)
    with pytest.raises(UserError, match="cannot represent the model") as caught:
        export(pronounced(how), how, tmp_path)
    assert caught.value.got == got
    assert expected in str(caught.value.expected)
