"""``tfm bench --step-memory``: how much memory a training step takes with each attention kernel.

Here a recipe becomes a model, and peaks become a table; they are measured in ``benchmark/step_memory.py``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from transformer_cli.benchmark.early_end import finished_kept
from transformer_cli.benchmark.step_memory import BASE, VOCABULARY, StepCase, StepPeak, compared, measure_step
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.config import Config, ModelConfig
from transformer_cli.config.attention import AttentionPlaces
from transformer_cli.config.combinations import REFUSED
from transformer_cli.errors import UserError
from transformer_cli.recipe import load_recipe
from transformer_cli.runtime import Runtime
from transformer_cli.wording import counted

DEFAULT_LENGTHS = (2048,)
KERNELS = ("naive", "sdpa", "flash")
#: Values that a recipe may not bring along: both sides do the same work, and flash knows no dropout on weights.
_OTHERS = {"attention", "sparse", "linformer_rank"}
_USED = "model.* (attention is the row's kernel), tokenizer.vocab_size and train.checkpointing; AdamW, one batch"
_RESIDENT = "a process of its own: its resident memory, less what it held with torch imported and no model"
#: What else of ``train`` changes the memory of a step.
_OF_A_STEP = ("batch_tokens", "accumulate", "optimizer", "amp", "ema_decay", "r_drop", "simcut", "teachers")


@dataclass(frozen=True)
class StepMemoryRequest:
    """What the command line asked for."""

    seq_lens: Sequence[int] = DEFAULT_LENGTHS
    kernels: Sequence[str] = ("naive", "flash")
    batch: int = 1
    config: str | None = None
    overrides: tuple[str, ...] = ()
    device: str = "auto"


@dataclass(frozen=True)
class StepMemoryReport:
    """What was measured, where and how."""

    device: str
    torch: str
    settings: dict[str, Any]
    rows: list[StepPeak]
    interrupted: bool = False  # the rows are those that were finished


def chosen_kernels(named: str | None) -> list[str]:
    """Return the kernels to measure, naive first: the others are compared with it.

    Raises:
        UserError: a name is unknown, or its kernel cannot be at all three places of the model.
    """
    wanted = [name.strip() for name in (named or "naive,flash").split(",")] if named != "all" else list(KERNELS)
    if unknown := [name for name in wanted if name not in KERNELS]:
        raise UserError(
            f"no kernel for a whole model: {unknown[0]!r}", expected=f"all, or some of {', '.join(KERNELS)}"
        )
    return [kernel for kernel in KERNELS if kernel in wanted]


def run_step_memory(request: StepMemoryRequest, note: Callable[[str], None]) -> StepMemoryReport:
    """Measure each kernel at each length, in a process of its own. Ctrl-C ends it early and keeps what was finished.

    Args:
        request: which kernels, lengths and model.
        note: told what is being measured, a line each.

    Raises:
        UserError: the recipe cannot be used, or the device does not exist.
    """
    runtime, config = Runtime.resolve(request.device), _config(request)
    rows: list[StepPeak] = []
    with finished_kept(rows) as end:
        for case in _cases(request, config, runtime):
            note(f"a training step with {case.kernel}, length {case.seq_len}")
            rows.append(_measured(case, _model(config)))
    device, settings = str(runtime.describe()["device"]), _settings(request, config, runtime)
    return StepMemoryReport(device, torch.__version__, settings, compared(rows), end.cause is not None)


def _cases(request: StepMemoryRequest, config: Config, runtime: Runtime) -> Iterator[StepCase]:
    """Yield the kernels of one length, then those of the next."""
    where = str(runtime.device), runtime.device.type == "cuda", runtime.threads
    for seq_len in request.seq_lens:
        sizes = seq_len, request.batch, config.tokenizer.vocab_size
        yield from (StepCase(kernel, *sizes, *where, config.train.checkpointing) for kernel in request.kernels)


def _measured(case: StepCase, model: dict[str, Any]) -> StepPeak:
    if (refusal := _refusal(model, case.kernel)) is not None:
        return StepPeak(case.kernel, case.seq_len, unsupported=refusal)
    return measure_step(case, model)


def _settings(request: StepMemoryRequest, config: Config, runtime: Runtime) -> dict[str, Any]:
    """Return what the figures must be read with."""
    on_gpu = runtime.device.type == "cuda"
    counted_by = "torch's CUDA allocator counts" if on_gpu else _RESIDENT
    also = "the work space of its libraries" if on_gpu else "what torch's libraries load and keep in the first step"
    return {
        "model": _model(config),
        "vocab_size": config.tokenizer.vocab_size,
        "checkpointing": config.train.checkpointing,
        "used": _USED,
        "set_aside": _set_aside(config),
        "batch": request.batch,
        "dtype": "bfloat16 products" if on_gpu else "float32",
        "threads": runtime.threads,
        "peak_bytes": f"weights, Adam's moments, gradients, activations, and {also} ({counted_by})",
        "held_bytes": f"of these, what stays from step to step: weights, Adam's moments, and {also}",
        "ratio_to_naive": "peak_bytes of naive divided by those of the row: 3 is a third of the memory",
    }


def print_report(report: StepMemoryReport, wants_json: bool) -> None:
    """Print the report on stdout, for a reader or as one JSON document."""
    if wants_json:
        print(json_text(asdict(report), indent=1))
    else:
        render(report, Console())


def render(report: StepMemoryReport, console: Console) -> None:
    """Print the table with all that its figures must be read with."""
    what, model = report.settings, report.settings["model"]
    layers = f"{model['encoder_layers']}+{model['decoder_layers']} layers of width {model['d_model']}"
    lines = [
        f"{report.device}, {counted(what['threads'], 'thread')}, torch {report.torch}",
        f"training step: {layers}, vocabulary {what['vocab_size']:,}, batch {what['batch']}, {what['dtype']}\n",
    ]
    aside = ", ".join(f"{name} {value}" for name, value in what["set_aside"].items())
    legend = [
        "",
        f"used     {what['used']}" + (f"; set aside: {aside}" if aside else ""),
        f"peak     {what['peak_bytes']}",
        f"held     {what['held_bytes']}",
        "less     peak of naive / peak of this kernel at the same length: 3 is a third of the memory",
        *(
            f"cannot run: {row.kernel}, length {row.seq_len}: {row.unsupported}"
            for row in report.rows
            if row.unsupported
        ),
        *(["interrupted: the rows above are those that were finished"] if report.interrupted else []),
    ]
    for part in (*lines, _table(report.rows), *legend):
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


def _table(rows: Sequence[StepPeak]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("length", "kernel", "peak MiB", "held MiB", "less"):
        table.add_column(name, justify="left" if name == "kernel" else "right", no_wrap=True)
    for row in rows:
        figures = ["cannot run"]
        if row.peak_bytes is not None and row.held_bytes is not None:
            ratio = "-" if row.ratio_to_naive is None else f"{row.ratio_to_naive:.2f}"
            figures = [f"{row.peak_bytes / 2**20:,.0f}", f"{row.held_bytes / 2**20:,.0f}", ratio]
        table.add_row(str(row.seq_len), row.kernel, *figures)
    return table


def _refusal(model: dict[str, Any], kernel: str) -> str | None:
    """Say why no model has this kernel together with the other values, as for a recipe."""
    places = AttentionPlaces.model_validate(dict.fromkeys(AttentionPlaces.model_fields, kernel))
    config = ModelConfig.model_validate(model).model_copy(update={"attention": places})
    return next((f"{row.names}: {row.why}" for row in REFUSED if row.found(config)), None)


def _config(request: StepMemoryRequest) -> Config:
    """Return the recipe, or the base model with changes."""
    if request.config is not None:
        return load_recipe(request.config, list(request.overrides))
    known = ModelConfig.model_fields
    start = [f"model.{name}={'null' if value is None else value}" for name, value in BASE.items() if name in known]
    return load_recipe("base.yaml", [*start, f"tokenizer.vocab_size={VOCABULARY}", *request.overrides])


def _model(config: Config) -> dict[str, Any]:
    return {name: value for name, value in config.model.model_dump().items() if name not in _OTHERS}


def _set_aside(config: Config) -> dict[str, object]:
    """Return what the recipe says of a step's memory, or of attention, and what is measured does not do."""
    train = {name: getattr(config.train, name) for name in _OF_A_STEP}
    told = {name: value for name, value in train.items() if value != type(config.train).model_fields[name].default}
    named = {f"train.{name}": value for name, value in told.items()}
    kernels = set(config.model.attention.model_dump().values()) - set(KERNELS)
    return named | ({"model.attention": " and ".join(sorted(kernels))} if kernels else {})
