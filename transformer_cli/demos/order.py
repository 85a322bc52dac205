"""Without positions attention cannot tell 我打你 ("I hit you") from 你打我 ("you hit me").

Legend: S source length, D d_model.

Attention is a sum over keys, and a sum has no order: permuted inputs give permuted outputs. So each word gets the same
vector in both sentences, and whoever reads them cannot know who hits whom, unless positions tell.
"""

from functools import partial
from typing import Any, get_args

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.data.tokenizer import EOS
from transformer_cli.demos.report import DemoReport, Table, Wish
from transformer_cli.demos.small_training import small_model
from transformer_cli.model.transformer import Transformer

_WORDS = "我打你"
_OTHER = "你打我"
_MEANING = {"我": "I", "打": "hit", "你": "you"}  # in the picture, for those without the letters or their font
_MODEL = {"encoder_layers": 2, "d_model": 64, "n_heads": 4, "d_ff": 128}
_NONE, _ALIBI = "none", "alibi"
_COLUMNS = 4  # of the picture


def demonstrate(wish: Wish) -> DemoReport:
    """Encode both sentences with a fresh model for each kind of positions, and compare the vectors of each word."""
    known = get_args(ModelConfig.model_fields["positions"].annotation)
    kinds = [_NONE, _ALIBI, *(kind for kind in known if kind not in (_NONE, _ALIBI))]
    encoded = {kind: _encoded(kind, wish.seed) for kind in kinds}
    rows = [(kind, _difference(*pair), _mean_difference(*pair)) for kind, pair in encoded.items()]
    columns = ("positions", "largest difference of a word", "difference of the mean")
    none, alibi, *others = (row[1] for row in rows)
    return DemoReport(
        "order",
        f"Without positions {_WORDS} and {_OTHER} are the same to the encoder, up to the order of the rows.",
        "Vaswani et al. 2017, section 3.5",
        [Table("Encoder outputs of both sentences, in units of their usual size", columns, rows)],
        [
            f"without positions no word differs by more than {none:.1g}, which is rounding",
            f"alibi knows distances without their direction, and {_OTHER} is {_WORDS} in a mirror: {alibi:.1g}",
            f"all other positions tell them apart, by {min(others):.2g} at least",
        ],
        partial(_draw, encoded),
        size=(13, 3.4 * -(-len(kinds) // _COLUMNS)),
        letters=_WORDS,
        settings={"seed": wish.seed, "model": _MODEL},
    )


def _encoded(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    """Return the encoder's output ``[S, D]`` for each sentence, in float64."""
    number = {word: EOS + 1 + place for place, word in enumerate(_WORDS)}
    ids = torch.tensor([[number[word] for word in text] for text in (_WORDS, _OTHER)])
    with torch.no_grad():
        ours, theirs = _fresh_model(kind, seed).double().encode(ids)
    return ours, theirs


def _fresh_model(kind: str, seed: int) -> Transformer:
    return small_model(seed, **_MODEL, positions=kind).eval()


def _difference(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference between the vectors of one word in both sentences."""
    places = [_OTHER.index(word) for word in _WORDS]
    return float((ours - theirs[places]).abs().max() / ours.std())


def _mean_difference(ours: Tensor, theirs: Tensor) -> float:
    return float((ours.mean(0) - theirs.mean(0)).abs().max() / ours.std())


def _draw(encoded: dict[str, tuple[Tensor, Tensor]], figure: Any) -> None:
    grid = figure.subplots(-(-len(encoded) // _COLUMNS), _COLUMNS, squeeze=False).flat
    for (kind, (ours, theirs)), axes in zip(encoded.items(), grid, strict=False):
        distances = (ours[:, None] - theirs[None]).norm(dim=-1) / ours.norm(dim=-1).mean()  # [S, S]
        axes.imshow(distances.numpy(), vmin=0, vmax=1.5, cmap="Blues")
        for row, line in enumerate(distances.tolist()):
            for column, distance in enumerate(line):
                colour = "white" if distance > 1 else "black"
                axes.text(column, row, f"{distance:.2f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(_OTHER)), [f"{word}\n{_MEANING[word]}" for word in _OTHER])
        axes.set_yticks(range(len(_WORDS)), [f"{word} {_MEANING[word]}" for word in _WORDS])
        axes.set_title(f"positions: {kind}")
    for axes in grid:  # those that are left
        axes.remove()
    figure.suptitle("distance of each word's vector in one sentence to those in the other")
