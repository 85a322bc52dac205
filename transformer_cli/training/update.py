"""One update of the weights: backward, unscale, clip, step, average.

Not here: which batches (``data_order.py``), which learning rate (``schedule.py``) and what happens around a step
(``trainer.py``).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer_cli.checkpoint.snapshot import CheckpointState
from transformer_cli.checkpoint.tensor_files import load_strictly
from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import Batch
from transformer_cli.errors import TrainingFailed, is_out_of_memory
from transformer_cli.model.dropout import dropout_stream
from transformer_cli.model.transformer import Transformer, choose_recomputation
from transformer_cli.runtime import Runtime, keep_freed_memory
from transformer_cli.training import optimizer as optimizing
from transformer_cli.training.ema import Ema
from transformer_cli.training.objective import Objective
from transformer_cli.training.ranks import Ranks
from transformer_cli.training.replicas import Replicas
from transformer_cli.training.teachers import load_teachers, weights_sha256
from transformer_cli.wording import counted


class Updater:
    """Owns the model's weights, the optimizers, fp16's loss scale and the averaged weights."""

    def __init__(self, model: Transformer, config: TrainConfig, runtime: Runtime) -> None:
        keep_freed_memory()  # here, so that whoever times a step times the one that a run takes
        self.model, self._config, self._runtime = model, config, runtime
        teachers = load_teachers(config.teachers, runtime.device)
        self.teachers_sha256 = [weights_sha256(teacher) for teacher in teachers]
        self._objective = Objective(config, teachers)
        choose_recomputation(model, config.checkpointing)  # before the copies are made
        on_cpu = runtime.device.type == "cpu"
        self._replicas = Replicas(model, min(config.accumulate, runtime.threads) if on_cpu else 1)
        self.optimizers = optimizing.build_optimizers(model, config, runtime.amp_dtype)
        fp16 = runtime.amp_dtype is torch.float16
        self.scaler = torch.amp.GradScaler(runtime.device.type, enabled=fp16)
        self.scaler.scale(torch.zeros((), device=runtime.device))  # makes its scale now: threads would at once
        self.ema = None if config.ema_decay is None else Ema(model, config.ema_decay)

    def accumulate(self, batches: Sequence[Batch], seeds: Sequence[int], window_tokens: int) -> Tensor:
        """Add the gradients of a window's batches; return their share of its loss per token, a scalar on the device.

        Args:
            batches: all of the window, or this rank's; on the device. Those of a CPU are computed side by side.
            seeds: one for each batch, of everything random in it.
            window_tokens: target tokens of the whole window, over all ranks.

        Raises:
            TrainingFailed: memory ran out.
        """
        jobs = [partial(self._backward, batch, seed, window_tokens) for batch, seed in zip(batches, seeds, strict=True)]
        return torch.stack(self._replicas.run(jobs)).sum()

    def _backward(self, batch: Batch, seed: int, window_tokens: int, model: Transformer) -> Tensor:
        """Add a batch's gradients to those of a model; return its share of the window's loss."""
        with _memory_explained(batch, self._config), self._stream(seed):
            with self._runtime.autocast():
                loss = self._objective(model, batch) / window_tokens
            torch.autograd.backward(self.scaler.scale(loss))
        return loss.detach()

    def sum_over(self, ranks: Ranks, loss: Tensor | None) -> Tensor:
        """Add up the gradients of a window over all ranks, before anything looks at them; return its loss.

        Args:
            ranks: all of them are here.
            loss: this rank's share; None if it had no batch, so that its gradients are zero.
        """
        if loss is None:
            loss = next(self.model.parameters()).new_zeros(())
        if ranks.world_size > 1:
            ranks.all_reduce_sum([loss, *optimizing.all_gradients(self.model)])
        return loss

    def _stream(self, seed: int) -> AbstractContextManager[None]:
        if self._runtime.device.type == "cpu":
            return dropout_stream(seed)
        torch.manual_seed(seed)  # there is one batch at a time there
        return nullcontext()

    def unscale_and_clip(self) -> Tensor:
        """Return the norm that the true gradients had before clipping; it stays on the device."""
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        norm = optimizing.gradient_norm(self.model)
        optimizing.clip_gradients(self.model, norm, self._config.clip_norm)
        return norm

    def step(self, rate: float, step: int) -> None:
        """Apply the gradients as update number ``step`` and forget them.

        The optimizers are stepped directly: the trainer has already looked at the norm, so ``GradScaler.step``, which
        would look once more, has nothing to add.
        """
        optimizing.set_learning_rate(self.optimizers, rate)
        for optimizer in self.optimizers:
            optimizer.step()
        self.scaler.update()
        self.model.zero_grad(set_to_none=True)
        if self.ema is not None:
            self.ema.update(self.model, step)

    def skip(self) -> bool:
        """Forget the gradients without a step; return whether the loss scale may be to blame, and was lowered.

        fp16's scale starts far too high on purpose and is halved until nothing overflows; only an overflow at a scale
        of one is the model's own.
        """
        to_blame = bool(self.scaler.is_enabled()) and self.scaler.get_scale() > 1.0
        self.scaler.update()
        self.model.zero_grad(set_to_none=True)
        return to_blame

    def averaged(self) -> AbstractContextManager[None]:
        """Return the context in which the model has the weights to be judged and kept: the averaged ones, if any."""
        return nullcontext() if self.ema is None else self.ema.applied(self.model)

    def weights(self) -> dict[str, Tensor]:
        """Return the model's parameters, shared ones once."""
        return {name: parameter.detach() for name, parameter in self.model.named_parameters()}

    def snapshot(self, step: int, counters: dict[str, Any]) -> CheckpointState:
        """Return all state, to be stored."""
        moments = optimizing.optimizer_tensors(self.model, self.optimizers)
        shadow = None if self.ema is None else self.ema.shadow
        return CheckpointState(step, self.weights(), moments, shadow, counters | {"scaler": self.scaler.state_dict()})

    def restore(self, state: CheckpointState) -> None:
        """Take over stored state."""
        load_strictly(self.model, state.weights, f"step-{state.step}")
        optimizing.restore_optimizers(self.model, self.optimizers, state.optimizer)
        if self.ema is not None and state.ema is not None:
            self.ema.restore(state.ema)
        if self.scaler.is_enabled() and state.counters["scaler"]:
            self.scaler.load_state_dict(state.counters["scaler"])


@contextmanager
def _memory_explained(batch: Batch, config: TrainConfig) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        (rows, src), tgt = batch.src.shape, batch.tgt_in.shape[1]
        raise TrainingFailed(
            f"out of memory with a batch of {counted(rows, 'row')}, each of {src} source and {tgt} target tokens",
            hint=f"lower train.batch_tokens (now {config.batch_tokens}); raising train.accumulate "
            f"(now {config.accumulate}) by the same factor keeps the size of a step",
        ) from error
