"""``tfm train --dry-run``: everything about a training except the training."""

from dataclasses import asdict, dataclass

from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.shared.notes import note_on_stderr
from transformer_cli.commands.shared.tables import data_table, parameters_table
from transformer_cli.commands.train import TrainRequest, refuse_idle_overwrite, refuse_place, remarks, requested_config
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.model.transformer import parameter_table
from transformer_cli.recipe import to_yaml
from transformer_cli.runtime import RankPlace, Runtime
from transformer_cli.training.estimate import Estimate, estimate
from transformer_cli.training.schedule import Schedule
from transformer_cli.wording import counted


@dataclass(frozen=True)
class Plan:
    """What would be trained, and how long it would take."""

    experiment: Experiment
    runtime: Runtime
    estimate: Estimate


def plan_training(request: TrainRequest) -> Plan:
    """Prepare a training and time three of its steps; nothing is written.

    Raises:
        UserError: the recipe or the data cannot be used.
    """
    if RankPlace.from_environment().rank > 0:
        raise SystemExit(0)  # one plan is enough; it is that of a single process
    refuse_idle_overwrite(request)
    config = requested_config(request)
    if request.run is not None:
        refuse_place(request.run, config, request)  # as the training would
    runtime, note, train = (
        Runtime.resolve(request.device, config.train.amp),
        note_on_stderr(request.quiet),
        config.train,
    )
    experiment = prepare(config, note)
    cost = estimate(experiment.model, experiment.train_pairs, train, runtime)
    for warning in [*remarks(experiment, runtime), *Schedule.of(train).warnings(cost.steps)]:
        note(warning)
    return Plan(experiment, runtime, cost)


def print_plan(plan: Plan, as_json: bool) -> None:
    """Print configuration, data counts, parameters and the estimate."""
    if as_json:
        print(json_text(_document(plan), indent=1))
        return
    cost = plan.estimate
    print(to_yaml(plan.experiment.config))
    print("\n".join(data_table(plan.experiment)), end="\n\n")
    print("\n".join(parameters_table(plan.experiment.model)), end="\n\n")
    print(f"{counted(cost.steps, 'step')} of {cost.seconds_per_step:.2f} s, about {cost.epochs:.1f} epochs")
    print(f"about {cost.minutes:.1f} minutes on {plan.runtime.describe()['device']}, validation not counted")


def _document(plan: Plan) -> dict[str, object]:
    experiment = plan.experiment
    corpus = experiment.corpus
    return {
        "config": experiment.config.model_dump(mode="json"),
        "data": {
            "train": len(experiment.train_pairs),
            "dev": len(corpus.dev),
            "test": len(corpus.test),
            "dropped": experiment.dropped,
        },
        "parameters": dict(parameter_table(experiment.model)),
        "estimate": asdict(plan.estimate),
        "runtime": plan.runtime.describe(),
    }
