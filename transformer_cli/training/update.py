"""One update of the weights: backward, unscale, clip, step, average.

Not here: which batches (``data_order.py``), which learning rate (``schedule.py``) and what happens around a step
(``trainer.py``).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.checkpoint.snapshot import CheckpointState
from transformer_cli.checkpoint.tensor_files import load_strictly
from transformer_cli.config import TrainConfig
from transformer_cli.data.batching import Batch
from transformer_cli.errors import TrainingFailed
from transformer_cli.runtime import Runtime
from transformer_cli.training import optimizer as adamw
from transformer_cli.training.ema import Ema
from transformer_cli.training.loss import summed_loss
from transformer_cli.training.ranks import Ranks

_OUT_OF_MEMORY = ("not enough memory", "can't allocate memory", "Cannot allocate memory")


class Updater:
    """Owns the model's weights, the optimizer, fp16's loss scale and the averaged weights."""

    def __init__(self, model: nn.Module, config: TrainConfig, runtime: Runtime) -> None:
        self.model, self._config, self._runtime = model, config, runtime
        self.optimizer = adamw.build_optimizer(model, config.weight_decay)
        fp16 = runtime.amp_dtype is torch.float16
        self.scaler = torch.amp.GradScaler(runtime.device.type, enabled=fp16)
        self.ema = None if config.ema_decay is None else Ema(model, config.ema_decay)

    def backward(self, batch: Batch, window_tokens: int) -> Tensor:
        """Add a batch's gradients; return its share of the window's loss, a scalar that stays on the device.

        Args:
            batch: on the device.
            window_tokens: target tokens of the whole accumulation window.

        Raises:
            TrainingFailed: memory ran out.
        """
        with _memory_explained(batch, self._config):
            with self._runtime.autocast():
                logits = self.model(batch.src, batch.tgt_in)
            loss = summed_loss(logits, batch.tgt_out, self._config.label_smoothing) / window_tokens
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
            self.scaler.scale(loss)  # makes its scale, as the first backward pass would
        if ranks.world_size > 1:
            ranks.all_reduce_sum([loss, *adamw.all_gradients(self.model)])
        return loss

    def unscale_and_clip(self) -> Tensor:
        """Return the norm that the true gradients had before clipping; it stays on the device."""
        self.scaler.unscale_(self.optimizer)
        norm = adamw.gradient_norm(self.model)
        adamw.clip_gradients(self.model, norm, self._config.clip_norm)
        return norm

    def step(self, rate: float, step: int) -> None:
        """Apply the gradients as update number ``step`` and forget them.

        The optimizer is stepped directly: the trainer has already looked at the norm, so ``GradScaler.step``, which
        would look once more, has nothing to add.
        """
        adamw.set_learning_rate(self.optimizer, rate)
        self.optimizer.step()
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if self.ema is not None:
            self.ema.update(self.model, step)

    def skip(self) -> bool:
        """Forget the gradients without a step; return whether the loss scale may be to blame, and was lowered.

        fp16's scale starts far too high on purpose and is halved until nothing overflows; only an overflow at a scale
        of one is the model's own.
        """
        to_blame = bool(self.scaler.is_enabled()) and self.scaler.get_scale() > 1.0
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return to_blame

    def averaged(self) -> AbstractContextManager[None]:
        """Return the context in which the model has the weights to be judged and kept: the averaged ones, if any."""
        return nullcontext() if self.ema is None else self.ema.applied(self.model)

    def weights(self) -> dict[str, Tensor]:
        """Return the model's parameters, shared ones once."""
        return {name: parameter.detach() for name, parameter in self.model.named_parameters()}

    def snapshot(self, step: int, counters: dict[str, Any]) -> CheckpointState:
        """Return all state, to be stored."""
        moments = adamw.optimizer_tensors(self.model, self.optimizer)
        shadow = None if self.ema is None else self.ema.shadow
        return CheckpointState(step, self.weights(), moments, shadow, counters | {"scaler": self.scaler.state_dict()})

    def restore(self, state: CheckpointState) -> None:
        """Take over stored state."""
        load_strictly(self.model, state.weights, f"step-{state.step}")
        adamw.restore_optimizer(self.model, self.optimizer, state.optimizer)
        if self.ema is not None and state.ema is not None:
            self.ema.restore(state.ema)
        if self.scaler.is_enabled() and state.counters["scaler"]:
            self.scaler.load_state_dict(state.counters["scaler"])


@contextmanager
def _memory_explained(batch: Batch, config: TrainConfig) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        (rows, src), tgt = batch.src.shape, batch.tgt_in.shape[1]
        raise TrainingFailed(
            f"out of memory with a batch of {rows} rows, {src} source and {tgt} target tokens each",
            hint=f"lower train.batch_tokens (now {config.batch_tokens}); raising train.accumulate "
            f"(now {config.accumulate}) by the same factor keeps the size of a step",
        ) from error


def _is_out_of_memory(error: Exception) -> bool:
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or any(sign in str(error) for sign in _OUT_OF_MEMORY)
