"""The mask doctor, asked before a training: a model that sees what it must not see is not trained."""

from transformer_cli.data.batching import collate
from transformer_cli.errors import TrainingFailed
from transformer_cli.experiment import Experiment
from transformer_cli.inspection.mask_doctor import Finding, examine

_SENTENCES = 3


def masks_of(experiment: Experiment) -> list[Finding]:
    """Examine the model of an experiment with its first training pairs, where the model lies."""
    pairs = experiment.train_pairs.plain
    batch = collate(pairs, range(min(_SENTENCES, len(pairs))))
    device = next(experiment.model.parameters()).device
    return examine(experiment.model, batch.src.to(device), batch.tgt_in.to(device))


def refuse_wrong_masks(experiment: Experiment) -> None:
    """Examine the model before its first step.

    Raises:
        TrainingFailed: an attention sees the future, padding or other sentences, or nothing at all.
    """
    if found := masks_of(experiment):
        hint = "its loss would look good and its translations would not: the fault is in a mask or in a kernel"
        raise TrainingFailed("this model is not trained: " + "\n  ".join(map(str, found)), hint=hint)
