"""``tfm check``: a sound run passes, and whatever was planted in one is named, with what to change."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Tfm
from torch import Tensor
from toy_language import TINY

from transformer_cli.checkpoint.tensor_files import read_tensors, to_bytes
from transformer_cli.cli import main
from transformer_cli.inspection.broken_masks import Fault, maximum, no_padding_mask, nothing_seen, off_by_one
from transformer_cli.model.attention import MultiHeadAttention

SOUND = {
    *("masks", "learning rate", "warm-up", "norm placement", "variance per layer", "heads"),
    *("gradient norms", "clipping", "skipped steps"),
}


def test_a_sound_run(tfm: Tfm, run: Path) -> None:
    done = tfm("check", run)
    assert done.code == 0
    assert done.lines[0].startswith("ok    masks")
    assert {check["name"] for check in tfm("check", run, "--json").json["checks"]} == SOUND
    assert tfm("check", "--run", run).out == done.out
    assert tfm("check", run, "--run", run).code == 2


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (off_by_one, "decoder layer 1, masked self-attention, sees the future: output 1 has a gradient"),
        (maximum, "decoder layer 1, masked self-attention, sees the future: output 1 has a gradient"),
        (no_padding_mask, "encoder layer 1, self-attention, sees padding"),
        (nothing_seen, "encoder layer 1, self-attention, sees nothing"),
    ],
)
def test_a_wrong_mask_is_exit_code_1(
    fault: Fault, told: str, tfm: Tfm, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MultiHeadAttention.forward

    def forward(self, query, key, value, mask=None, *, causal=False, **rest):  # type: ignore[no-untyped-def]
        mask, causal = fault(mask, causal, query.size(1), key.size(1))
        return whole(self, query, key, value, mask, causal=causal, **rest)

    monkeypatch.setattr(MultiHeadAttention, "forward", forward)
    done = tfm("check", run)
    assert done.code == 1
    assert done.lines[0].startswith("look  masks")
    assert told in done.lines[0]


@pytest.fixture(scope="module")
def unsound(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short training with wrong settings; what only long ones show is written into its records and weights."""
    folder = tmp_path_factory.mktemp("unsound") / "run"
    settings = ["train.max_steps=8", "train.log_every=1", "train.warmup_steps=5", "train.clip_norm=0.001"]
    settings += ["model.norm_placement=post", "model.encoder_layers=6"]
    words = [word for setting in settings for word in ("-s", setting)]
    with pytest.raises(SystemExit) as left:
        main(["train", "-c", str(files / "my.yaml"), "--run", str(folder), "-q", *TINY, *words])
    assert not left.value.code
    _rewrite(folder / "config.yaml", lambda text: text.replace("lr: 0.01", "lr: 0.5", 1))
    _rewrite(folder / "metrics.jsonl", lambda text: "".join(map(_unsteady, text.splitlines())))
    _rewrite_weights(folder / "model.safetensors", _spoil)
    return folder


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def _unsteady(line: str) -> str:
    """Let every other step be left out, and the seventh explode."""
    record = json.loads(line)
    if record["kind"] == "train":
        record["skipped"] = record["step"]
        record["grad_norm"] *= 1e6 if record["step"] == 7 else 1
    return f"{json.dumps(record)}\n"


def _rewrite_weights(path: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    tensors, sha256 = read_tensors(path)
    change(tensors)
    path.write_bytes(to_bytes(tensors, sha256))


def _spoil(weights: dict[str, Tensor]) -> None:
    """Make a head write nothing, another one do what the first does, and one layer's output a hundred times smaller."""
    weights["encoder.layers.1.self_attn.out_proj.weight"][:, 16:] = 0
    for part in ("q_proj", "k_proj"):
        for kind in ("weight", "bias"):
            both = weights[f"decoder.layers.0.cross_attn.{part}.{kind}"]
            both[16:] = both[:16]
    for kind in ("weight", "bias"):
        weights[f"encoder.layers.3.feed_forward_residual.norm.{kind}"] *= 1e-2


def test_all_that_is_unsound_is_named_with_evidence_and_advice(tfm: Tfm, unsound: Path) -> None:
    found = {check["name"]: check for check in tfm("check", unsound, "--json").json["checks"]}
    assert {name for name, check in found.items() if not check["sound"]} == SOUND - {"masks"}
    told = {name: check["evidence"] for name, check in found.items()}
    assert "peak 0.5" in told["learning rate"]
    assert told["warm-up"].startswith("5 steps of 8")
    assert told["norm placement"].startswith("post, 6 layers")
    assert "at step 7, of 3 records" in told["gradient norms"]
    assert told["clipping"].startswith("100% of the records are above train.clip_norm 0.001")
    assert told["skipped steps"].startswith("8 of 16 ")
    assert "encoder layer 3 to 4" in told["variance per layer"] or "encoder layer 4 to 5" in told["variance per layer"]
    assert "1 dead head (encoder layer 2, self-attention head 2)" in told["heads"]
    assert "cross layer 1 head 2 as 1" in told["heads"]
    lines = tfm("check", unsound).lines
    assert sum(line.startswith("look") for line in lines) == sum(line.strip().startswith("change:") for line in lines)
    assert any("train.clip_norm=" in line for line in lines)


def test_a_run_without_its_recipe_is_told_to_get_its_own_back(tfm: Tfm, run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    recipe = (copy / "config.yaml").read_text(encoding="utf-8")
    (copy / "config.yaml").unlink()
    done = tfm("check", copy)
    assert done.code == 2
    assert "got: no config.yaml" in done.err
    assert "tfm init" not in done.err
    (copy / "config.yaml").write_text(recipe.replace("d_model", "d_modle"), encoding="utf-8")
    assert "unknown key model.d_modle" in tfm("check", copy).err
