"""What an engine does: run tasks on workers. Dask, MPI and executors schedule; tcgen does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from .handles import Handle
from .stage import Task
from .worker import Done, Job

T = TypeVar("T")


class Engine(Protocol):
    """An adaptor of dask, MPI or an executor.

    Attributes:
        slots: tasks that run at one time, on all workers.
        slots_per_worker: tasks that run at one time in one process, which share its memory.
        worker_memory: bytes that a worker has by the engine's own setting, or None.
        ranks: workers of a node that call the program together and have one copy of arrays and
            results; 0 where each worker has its own arrays, and the results go to the caller.
    """

    slots: int
    slots_per_worker: int
    worker_memory: int | None
    ranks: int

    def once(self, make: Callable[[], T]) -> T:
        """What ``make`` gives, called in one process of those that call the program."""

    def share(self, value: Any) -> Handle:
        """Send an array or a stage to the workers, past any scheduler."""

    def forget(self, handles: Sequence[Handle]) -> None:
        """Drop values that no later call uses."""

    def prepare(self, stage: Handle) -> None:
        """Compile a stage once on each node."""

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task with what it gave, in any order.

        Raises:
            UnavailableError: workers cannot be reached, or die again and again.
        """

    def result(self, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
        """Memory for a whole result; read-only where another process fills it."""

    def settle(self, results: Sequence[npt.NDArray[Any]]) -> None:
        """All blocks of results are in their places."""

    def close(self) -> None:
        """Remove what the engine wrote; the user's client, communicator or pool stays open."""
