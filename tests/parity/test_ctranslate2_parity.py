"""An exported model is the same function in CTranslate2: forced scores and greedy translations of every variant."""

from pathlib import Path

import ctranslate2
import pytest
import torch
from decoding_rig import config, sentences, tokenizer
from export_rig import both, export, pronounced, translated

from transformer_cli.config import TokenizerConfig
from transformer_cli.data.tokenizer import BOS, EOS, Tokenizer, train_tokenizer
from transformer_cli.errors import UserError
from transformer_cli.model.transformer import Transformer

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
    "everything": {
        "norm_placement": "post", "activation": "swiglu", "bias": False, "positions": "learned",
        "tie_embeddings": "none", "attention_scale": False, "d_k": 6, "d_v": 10,
    },
}  # fmt: skip


def largest_difference(model: Transformer, folder: Path, names: Tokenizer) -> float:
    """Compare log P of random targets, token by token, in units of its size: float32 has seven digits."""
    generator = torch.Generator().manual_seed(3)
    sources = [[*ids, EOS] for ids in names.encode_src(sentences(6, seed=3, longest=8))]
    targets = torch.randint(4, names.tgt_vocab_size, (len(sources), 15), generator=generator).tolist()
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


@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int16", "int8", "int8_float16"])
def test_quantised_weights_answer_and_leave_the_model_as_it_was(quantization: str, tmp_path: Path) -> None:
    how = config(model={"d_model": 30, "n_heads": 3, "d_ff": 51})  # no multiple of anything
    model = pronounced(how)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    export(model, how, tmp_path, quantization)
    assert 1e-6 < largest_difference(model, tmp_path, tokenizer()) < 2
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize(
    ("changes", "got", "expected"),
    [
        ({"qk_norm": True}, "model.qk_norm: true", "model.qk_norm: false"),
        ({"positions": "rotary"}, "model.positions: rotary", "model.positions: sinusoidal or model.positions: learned"),
        ({"positions": "none"}, "model.positions: none", "model.positions: sinusoidal or model.positions: learned"),
        ({"norm": "rms"}, "model.norm: rms", "model.norm: layer"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(
    changes: dict[str, object], got: str, expected: str, tmp_path: Path
) -> None:
    how = config(model=changes)
    with pytest.raises(UserError, match="cannot represent the model") as caught:
        export(pronounced(how), how, tmp_path)
    assert (caught.value.got, caught.value.expected) == (got, expected)
