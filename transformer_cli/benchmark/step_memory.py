"""The peak memory of a whole training step, measured in a process of its own for each kernel and length.

Forward pass, cross-entropy, backward pass and an AdamW update of the whole Transformer, from random tokens without
padding, so that there is no mask besides causality. On a CPU the operating system counts resident bytes, as in
``memory.py``; on a GPU torch's allocator counts. Speed of training is in ``training.py``.

The model is described by plain values instead of a ``ModelConfig``, so that this runs where pydantic is missing.

Legend: B batch, S length, V vocabulary.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_cli.benchmark.attention import Unsupported, attempt
from transformer_cli.benchmark.memory import asked, forget_peak, peak, set_up_system, stay_within_memory
from transformer_cli.model.recompute import recomputing
from transformer_cli.model.transformer import Transformer, choose_recomputation

PLACES = ("encoder", "decoder", "cross")
#: The base model of Vaswani et al. 2017 but for dropout, which naive attention would pay for and flash cannot have.
BASE: dict[str, Any] = {
    **{"d_model": 512, "n_heads": 8, "d_k": None, "d_v": None, "d_ff": 2048},
    **{"encoder_layers": 6, "decoder_layers": 6},
    **dict.fromkeys(("dropout", "word_dropout", "attention_dropout"), 0.0),
    **dict.fromkeys(("embedding_dropout", "residual_dropout", "feed_forward_dropout")),
    **{"activation": "relu", "bias": True, "norm_placement": "pre", "norm": "layer", "positions": "sinusoidal"},
    **{"attention_scale": True, "qk_norm": False, "zero_init": False, "tie_embeddings": "all"},
}
VOCABULARY = 8_000
_ROWS = 256  # of logits at a time: `tfm train` does not hold them all either (``training/chunked_head.py``)


@dataclass(frozen=True)
class StepCase:
    """One training step to measure."""

    kernel: str
    seq_len: int
    batch: int = 1
    vocab_size: int = VOCABULARY
    device: str = "cpu"
    bfloat16: bool = False  # products under autocast
    threads: int = 1
    checkpointing: Literal["none", "attention", "layer"] = "none"


@dataclass(frozen=True)
class StepPeak:
    """Bytes at the peak of one step; None where it cannot run."""

    kernel: str
    seq_len: int
    peak_bytes: int | None = None  # all: weights, Adam's moments, gradients, activations, what libraries keep
    held_bytes: int | None = None  # of these, what stays between two steps: weights, moments, what libraries keep
    ratio_to_naive: float | None = None  # peak of naive / this peak: 3 is a third of the memory
    unsupported: str | None = None  # the reason


def measure_step(case: StepCase, model: dict[str, Any]) -> StepPeak:
    """Measure one step in a fresh process.

    Args:
        case: kernel, length and the rest.
        model: values by the names of the ``model`` section of a recipe; the kernel is put in here.

    Raises:
        RuntimeError: the process failed for a reason that is neither memory nor a refusal.
    """
    done = asked("transformer_cli.benchmark.step_memory", [asdict(case), model])
    if done.returncode < 0:
        reason = f"out of memory (the measuring process was stopped by signal {-done.returncode})"
        return StepPeak(case.kernel, case.seq_len, unsupported=reason)
    if done.returncode:
        raise RuntimeError(f"the measuring process failed:\n{done.stderr}")
    return StepPeak(**json.loads(done.stdout))


def compared(peaks: Sequence[StepPeak]) -> list[StepPeak]:
    """Set beside each peak how many times as much naive takes at the same length."""
    naive = {found.seq_len: found.peak_bytes for found in peaks if found.kernel == "naive"}
    rows = []
    for found in peaks:
        theirs = naive.get(found.seq_len)
        ratio = theirs / found.peak_bytes if theirs and found.peak_bytes else None
        rows.append(StepPeak(**{**asdict(found), "ratio_to_naive": ratio}))
    return rows


def build(model: dict[str, Any], case: StepCase) -> Transformer:
    """Make the model of plain values with a kernel at all places (linformer and sparse ones are not for all)."""
    values = {**model, "attention": SimpleNamespace(**dict.fromkeys(PLACES, case.kernel)), "ends_at_max_length": False}

    def dropout_at(place: str) -> float:
        own = values[f"{place}_dropout"]
        return float(values["dropout"] if own is None else own)

    config = cast(Any, SimpleNamespace(**values, dropout_at=dropout_at))
    made = Transformer(config, case.vocab_size, case.vocab_size, max_length=case.seq_len).to(case.device)
    choose_recomputation(made, case.checkpointing)
    return made


def train_step(model: Transformer, optimizer: torch.optim.Optimizer, tokens: Tensor, *, bfloat16: bool) -> float:
    """Take one step that maps tokens ``[B, S + 1]`` to themselves; return the loss."""
    src, tgt_in, tgt_out = tokens[:, 1:], tokens[:, :-1], tokens[:, 1:]
    with torch.autocast(tokens.device.type, dtype=torch.bfloat16, enabled=bfloat16):
        memory = model.encoder(model.src_embedding(src), None)
        hidden = model.decoder(model.tgt_embedding(tgt_in), memory, None)  # [B, S, D]

        def summed(rows: Tensor, targets: Tensor) -> Tensor:
            return F.cross_entropy(model.project(rows), targets, reduction="sum")

        parts = zip(torch.split(hidden.flatten(0, 1), _ROWS), torch.split(tgt_out.flatten(), _ROWS), strict=True)
        loss = torch.stack([recomputing(summed)(*part) for part in parts]).sum() / tgt_out.numel()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def _in_this_process(case: StepCase, values: dict[str, Any]) -> StepPeak:
    on_gpu = torch.device(case.device).type == "cuda"
    torch.set_num_threads(case.threads)
    torch.manual_seed(1)
    if not on_gpu:
        set_up_system()
        stay_within_memory()
    nothing = 0 if on_gpu else forget_peak()
    model = build(values, case).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(4, case.vocab_size, (case.batch, case.seq_len + 1), device=case.device)
    train_step(model, optimizer, tokens[:, :17], bfloat16=case.bfloat16)  # loads the code, makes Adam's moments
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
    else:
        held = forget_peak() - nothing
    train_step(model, optimizer, tokens, bfloat16=case.bfloat16)
    most = torch.cuda.max_memory_allocated() if on_gpu else peak() - nothing
    return StepPeak(case.kernel, case.seq_len, most, held)


def _serve() -> None:
    told, values = json.load(sys.stdin)
    case = StepCase(**told)
    try:
        found = attempt(lambda: _in_this_process(case, values))
    except Unsupported as reason:
        found = StepPeak(case.kernel, case.seq_len, unsupported=str(reason))
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    _serve()
