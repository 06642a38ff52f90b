"""Any ``concurrent.futures.Executor``: threads, processes, MPIPoolExecutor, pools of others.

Threads take values as they are. Other workers take them from files, which must be on a file system
that they share; arrays are mapped, so a node has them in memory once.
"""

from __future__ import annotations

import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import UnavailableError
from ..runtime.fork_safe_lock import Lock
from .handles import Handle, InFile, unwritable
from .stage import Task
from .worker import Done, Job, prepare, run_task

T = TypeVar("T")


class Engine(ABC):
    """An adaptor of dask, MPI or an executor.

    Attributes:
        slots: tasks that run at one time, on all workers.
        slots_per_worker: tasks that run at one time in one process, which share its memory.
        worker_memory: bytes of a worker by the engine's own setting, or None.
        ranks: number of workers of a node that call the program together and share arrays and
            results; 0 if each worker has its own arrays, and the results go to the caller.
        on_gpus: workers are GPUs of this process: each takes what its tasks read, and the first one
            holds the results.
    """

    slots: int
    slots_per_worker: int
    worker_memory: int | None = None
    ranks: int = 0
    on_gpus: bool = False

    def once(self, make: Callable[[], T]) -> T:
        """The value that ``make`` returns in one of the processes that call the program."""
        return make()

    def agreed(self, make: Callable[[], tuple[str, T]]) -> T:
        """The value of ``make`` in each of these processes, which are all to do the same.

        ``make`` returns a text that says what the process is about to do, and the value. An error
        of one process is raised in all of them, before any sends anything.
        """
        return make()[1]

    def apart(self, work: Callable[[], None]) -> None:
        """Work of this process between the results of ``run``; ``settle`` may raise its error."""
        work()

    @abstractmethod
    def share(self, value: Any) -> Handle:
        """Send an array or a stage to the workers, past any scheduler."""

    def forget(self, handles: Sequence[Handle]) -> None:  # noqa: B027  (engines without it need none)
        """Drop values that no later call uses."""

    @abstractmethod
    def prepare(self, stage: Handle) -> None:
        """Compile a stage once on each node."""

    @abstractmethod
    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task with its results, in any order.

        Raises:
            UnavailableError: workers cannot be reached, or die again and again.
        """

    def result(self, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
        """Memory for a whole result; read-only if another process fills it."""
        return np.empty(shape, dtype)

    def taken(self, result: Any) -> npt.NDArray[Any]:
        """A whole result, complete, as an array of NumPy."""
        array: npt.NDArray[Any] = result
        return array

    def settle(self, results: Sequence[npt.NDArray[Any]]) -> None:  # noqa: B027  (engines without it need none)
        """All blocks of results are in their places."""

    def close(self) -> None:  # noqa: B027  (engines without it need none)
        """Remove files of the engine; the user's client, communicator or pool stays open."""


class ExecutorEngine(Engine):
    """Runs tasks in the user's executor.

    All workers see ``scratch``, the folder for values; None takes one for temporary files.
    """

    def __init__(self, executor: Executor, scratch: Path | None = None) -> None:
        self._executor = executor
        self._threads = isinstance(executor, ThreadPoolExecutor)
        self._folder: Path | None = None
        self._scratch = scratch
        self._lock = Lock()
        workers: Any = executor
        count = getattr(workers, "_max_workers", None)  # without a public name
        self.slots = int(count or os.cpu_count() or 1)
        self.slots_per_worker = self.slots if self._threads else 1

    def share(self, value: Any) -> Handle:
        """A value of this process for threads; else a file."""
        if self._threads:
            return Handle(value, moves=False)
        with self._lock:
            if self._folder is None:
                self._folder = self._made_folder()
            return InFile.write(value, self._folder)

    def _made_folder(self) -> Path:
        try:
            return Path(tempfile.mkdtemp(prefix="tcgen-run-", dir=self._scratch))
        except OSError as error:
            raise unwritable(self._scratch or Path(tempfile.gettempdir()), error) from None

    def forget(self, handles: Sequence[Handle]) -> None:
        """Remove the files of values."""
        for handle in handles:
            if isinstance(handle, InFile):
                handle.value.unlink(missing_ok=True)

    def prepare(self, stage: Handle) -> None:
        """Compile in one worker; the others find the result in the cache."""
        if self._inside:
            return prepare(stage)
        try:
            self._executor.submit(prepare, stage).result()
        except BrokenExecutor as error:
            raise _broken(error) from None

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task as it ends; the loss of a worker breaks the pool.

        A thread of the pool that calls this may be its only one: it runs the tasks that no other
        thread has begun.
        """
        futures: dict[Future[Done], Task] = {}
        try:
            for task in tasks:
                futures[self._submitted(job, task)] = task
            if self._inside:
                for future in [f for f in futures if f.cancel()]:
                    task = futures.pop(future)
                    yield task, run_task(job, task)
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenExecutor as error:
            raise _broken(error) from None
        finally:
            for future in futures:
                future.cancel()

    @property
    def _inside(self) -> bool:
        return threading.current_thread() in getattr(self._executor, "_threads", ())

    def _submitted(self, job: Job, task: Task) -> Future[Done]:
        try:
            return self._executor.submit(run_task, job, task)
        except RuntimeError as error:  # broken, or shut down
            raise _broken(error) from None

    def close(self) -> None:
        """Remove the folder of values, unless other programs still have values in it."""
        with self._lock, suppress(OSError):
            if self._folder is not None:
                self._folder.rmdir()
                self._folder = None


def _broken(error: BaseException) -> UnavailableError:
    return UnavailableError(
        f"the pool cannot run tasks any more ({error or type(error).__name__}): a process that is "
        f"killed breaks a pool of processes, so make a new one; dask survives the loss of workers"
    )
