"""Several GPUs of this process: each has a stream, an arena and its own copies of the constants.

One thread queues the tasks: launches do not wait for the GPU. A task goes to the GPU with the least
predicted work so far, so equal calls run equal tasks on each. The first GPU adds the results, in
the order of the tasks, and the others send it theirs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from ..errors import TcgenError, UnavailableError
from ..runtime.gpu.numbered import NumberedGpu, open_gpus
from .executor import Engine
from .handles import Handle
from .stage import Task
from .worker import Done, Job, Place, Shelf, prepare, run_task


class _Gpu:
    """A GPU with what it stores, and the predicted seconds of the tasks that it was given."""

    def __init__(self, gpu: NumberedGpu) -> None:
        self.gpu, self.seconds = gpu, 0.0
        self.place = Place(gpu.name, gpu.device, Shelf())

    @contextmanager
    def current(self) -> Iterator[None]:
        """Work of this GPU, whose errors begin with its name."""
        try:
            with self.gpu.current(), self.gpu.device.translated():
                yield
        except TcgenError as error:
            error.args = (f"{self.gpu.name}: {error}", *error.args[1:])
            raise
        except Exception as error:
            raise UnavailableError(f"{self.gpu.name}: {type(error).__name__}: {error}") from error


class GpuEngine(Engine):
    """Runs tasks on the GPUs of these numbers, CuPy's.

    Raises:
        ArgumentError: no number is given, or one twice.
        UnavailableError: a GPU, CuPy, a driver or NVRTC is missing.
    """

    on_gpus = True
    slots_per_worker = 1

    def __init__(self, numbers: Sequence[int]) -> None:
        self._gpus = [_Gpu(gpu) for gpu in open_gpus(numbers)]
        self.slots = len(self._gpus)
        self.worker_memory = min(g.gpu.free_bytes() for g in self._gpus)

    def share(self, value: Any) -> Handle:
        """A value of this process, from which a GPU takes what its tasks read."""
        return Handle(value, moves=False)

    def forget(self, handles: Sequence[Handle]) -> None:
        """Drop the copies on the GPUs."""
        tokens = {handle.token for handle in handles}
        for gpu in self._gpus:
            gpu.place.shelf.forget(tokens)

    def prepare(self, stage: Handle) -> None:
        """Compile on the first GPU; CuPy stores the result for others of the same kind."""
        with self._gpus[0].current():
            prepare(stage)

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task with its blocks on the first GPU, in order.

        A GPU has one task at a time, whose results leave it before the next one begins.
        """
        for gpu in self._gpus:
            gpu.seconds = 0.0
        running: deque[tuple[Task, _Gpu, float, Done]] = deque()
        try:
            for task in tasks:
                gpu = min(self._gpus, key=lambda g: g.seconds)
                while any(other is gpu for _, other, _, _ in running):
                    yield self._ended(*running.popleft())
                gpu.seconds += task.seconds or 1.0
                began = time.perf_counter()
                with gpu.current():
                    running.append((task, gpu, began, run_task(job, task, gpu.place)))
            while running:
                yield self._ended(*running.popleft())
        finally:
            for _, gpu, _, _ in running:
                with suppress(TcgenError), gpu.current():
                    gpu.gpu.device.wait()

    def _ended(self, task: Task, gpu: _Gpu, began: float, done: Done) -> tuple[Task, Done]:
        with gpu.current():
            gpu.gpu.device.wait()
        seconds, first = time.perf_counter() - began, self._gpus[0]
        if gpu is first:
            return task, replace(done, seconds=seconds)
        with first.current():
            blocks = {
                name: tuple((where, first.gpu.copied(block, gpu.gpu)) for where, block in each)
                for name, each in done.blocks.items()
            }
        return task, replace(done, blocks=blocks, seconds=seconds)

    def apart(self, work: Callable[[], None]) -> None:
        """Results are begun and added on the first GPU."""
        with self._gpus[0].current():
            work()

    def result(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of the first GPU."""
        with self._gpus[0].current():
            return self._gpus[0].gpu.device.empty(shape, dtype)

    def taken(self, result: Any) -> npt.NDArray[Any]:
        """The result in the memory of the CPU."""
        with self._gpus[0].current():
            return self._gpus[0].gpu.device.get(result)

    def close(self) -> None:
        """Give all memory back to CuPy's pools."""
        for gpu in self._gpus:
            gpu.place.shelf.clear()
