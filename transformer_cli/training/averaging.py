"""The mean of the weights of several checkpoints, tried once at the end of a run.

Checkpoints of one run lie around the same minimum, and their mean is nearer to it than each of them: what one saw last
has less weight (Vaswani et al. 2017, section 6.1, average the last 5 or 20; Izmailov et al. 2018, "Averaging weights
leads to wider optima and better generalization"). Whether that holds is measured: the mean becomes the run's model only
if it is better on the dev set.

Not here: the moving average along the way (``ema.py``), whose weights are the ones averaged if a run keeps them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import TrainConfig
from transformer_cli.errors import RunError
from transformer_cli.training.ema import exchanged
from transformer_cli.training.state import TrainState
from transformer_cli.training.validation import Validation, is_better
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Average:
    """What the mean of some checkpoints was worth."""

    steps: list[int]  # of the checkpoints
    loss: float  # on the dev set
    bleu: float
    is_model: bool  # better than the best validation of single weights, and now the run's model

    def entries(self, state: TrainState) -> dict[str, object]:
        """Return what ``run.json`` says of it, and of the run's best."""
        mine = {"step": state.step, "loss": self.loss, "bleu": self.bleu}
        return {"average": asdict(self), "best": mine if self.is_model else state.best}


def is_wanted(settings: TrainConfig) -> bool:
    """Return whether a run tries an average."""
    return settings.average_last is not None or settings.average_best is not None


def is_settled(run: RunFolder, settings: TrainConfig) -> bool:
    """Return whether a run has been finished, and averaged if that is wanted; one may wish for it later."""
    return run.info["status"] == "finished" and (run.info.get("average") is not None or not is_wanted(settings))


def steps_to_average(run: RunFolder, settings: TrainConfig, step: int) -> list[int]:
    """Return the steps whose checkpoints make the average if the run ends at ``step``; they must not be pruned.

    A checkpoint made because the run was interrupted does not count: a resumed run averages what an undisturbed one
    would. Nor do weights from elsewhere, at step 0.
    """
    if settings.average_best is not None:
        return sorted(run.best_steps(step, settings.average_best, settings.stop_metric))
    regular = [s for s in run.steps(step - 1) if s > 0 and s % settings.save_every == 0]
    return [*regular, step][-settings.average_last :] if settings.average_last is not None and step else []


def try_average(
    run: RunFolder,
    settings: TrainConfig,
    state: TrainState,
    model: nn.Module,
    look_at_dev_set: Callable[[], Validation],
    note: Callable[[str], None],
) -> tuple[Average, Validation] | None:
    """Validate the average of a run that ends as ``state`` says, and make it the run's model if it is better.

    Args:
        run: its last checkpoint is saved.
        settings: which checkpoints.
        state: the step, and the best validation so far.
        model: computes with the mean while it is validated.
        look_at_dev_set: validates it.
        note: told about checkpoints that are missing.

    Returns:
        ``None`` if no average is wanted, or there are fewer than two checkpoints.
    """
    wanted = steps_to_average(run, settings, state.step)
    intact = ((step, weights) for step in wanted if (weights := _weights(run, step, note)) is not None)
    steps, mean = mean_weights(intact)
    asked = settings.average_last or settings.average_best or 0
    if len(steps) < asked:
        told = "they are averaged" if len(steps) > 1 else "nothing is averaged"
        note(f"warning: only {len(steps)} of {counted(asked, 'checkpoint')} found: {told}")
    if len(steps) < 2:
        return None
    device = next(model.parameters()).device
    mean = {name: tensor.to(device) for name, tensor in mean.items()}
    with exchanged(model, mean):
        validation = look_at_dev_set()
    is_model = is_better(validation.metrics(), state.best, settings.stop_metric)
    if is_model:
        run.save_average(mean)
    return Average(steps, validation.loss, validation.bleu, is_model), validation


def _weights(run: RunFolder, step: int, note: Callable[[str], None]) -> Mapping[str, Tensor] | None:
    """Return the weights that a checkpoint would be judged by; a damaged one is named and left out."""
    try:
        state = run.load_checkpoint(step)
    except RunError as error:
        note(f"checkpoint step-{step} is left out of the average: {error.render()}")
        return None
    return state.weights if state.ema is None else state.ema


def mean_weights(models: Iterable[tuple[int, Mapping[str, Tensor]]]) -> tuple[list[int], dict[str, Tensor]]:
    """Return the steps of some models, and the mean of their weights: summed in float64, rounded once.

    Args:
        models: step and named tensors of each; only one of them need be in memory at a time.
    """
    steps: list[int] = []
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    for step, weights in models:
        steps.append(step)
        dtypes = {name: tensor.dtype for name, tensor in weights.items()}
        sums = {name: tensor.double() + sums.get(name, 0.0) for name, tensor in weights.items()}
    return steps, {name: (total / len(steps)).to(dtypes[name]) for name, total in sums.items()}
