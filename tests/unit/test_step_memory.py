"""``tfm bench --step-memory``: the peak of a whole training step, a row for each kernel and length."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from transformer_cli.benchmark import step_memory
from transformer_cli.benchmark.step_memory import BASE, StepCase, StepPeak, build, compared, measure_step, train_step
from transformer_cli.commands.bench import step_memory as command
from transformer_cli.errors import UserError
from transformer_cli.wording import counted

TINY = BASE | {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
SMALL = ("model.d_model=32", "model.n_heads=2", "model.d_ff=64", "model.encoder_layers=1", "model.decoder_layers=1")


def shown(report: command.StepMemoryReport) -> str:
    out = io.StringIO()
    command.render(report, Console(file=out, width=80))
    return out.getvalue()


def test_naive_holds_the_scores_of_every_layer_and_flash_none() -> None:
    """Three attentions of two heads: at 1,024 tokens each keeps at least 8 MiB of weights for its backward pass."""
    naive, flash = (measure_step(StepCase(kernel, 1024, vocab_size=64), TINY) for kernel in ("naive", "flash"))
    scores = 2 * 1024 * 1024 * 4
    assert naive.peak_bytes - flash.peak_bytes > 3 * scores
    parameters = sum(p.numel() for p in build(TINY, StepCase("naive", 1024, vocab_size=64)).parameters())
    assert naive.held_bytes > 3 * 4 * parameters  # the weights and two moments
    assert flash.peak_bytes > flash.held_bytes


def test_a_step_is_the_models_own_loss_and_an_update() -> None:
    torch.manual_seed(0)
    case = StepCase("naive", 300, vocab_size=64)
    model, tokens = build(TINY, case), torch.randint(4, 64, (2, 301))
    logits = model(tokens[:, 1:], tokens[:, :-1]).flatten(0, 1)
    before = model.output.weight.detach().clone()
    loss = train_step(model, torch.optim.AdamW(model.parameters(), lr=1e-3), tokens, bfloat16=False)
    expected = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())  # all rows at once
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert not torch.equal(model.output.weight, before)


@pytest.mark.parametrize(
    ("code", "output", "found"),
    [(-9, "", "out of memory (the measuring process was stopped by signal 9)"), (1, "", None)],
)
def test_a_process_that_dies_is_a_row_and_one_that_fails_an_error(
    code: int, output: str, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    ended = subprocess.CompletedProcess([], code, output, "a shape is wrong")
    monkeypatch.setattr(step_memory, "asked", lambda *_: ended)
    if found is None:
        with pytest.raises(RuntimeError, match="a shape is wrong"):
            measure_step(StepCase("naive", 8), TINY)
    else:
        assert measure_step(StepCase("naive", 8), TINY) == StepPeak("naive", 8, unsupported=found)


def test_peaks_are_compared_with_naive_at_the_same_length() -> None:
    rows = [StepPeak("naive", 8, 600, 1), StepPeak("flash", 8, 200, 1), StepPeak("flash", 16, 300, 1)]
    refused = StepPeak("sdpa", 8, unsupported="out of memory")
    assert [row.ratio_to_naive for row in compared([*rows, refused])] == [1, 3, None, None]


def test_the_document_has_rows_of_every_length_and_the_reasons_of_those_that_cannot_run() -> None:
    """Heads whose queries and values differ in width: torch's flash kernel has none such."""
    notes: list[str] = []
    asked = command.StepMemoryRequest([8, 16], ["naive", "flash"], overrides=(*SMALL, "model.d_v=8"), device="cpu")
    report = command.run_step_memory(asked, notes.append)
    document = json.loads(json.dumps(command.asdict(report)))
    assert [(row["kernel"], row["seq_len"]) for row in document["rows"]] == [
        *(("naive", 8), ("flash", 8)), *(("naive", 16), ("flash", 16)),
    ]  # fmt: skip
    naive, flash = document["rows"][:2]
    assert naive["peak_bytes"] >= naive["held_bytes"] > 0
    assert (naive["ratio_to_naive"], naive["unsupported"]) == (1.0, None)
    assert "torch's flash kernel needs one head width" in flash["unsupported"]
    assert flash["peak_bytes"] is flash["ratio_to_naive"] is None
    assert document["settings"]["model"]["d_v"] == 8
    assert len(notes) == 4
    text = shown(report)
    assert "cannot run: flash, length 8: attention: flash with d_k and d_v that differ" in text
    assert "1+1 layers of width 32" in text
    assert "3 is a third of the memory" in text
    assert f", {counted(torch.get_num_threads(), 'thread')}, torch" in text
    peak, held = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("peak ", "held "))
    kept = "what torch's libraries load and keep"  # counted in both: both start from the same memory
    assert kept in peak
    assert kept in held


@pytest.mark.parametrize("change", ["model.positions=t5", "model.attention_dropout=0.1"])
def test_what_flash_cannot_have_is_a_reason_not_a_crash(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "measure_step", lambda case, _: StepPeak(case.kernel, case.seq_len, 200, 100))
    asked = command.StepMemoryRequest([8], overrides=(change,), device="cpu")
    naive, flash = command.run_step_memory(asked, lambda _: None).rows
    assert naive.peak_bytes == 200
    assert flash.peak_bytes is None
    assert "choose" in str(flash.unsupported)


def test_of_a_recipe_it_is_said_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[StepCase] = []

    def measured(case: StepCase, model: dict[str, object]) -> StepPeak:
        cases.append(case)
        return StepPeak(case.kernel, case.seq_len, 200, 100)

    monkeypatch.setattr(command, "measure_step", measured)
    recipe = tmp_path / "my.yaml"
    recipe.write_text(
        "data: {corpus: phrasebook}\n"
        "model: {attention: {encoder: linformer}}\n"
        "train: {max_steps: 9, amp: bf16, optimizer: muon, accumulate: 4, checkpointing: layer, lr: 0.5}\n",
        encoding="utf-8",
    )
    report = command.run_step_memory(command.StepMemoryRequest([8], config=str(recipe), device="cpu"), lambda _: None)
    assert {case.checkpointing for case in cases} == {"layer"}
    aside = {"train.accumulate": 4, "train.optimizer": "muon", "train.amp": "bf16", "model.attention": "linformer"}
    assert report.settings["set_aside"] == aside
    told = " ".join(shown(report).split())
    assert "used model.* (attention is the row's kernel), tokenizer.vocab_size and train.checkpointing; AdamW" in told
    assert "set aside: train.accumulate 4, train.optimizer muon, train.amp bf16, model.attention linformer" in told


def test_recomputed_layers_are_not_kept() -> None:
    kept, again = (
        measure_step(StepCase("naive", 1024, vocab_size=64, checkpointing=what), TINY) for what in ("none", "layer")
    )
    assert again.peak_bytes < kept.peak_bytes


def test_an_interrupted_sweep_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(case: StepCase, model: dict[str, object]) -> StepPeak:
        if case.seq_len == 16:
            raise KeyboardInterrupt
        return StepPeak(case.kernel, case.seq_len, 200, 100)

    monkeypatch.setattr(command, "measure_step", measured)
    report = command.run_step_memory(command.StepMemoryRequest([8, 16], device="cpu"), lambda _: None)
    assert [(row.kernel, row.seq_len, row.ratio_to_naive) for row in report.rows] == [("naive", 8, 1), ("flash", 8, 1)]
    assert report.interrupted
    assert "interrupted: the rows above are those that were finished" in shown(report)
    assert "interrupted" not in shown(replace(report, interrupted=False))
    with pytest.raises(KeyboardInterrupt):  # nothing was measured, and there is nothing to show
        command.run_step_memory(command.StepMemoryRequest([16], device="cpu"), lambda _: None)


def test_kernels_are_those_that_a_whole_model_can_have() -> None:
    assert command.chosen_kernels(None) == ["naive", "flash"]
    assert command.chosen_kernels("flash, naive") == ["naive", "flash"]
    assert command.chosen_kernels("all") == ["naive", "sdpa", "flash"]
    with pytest.raises(UserError, match="no kernel for a whole model: 'window'"):
        command.chosen_kernels("naive,window")
