"""``tfm train``: from a recipe to a run folder, or from a run folder to a longer run."""

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from transformer_cli.checkpoint import RunFolder
from transformer_cli.checkpoint.follower import FollowedRun
from transformer_cli.checkpoint.loading import refuse_unfit_device
from transformer_cli.checkpoint.own_files import refuse_foreign
from transformer_cli.commands.files.json_text import json_text
from transformer_cli.commands.mask_check import refuse_wrong_masks
from transformer_cli.commands.shared.notes import Note, note_on_stderr
from transformer_cli.commands.shared.provenance import origin
from transformer_cli.commands.shared.run_choice import newest_started_run
from transformer_cli.commands.shared.tables import data_table
from transformer_cli.config import Config
from transformer_cli.decoding.shortlist import SHORTLIST, Shortlist
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import ConfigError, RunError
from transformer_cli.evaluation import Validator
from transformer_cli.experiment import Experiment, prepare
from transformer_cli.model.attention import flash_refusal
from transformer_cli.model.kernels import pattern_of, pattern_remark
from transformer_cli.model.transformer import Transformer
from transformer_cli.recipe import find_recipe, load_recipe
from transformer_cli.runtime import RankPlace, Runtime
from transformer_cli.training.continuation import refuse_changes
from transformer_cli.training.data_order import batches_per_step
from transformer_cli.training.progress import PlainProgress, Progress, RichProgress
from transformer_cli.training.ranks import Ranks, joined
from transformer_cli.training.signals import told_how_to_go_on
from transformer_cli.training.state import TrainingReport
from transformer_cli.training.trainer import Trainer
from transformer_cli.wording import counted, searched


@dataclass(frozen=True)
class TrainRequest:
    """What the command line asked for."""

    config: str | None
    overrides: tuple[str, ...] = ()
    run: Path | None = None
    resume: bool = False
    overwrite: bool = False
    device: str = "auto"
    quiet: bool = False


def run_training(request: TrainRequest) -> TrainingReport:
    """Train a new run, or continue one, to its end; alone, or as one of the processes that ``torchrun`` started.

    Raises:
        UserError: the request, the recipe, the data or the run folder cannot be used.
        TrainingFailed: the run stopped by itself.
        Interrupted: a signal stopped it; its state was saved.
    """
    if request.resume and request.overwrite:
        raise ConfigError("--resume and --overwrite exclude each other")
    refuse_idle_overwrite(request)
    place = RankPlace.from_environment()
    with joined(place) as ranks:
        quiet = replace(request, quiet=request.quiet or not ranks.is_main)
        made: list[Path] = []  # the run folder, as soon as it is this command's
        with told_how_to_go_on(lambda: next(iter(made), None)):
            train = _continue if request.resume else _start
            return train(quiet, place, ranks, made.append)


def print_report(report: TrainingReport, as_json: bool) -> None:
    """Print how the run ended, and what to do with it; of several ranks the main one does."""
    if RankPlace.from_environment().rank > 0:
        return
    if as_json:
        print(json_text(asdict(report) | {"run": str(report.run)}))
        return
    since = " since it was resumed" if 0 < report.resumed_at < report.steps else ""
    steps = f"{counted(report.steps, 'step')}, {report.epochs:.1f} epochs"
    print(f"{report.ended}: {steps}, {report.seconds:,.0f} s{since}")
    search = searched(report.validate_beam_size)
    if report.best is not None:
        best = report.best
        print(f"best: dev BLEU {best['bleu']:.2f} ({search}), loss {best['loss']:.3f}, at step {best['step']:.0f}")
    if report.average is not None:
        mean, steps = report.average, ", ".join(f"{step:,}" for step in report.average["steps"])
        verdict = "better: it is the run's model" if mean["is_model"] else "not better: the best step stays the model"
        print(f"average of steps {steps}: dev BLEU {mean['bleu']:.2f} ({search}), loss {mean['loss']:.3f}, {verdict}")
    print(f"run: {report.run}")


def _start(request: TrainRequest, place: RankPlace, ranks: Ranks, made: Callable[[Path], None]) -> TrainingReport:
    note = note_on_stderr(request.quiet)
    config = ranks.from_main(lambda: requested_config(request))
    path = ranks.from_main(lambda: _free_place(request, config))
    runtime = ranks.together(lambda: Runtime.resolve(request.device, config.train.amp, place))
    refuse_unfit_device(config, runtime.device.type, sixteen_bits=runtime.amp_dtype is not None)
    experiment = prepare(config, note, ranks=ranks)
    tell(experiment, runtime, note)
    ranks.from_main(lambda: refuse_wrong_masks(experiment))

    def create() -> RunFolder:
        info = origin(str(request.config), experiment.corpus.fingerprint)
        info["batches_per_step"] = batches_per_step(config.train, ranks.world_size)
        return RunFolder.create(path, config, experiment.tokenizer, info, overwrite=request.overwrite)

    run = _shared(ranks.from_main(create), ranks)
    made(run.path)
    note(f"run folder: {path}")
    with run.lock():
        return make_trainer(experiment, run, runtime, request.quiet).train()


def _continue(request: TrainRequest, place: RankPlace, ranks: Ranks, made: Callable[[Path], None]) -> TrainingReport:
    path = ranks.from_main(lambda: RunFolder.open(request.run or newest_started_run()).path)
    made(path)
    with _opened(path, ranks).lock():  # before a thing is read that another process may still be writing
        return _go_on(request, _opened(path, ranks), place, ranks)


def _go_on(request: TrainRequest, run: RunFolder, place: RankPlace, ranks: Ranks) -> TrainingReport:
    note = note_on_stderr(request.quiet)
    config = ranks.from_main(lambda: _continued_config(request, run, ranks))
    runtime = ranks.together(lambda: Runtime.resolve(request.device, config.train.amp, place))
    refuse_unfit_device(config, runtime.device.type, sixteen_bits=runtime.amp_dtype is not None)
    note(f"continuing {run.path}")
    experiment = prepare(config, note, run.tokenizer, ranks)
    if experiment.corpus.fingerprint != run.info.get("corpus_sha256"):
        hint = "put the old files back, or start a new run (-s train.init_from=RUN takes the weights along)"
        ranks.fail(RunError("the data are not those that this run was trained on", where=str(run.path), hint=hint))
    ranks.from_main(lambda: refuse_wrong_masks(experiment))
    trainer = make_trainer(experiment, run, runtime, request.quiet)
    trainer.resume()
    return trainer.train()


def _free_place(request: TrainRequest, config: Config) -> Path:
    path = request.run or _new_run(str(request.config))
    refuse_place(path, config, request)  # now, not after the minutes that preparing may take
    return path


def _continued_config(request: TrainRequest, run: RunFolder, ranks: Ranks) -> Config:
    config = load_recipe(request.config or str(run.path / "config.yaml"), request.overrides)
    refuse_changes(run, config, ranks.world_size)
    return config


def _opened(path: Path, ranks: Ranks) -> RunFolder:
    return _shared(ranks.from_main(lambda: RunFolder.open(path)), ranks)


def _shared(run: RunFolder, ranks: Ranks) -> RunFolder:
    return run if ranks.is_main else FollowedRun.of(run)


def refuse_idle_overwrite(request: TrainRequest) -> None:
    """Refuse ``--overwrite`` where there is nothing to replace: without ``--run`` every run gets a new name.

    Raises:
        ConfigError: it is given, and ``--run`` is not.
    """
    if request.overwrite and request.run is None:
        raise ConfigError(
            "--overwrite has nothing to replace", expected="--run DIR", hint="give it, or drop --overwrite"
        )


def refuse_place(path: Path, config: Config, request: TrainRequest) -> None:
    """Check that a run may be made at a place.

    Raises:
        RunError: something is in the way that shall not be replaced, that the new run reads, or that is not of a run.
    """
    RunFolder.refuse_existing(path, request.overwrite)
    replaced = os.path.realpath(path)
    recipe = os.path.realpath(find_recipe(str(request.config)))
    reads = config.places()
    if recipe != os.path.join(replaced, "config.yaml"):  # which is written anew
        reads.append(("--config", recipe))
    for key, read in reads if path.exists() else []:
        pattern = os.path.expanduser(read)
        if any(
            Path(os.path.realpath(file)).is_relative_to(replaced)
            for file in (pattern, *glob.iglob(pattern, recursive=True))
        ):
            hint = "choose another --run, or copy what is read to another place"
            raise RunError(f"would be replaced, but {key} reads from it", where=str(path), got=read, hint=hint)
    refuse_foreign(path)


def requested_config(request: TrainRequest) -> Config:
    """Load the recipe that was asked for.

    Raises:
        ConfigError: none was given, or it is not valid, or not for a new run.
    """
    if request.config is None:
        hint = "--resume continues a run; tfm init writes a recipe for your own files"
        raise ConfigError("no recipe was given", expected="--config NAME.yaml, e.g. --config base.yaml", hint=hint)
    config = load_recipe(request.config, request.overrides)
    config.data.refuse_odd_languages()
    return config


def tell(experiment: Experiment, runtime: Runtime, note: Note) -> None:
    """Say what is about to be trained: data, model, and why attention may be slow."""
    for line in data_table(experiment):
        note(line)
    parameters = sum(parameter.numel() for parameter in experiment.model.parameters())
    note(f"model: {counted(parameters, 'parameter')}, on {runtime.device}")
    for one in remarks(experiment, runtime):
        note(one)


def remarks(experiment: Experiment, runtime: Runtime) -> list[str]:
    """Return what is odd about the attention that was chosen, for this data and this device."""
    found, config = [], experiment.config.model
    if reason := flash_refusal(config, runtime.device.type):
        found.append(f"attention without the flash kernel: {reason}")
    if "sparse" in (config.attention.encoder, config.attention.decoder):
        pairs = experiment.train_pairs.plain
        longest = max(int(pairs.src_lengths.max()), int(pairs.tgt_lengths.max()))
        if reason := pattern_remark(pattern_of(config.sparse), longest):
            found.append(f"warning: {reason}")
    return found


def make_trainer(experiment: Experiment, run: RunFolder, runtime: Runtime, quiet: bool) -> Trainer:
    """Put a trainer together: the model, the data, and a validation that can decode."""
    config = experiment.config
    shortlist = _shortlist(experiment, run) if config.decode.shortlist else None
    in_float32 = replace(runtime, amp_dtype=None)  # as `tfm eval` translates, so that both find the same BLEU

    def translate(model: Transformer, lines: Sequence[str]) -> list[str]:
        translator = Translator.of_model(model, experiment.tokenizer, config, in_float32, shortlist=shortlist)
        return translator.translate(lines, beam_size=config.train.validate_beam_size)

    return Trainer(
        experiment.model,
        experiment.train_pairs,
        config,
        run,
        runtime,
        validate=Validator(experiment.corpus.dev, experiment.dev_pairs, config, translate, runtime),
        progress=_progress(quiet),
        note=note_on_stderr(quiet),
    )


def _shortlist(experiment: Experiment, run: RunFolder) -> Shortlist:
    """Return the run's shortlist; one that is not there yet is made."""
    if (run.path / SHORTLIST).is_file():
        return Shortlist.load(run.path, run.tokenizer)
    made = Shortlist.fitted(experiment.train_pairs.plain, run.tokenizer)
    if not isinstance(run, FollowedRun):
        made.save(run.path, run.tokenizer)
    return made


def _progress(quiet: bool) -> Progress:
    console = Console(stderr=True)
    return RichProgress(console) if console.is_terminal and not quiet else PlainProgress(note_on_stderr(quiet))


def _new_run(recipe: str) -> Path:
    """Return a run folder that does not exist yet: recipe and time, numbered if two start in one second."""
    stem = Path("runs") / f"{Path(recipe).stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    return next(path for n in range(1, 1000) if not (path := stem if n == 1 else Path(f"{stem}-{n}")).exists())
