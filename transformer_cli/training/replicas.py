"""The batches of a window, computed side by side on a CPU: one copy of the modules per thread, one set of weights.

Two threads that each compute a batch are faster than one batch whose every operation is cut in two: nothing waits for
the slower half of an operation some two thousand times a step (1.25 times as fast on two cores, 4+4 layers of width
128, 2,048 tokens a batch). torch lets go of Python's lock inside every operation. A GPU is kept busy by one batch, so
there the window is read one by one.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


class Replicas(Generic[Model]):
    """Copies of a model that share its weights and have gradients of their own."""

    def __init__(self, model: Model, count: int) -> None:
        """Make the copies.

        Args:
            model: the first of them; the gradients of all end up here.
            count: how many jobs are done at a time; 1 makes no thread.
        """
        self._models = [model, *(copy.deepcopy(model) for _ in range(count - 1))]
        self._threads = max(1, torch.get_num_threads() // count)
        self._pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(self._threads,))

    def run(self, jobs: Sequence[Callable[[Model], Tensor]]) -> list[Tensor]:
        """Do all jobs and add up their gradients in the model; the sums depend on the number of copies, not on chance.

        Args:
            jobs: each is given a copy of the model, adds to its gradients and returns a loss.

        Returns:
            The losses in the order of the jobs.

        Raises:
            BaseException: the first that a job has raised, when all have ended.
        """
        count = min(len(self._models), len(jobs))
        if count == 1:
            return [job(self._models[0]) for job in jobs]
        self._share_weights()
        futures = [self._pool.submit(_in_turn, jobs[i::count], self._models[i]) for i in range(count)]
        results = [future.exception() or future.result() for future in futures]  # all have ended before any is raised
        for result in results:
            if isinstance(result, BaseException):
                raise result
        self._gather_gradients(self._models[1:count])
        return [results[i % count][i // count] for i in range(len(jobs))]  # type: ignore[index]

    def _share_weights(self) -> None:
        """Let all copies see the model's present weights; averaging exchanges its tensors."""
        for model in self._models[1:]:
            for mine, shared in zip(model.parameters(), self._models[0].parameters(), strict=True):
                mine.data = shared.data

    def _gather_gradients(self, models: Iterable[nn.Module]) -> None:
        for model in models:
            into, added = [], []
            for total, part in zip(self._models[0].parameters(), model.parameters(), strict=True):
                if part.grad is None:
                    continue
                if total.grad is None:
                    total.grad = part.grad
                else:
                    into.append(total.grad)
                    added.append(part.grad)
                part.grad = None
            if into:
                torch._foreach_add_(into, added)


def _in_turn(jobs: Sequence[Callable[[Model], Tensor]], model: Model) -> list[Tensor]:
    return [job(model) for job in jobs]
