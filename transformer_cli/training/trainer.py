"""The training loop, and how a run begins, continues and ends.

Not here: one update of the weights (``update.py``), the order of the data (``data_order.py``), what is on disk
(``run_folder.py``), and how to validate, which the caller brings.

A run is a function of its configuration and its data. Nothing that happens between two steps (logging, validating,
saving, being killed) can move it: dropout is drawn from streams keyed by the position in the data, and no schedule
reads the clock. On a GPU the plain loss needs one synchronisation a step, for it and the norm that say whether to step.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config
from transformer_cli.data.batching import collate
from transformer_cli.data.epochs import EpochPairs
from transformer_cli.errors import DataError, DiskFull, TfmError, TrainingFailed
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime, stream_seed
from transformer_cli.training import averaging, continuation
from transformer_cli.training.budget import StepTimer, steps_in_budget
from transformer_cli.training.data_order import DataOrder, Window, batches_per_step
from transformer_cli.training.journal import Journal
from transformer_cli.training.limits import Limits, diverged
from transformer_cli.training.progress import Progress, TrainRecord, ValidationRecord
from transformer_cli.training.ranks import Ranks
from transformer_cli.training.schedule import Schedule
from transformer_cli.training.signals import StopSignals, interruption
from transformer_cli.training.state import Ending, TrainingReport, TrainState
from transformer_cli.training.update import Updater
from transformer_cli.training.validation import Validation, is_better


class Trainer:
    """Trains one model in one run folder."""

    def __init__(
        self,
        model: Transformer,
        pairs: EpochPairs,
        config: Config,
        run: RunFolder,
        runtime: Runtime,
        *,
        validate: Callable[[Transformer, int], Validation],
        progress: Progress,
        note: Callable[[str], None],
    ) -> None:
        """Prepare a run.

        Args:
            model: with its initial weights; it is moved to the runtime's device.
            pairs: the training data, epoch by epoch.
            config: the run's, but for the keys that a continued run may change.
            run: where everything is written.
            runtime: device and precision, and which of the ranks that train together this is.
            validate: looks at the dev set; given the model and the step.
            progress: is told what happens.
            note: takes warnings.

        Raises:
            DataError: there are no pairs.
        """
        if not len(pairs):
            raise DataError("there is nothing to train on", got="0 sentence pairs")
        settings = config.train
        self.config, self.run, self.runtime, self.settings = config, run, runtime, settings
        self._validate_model = validate
        self._ranks = Ranks(runtime.rank, runtime.world_size)
        batches = batches_per_step(settings, runtime.world_size)
        self._order = DataOrder(pairs, settings.batch_tokens, batches, settings.seed)
        self._limits, self._timer = Limits(settings, self._order), StepTimer()
        self._schedule = Schedule.of(settings)
        self._ranks.spread(list(model.to(runtime.device).parameters()))
        self._updater = Updater(model.train(), settings, runtime)
        self._ranks.refuse_difference("teachers (train.teachers)", " ".join(self._updater.teachers_sha256))
        self._journal = Journal(run, progress, note)
        self._decoding = f"beam {settings.validate_beam_size}, length penalty {config.decode.length_penalty:g}"
        self.state = TrainState()
        self._saved: TrainState | None = None  # as of the newest checkpoint

    def train(self) -> TrainingReport:
        """Train to the end.

        Raises:
            Interrupted: a signal asked to stop; the state is saved.
            TrainingFailed, DiskFull: the numbers diverged, or memory or disk ran out; the last checkpoint is intact.
        """
        self._limits.take_up(self.run.info)
        if self._limits.is_over(self.state) and averaging.is_settled(self.run, self.settings):
            self._journal.note(f"ended by {self._limits.reached(self.state)}; to go on, raise it or set it to null")
            return self._report("already finished")
        try:
            self._begin()
            with StopSignals() as signals:
                while not self._limits.is_over(self.state):
                    self._advance()
                    self._stop_if_asked(signals)
                return self._finish()
        except (TrainingFailed, DiskFull):
            with suppress(TfmError):  # a full disk may refuse this, too
                self.run.update_info({"status": "failed"})
            raise
        finally:
            self._journal.stopped()

    def resume(self) -> None:
        """Take over the newest whole checkpoint; without one the run starts over.

        Raises:
            RunError: a key or a teacher differs, a limit is below what is done, or the folder is damaged or read-only.
        """
        continuation.refuse_changes(self.run, self.config, self.runtime.world_size)
        self._ranks.together(lambda: continuation.refuse_other_teachers(self.run, self._updater.teachers_sha256))
        continuation.announce_differences(self.run, self.runtime, self._journal.note)
        found = self._ranks.from_main(lambda: continuation.last_state(self.run, self._journal.note))
        if found is not None:
            self._updater.restore(found)
            self.state = TrainState.restored(found.step, found.counters)
            self._saved = self.state.copy()
        self._limits.refuse_cut(self.run, self.state)
        if self.run.config != self.config:
            self.run.replace_config(self.config)

    # One step

    def _advance(self) -> None:
        """Do one step and whatever is due after it."""
        began = time.monotonic()
        window = self._order.window(self.state.position)
        rate = self._schedule.learning_rate(self.state.step + 1, self._limits.total_steps)
        loss, norm = self._accumulate(window), self._updater.unscale_and_clip()
        loss_value, norm_value = torch.stack([loss, norm]).tolist()
        self.state.move_to(self._order.after(self.state.position))
        if not (math.isfinite(loss_value) and math.isfinite(norm_value)):
            self._skip(loss_value, norm_value)
            return
        self._updater.step(rate, self.state.step + 1)
        self._count(window, loss_value, time.monotonic() - began)
        self._fix_time_budget()
        if self.state.step % self.settings.log_every == 0:
            self._log(rate, norm_value)
        if self.state.step % self.settings.validate_every == 0:
            self._validate()
        if self.state.step % self.settings.save_every == 0 or self._is_worth_saving():
            self._save()

    def _accumulate(self, window: Window) -> Tensor:
        """Add up the gradients of a window over all ranks; return its loss per token."""
        at, share = self.state.position, self._ranks.share(len(window.batches))
        batches = [collate(window.pairs, window.batches[i]).to(self.runtime.device) for i in share]
        # Keyed by the place in the data and not by the step: a skipped step reads on without counting.
        seeds = [stream_seed(self.settings.seed, "dropout", at.epoch, at.batch + i) for i in share]
        loss = self._updater.accumulate(batches, seeds, window.target_tokens()) if batches else None
        return self._updater.sum_over(self._ranks, loss)

    def _skip(self, loss: float, norm: float) -> None:
        """Leave everything as it was but for the place in the data; give up after too many in a row."""
        self.state.skipped += 1
        if self._updater.skip() and math.isfinite(loss):
            return
        self.state.bad_in_a_row += 1
        if self.state.bad_in_a_row >= self.settings.max_bad_steps:
            self._ranks.fail(diverged(self.state, loss, norm))

    def _count(self, window: Window, loss: float, seconds: float) -> None:
        tokens = window.target_tokens()
        self.state.count(loss, tokens)
        self._timer.add(seconds, window.padded_tokens())
        self._journal.stepped(self.state.step, self._limits.total_steps, tokens, seconds)

    def _fix_time_budget(self) -> None:
        """Turn ``max_minutes`` into steps, once, as soon as enough steps were timed, and store the number at once."""
        seconds, is_warm = self._limits.budget_seconds, self.state.step >= self.settings.warmup_steps
        if seconds is None or not self._ranks.broadcast(self._timer.is_ready(is_warm, seconds)):
            return
        steps = self._ranks.broadcast(self._steps_in_budget(seconds))  # the main rank's clock counts
        self._limits.settle(steps)
        minutes, total = self.settings.max_minutes, self._limits.total_steps
        self.run.update_info({"time_budget": {"minutes": minutes, "steps": steps}, "total_steps": total})
        told = f"train.max_minutes {minutes:g} comes to {steps:,} steps"
        self._journal.note(told, *self._schedule.warnings(steps))

    def _steps_in_budget(self, seconds: float) -> int:
        """Return the last step of a run of so many seconds, by this rank's clock."""
        before = self._journal.elapsed
        self._look_at_dev_set()  # only to time it
        left, validation = seconds - self._journal.elapsed, self._journal.elapsed - before
        left -= validation * averaging.is_wanted(self.settings)  # it has one of its own
        step_seconds = self._order.mean_step_seconds(self.state.epoch, self._timer.seconds_per_token())
        return steps_in_budget(self.state.step, left, step_seconds, validation, self.settings.validate_every)

    def _log(self, rate: float, norm: float | None) -> None:
        state, total = self.state, self._limits.total_steps
        record = TrainRecord(
            step=state.step,
            epoch=round(self._order.passes(state.position), 3),
            loss=state.close_interval(),
            lr=rate,
            grad_norm=norm,
            tokens_per_second=self._journal.speed(),
            skipped=state.skipped,
            total_steps=total,
            seconds_left=self._journal.seconds_left(state.step, total, self._limits.budget_seconds),
        )
        self._journal.logged(record)

    # Validating and saving

    def _look_at_dev_set(self) -> Validation:
        return self._ranks.from_main(self._look_alone)

    def _look_alone(self) -> Validation:
        """Look at the dev set on the one rank that does."""
        try:
            return self._validate_model(self._updater.model, self.state.step)
        finally:
            self._updater.model.train()

    def _validate(self) -> None:
        """Look at the dev set with the weights that would be kept; keep them if they are the best so far."""
        state = self.state
        with self._updater.averaged():
            validation = self._look_at_dev_set()
            is_best = is_better(validation.metrics(), state.best, self.settings.stop_metric)
            if is_best:
                self.run.save_model(self._updater.weights())
        state.judge(validation.metrics(), is_best)
        self._journal.validated(ValidationRecord(state.step, validation, self._decoding, is_best))

    def _is_worth_saving(self) -> bool:
        """Return whether the step just done may be among the best ones that are kept or averaged."""
        is_kept = self.settings.keep_best > 0 and self.state.is_best
        return is_kept or (self.settings.average_best is not None and self.state.validation is not None)

    def _save(self, status: str = "training") -> None:
        """Write a checkpoint unless this very state has one, then forget those that are no longer wanted."""
        state, settings = self.state, self.settings
        if state != self._saved:
            self.run.save_checkpoint(self._updater.snapshot(state.step, state.counters()))
            self._saved = state.copy()
        needed = averaging.steps_to_average(self.run, settings, state.step)
        self.run.prune(state.step, settings.keep_last, settings.keep_best, settings.stop_metric, needed)
        spent = self._limits.spent(self._journal.elapsed)
        self.run.update_info({"status": status, "step": state.step, "best": state.best, **spent})

    # Beginning and end

    def _begin(self) -> None:
        total, before = self._limits.total_steps, self.run.info.get("total_steps")
        self._journal.note(*self._schedule.warnings(total, before, self.state.step))
        if self.settings.amp == "auto" and self.runtime.amp_dtype is None:
            self._journal.note("train.amp auto: off, everything is computed in float32 on this device")
        self.run.forget_average()
        info = {"status": "training", "total_steps": total, "average": None, "best": self.state.best}
        self.run.update_info(info | continuation.conditions(self.config, self.runtime, self._updater.teachers_sha256))
        if self.settings.init_from is not None and not self.run.steps():
            self._save()  # the run that the weights come from may be gone when this one is continued
        self._journal.started(self.state.step, total, self._limits.budget_seconds)

    def _stop_if_asked(self, signals: StopSignals) -> None:
        if received := self._ranks.largest(signals.received or 0):
            if self.state.best is None:  # not validated yet: something to translate with is better than nothing
                with self._updater.averaged():
                    self.run.save_model(self._updater.weights())
            self._save("interrupted")
            self._ranks.fail(interruption(received, self.state.step, self.run.path))

    def _finish(self) -> TrainingReport:
        """Do what the last step owes: a log record, a validation, a checkpoint, an average."""
        if self.state.interval_tokens:
            self._log(self._schedule.learning_rate(max(1, self.state.step), self._limits.total_steps), None)
        if self.state.validation is None:
            self._validate()
        self._save()
        self._average()
        self.run.update_info({"status": "finished"})
        return self._report("finished" if self._limits.is_complete(self.state) else "stopped early")

    def _average(self) -> None:
        """Try the average of checkpoints, if it is wanted."""
        seen = self.run, self.settings, self.state, self._updater.model, self._look_alone, self._journal.note
        found = self._ranks.from_main(lambda: averaging.try_average(*seen))
        if found is not None:
            average, validation = found
            record = ValidationRecord(self.state.step, validation, self._decoding, average.is_model, average.steps)
            self._journal.validated(record)
            self.run.update_info(average.entries(self.state))

    def _report(self, ended: Ending) -> TrainingReport:
        state, average = self.state, self.run.info.get("average")
        numbers = self._order.passes(state.position), state.best, average, state.skipped, self._journal.elapsed
        before, beam_size = state.step - self._journal.steps, self.settings.validate_beam_size
        return TrainingReport(self.run.path, ended, state.step, *numbers, before, beam_size)
