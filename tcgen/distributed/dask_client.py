"""A ``dask.distributed.Client``: survives the loss of workers.

Arrays of a call and stages travel from the client to the workers, past the scheduler. What is lost
with its workers is sent again. Constants are references that tasks load where they run, or arrays
that the client holds and sends again: a worker that dies takes nothing along. The scheduler has the
names of tasks and of what they take; it gets few at a time, so that its messages stay short.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..errors import UnavailableError
from .handles import Handle, InMessage
from .stage import Task
from .stored import Stored
from .worker import Done, Job, prepare, probe, run_task

_TRIES = 4  # times that values lost with their workers are sent again
# Bytes of a message to the scheduler, of a task in it, and of each value that the task takes: dask
# 2026.8 needs 1,500 to 2,200 for a task, and 56 for a value.
_MESSAGE, _TASK, _VALUE = 40_000, 2200, 64
_NAMES = 128  # tasks of which a message says little, such as which worker has the result
_WAIT = 60  # seconds until a worker must be there: those that died are started again meanwhile

T = TypeVar("T")


class Sent:
    """A value on the workers, and on the client in case they lose it."""

    moves = True
    holders = 1

    def __init__(self, value: Any) -> None:
        self.value = value
        self.token = uuid4().hex
        self.future: Any = None

    def open(self) -> Any:
        """The value of the client."""
        return self.value


class DaskEngine:
    """Runs tasks on the workers of a dask client.

    Args:
        client: the user's.

    Raises:
        UnavailableError: there is no worker, or workers lack tcgen or have another version.
    """

    ranks = 0

    def __init__(self, client: Any) -> None:
        self.client = client
        self._turn = 0
        self._calls: dict[Hashable, Sent] = {}  # what all tasks of equal calls take
        workers = self._workers()
        self.slots = sum(int(w["nthreads"]) for w in workers.values())
        self.slots_per_worker = max(int(w["nthreads"]) for w in workers.values())
        limits = [int(w["memory_limit"]) for w in workers.values() if w.get("memory_limit")]
        self.worker_memory = min(limits) if limits else None
        self._check_versions(list(workers))

    def _workers(self) -> dict[str, Any]:
        info = self.client.scheduler_info(n_workers=-1)
        workers: dict[str, Any] = info["workers"]
        if workers:
            return workers
        try:
            self.client.wait_for_workers(1, timeout=_WAIT)
        except TimeoutError:
            raise UnavailableError(
                f"the dask cluster has had no workers for {_WAIT} s: start some, and wait for them "
                f"with client.wait_for_workers(1)"
            ) from None
        return self._workers()

    def _check_versions(self, workers: Sequence[str]) -> None:
        submit = self.client.submit
        asked = {w: submit(probe, workers=[w], pure=False) for w in workers}
        for worker, future in asked.items():
            try:
                version, host, _ = future.result()
            except ImportError as error:
                raise UnavailableError(
                    f"the worker {worker} cannot import tcgen ({error}): install tcgen-chem "
                    f"{__version__} on it"
                ) from None
            if version != __version__:
                raise UnavailableError(
                    f"the worker {worker} on {host} has tcgen {version}, "
                    f"and this process has {__version__}: "
                    f"install the same version on all workers"
                )

    def once(self, make: Callable[[], T]) -> T:
        """What ``make`` gives: one process calls the program."""
        return make()

    def share(self, value: Any) -> Handle:
        """Send a value straight from the client to a worker."""
        sent = Sent(value)
        self._send(sent)
        return sent

    def _send(self, sent: Sent) -> None:
        """Send to one worker, from which the others fetch it when a task needs it.

        To send to all at once would wait for a worker that dies meanwhile.
        """
        message = InMessage(sent.value, sent.token)
        for attempt in range(_TRIES):
            workers = sorted(self._workers())
            self._turn += 1
            chosen = workers[self._turn % len(workers)]
            try:
                [sent.future] = self.client.scatter(
                    [message], workers=[chosen], direct=True, hash=False
                )
            except (OSError, TimeoutError):  # a connection to a worker that is gone
                time.sleep(0.2 * 2**attempt)
            else:
                return
        raise _gone(1)

    def forget(self, handles: Sequence[Handle]) -> None:
        """Let the workers drop values."""
        for handle in handles:
            if isinstance(handle, Sent):
                handle.future = None

    def prepare(self, stage: Handle) -> None:
        """Compile on one worker of each host; the others find the result in its cache."""
        hosts: dict[str, str] = {}
        for worker, info in self._workers().items():
            hosts.setdefault(str(info.get("host")), worker)
        submit = self.client.submit
        assert isinstance(stage, Sent)
        for future in [
            submit(prepare, stage.future, workers=[w], allow_other_workers=True, pure=False)
            for w in hosts.values()
        ]:
            future.result()

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task as it ends; tasks of lost workers run on others.

        Raises:
            UnavailableError: workers die again and again.
        """
        left = {task.number: task for task in tasks}
        for _ in range(_TRIES):
            lost = False
            for task, done in self._attempt(job, list(left.values())):
                if done is None:
                    lost = True
                else:
                    del left[task.number]
                    yield task, done
            if not left:
                return
            if lost:
                taken = (*self._calls.values(), *job.held.values(), *job.given.values())
                for handle in (job.stage, *taken):
                    if isinstance(handle, Sent):
                        self._send(handle)
        raise _gone(len(left))

    def _attempt(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done | None]]:
        """Each task with what it gave; None where values were lost with their workers."""
        from distributed import as_completed  # noqa: PLC0415  (needs the extra)

        futures = dict(zip(self.submit(job, tasks), tasks, strict=True))
        try:
            finished: Any = as_completed
            for batch in finished(list(futures), loop=self.client.loop).batches():
                waiting = list(batch)
                while waiting:
                    few, waiting = waiting[:_NAMES], waiting[_NAMES:]
                    for future, done in zip(few, self._fetched(few), strict=True):
                        yield futures.pop(future), done  # the workers drop each result soon
        finally:
            every = list(futures)
            for first in range(0, len(every), _NAMES):
                self.client.cancel(every[first : first + _NAMES])

    def _fetched(self, futures: Sequence[Any]) -> list[Done | None]:
        """What tasks gave, straight from the workers; None where it is lost with one."""
        from distributed import KilledWorker  # noqa: PLC0415  (needs the extra)
        from distributed.client import FutureCancelledError  # noqa: PLC0415

        try:
            return list(self.client.gather(futures, direct=True))
        except (FutureCancelledError, KilledWorker):
            if len(futures) == 1:
                return [None]
        return [done for future in futures for done in self._fetched([future])]

    def submit(self, job: Job, tasks: Sequence[Task]) -> list[Any]:
        """A future for what each task gives."""
        workers = sorted(self._workers())
        held = {n: h for n, h in job.held.items() if not isinstance(h, Stored)}
        common = self._common(job).future
        sent = (common, _sent(job.stage), _all_sent(held), _all_sent(job.given))
        # The same range goes to the same worker in the next call: it has the constants.
        submitted = (
            self.client.submit(
                _run,
                *sent,
                task,
                workers=[workers[n * len(workers) // len(tasks)]],
                allow_other_workers=True,
                retries=2,
                pure=False,
            )
            for n, task in enumerate(tasks)
        )
        return self.few_at_a_time(submitted, len(held) + len(job.given))

    def _common(self, job: Job) -> Sent:
        """The run, its references and its memory, which are sent once for all calls."""
        references = {n: h for n, h in job.held.items() if isinstance(h, Stored)}
        key = (job.run, tuple(references.items()), job.memory)
        if key not in self._calls:
            self._calls[key] = sent = Sent((job.run, references, job.memory))
            self._send(sent)
        return self._calls[key]

    def few_at_a_time(self, submitted: Iterable[Any], values: int = 1) -> list[Any]:
        """Futures of tasks that are submitted as they are drawn, each with so many values.

        The client gathers what goes to the scheduler, and sends it together every few milliseconds.
        """
        futures = []
        batch = max(1, _MESSAGE // (_TASK + _VALUE * values))
        for future in submitted:
            futures.append(future)
            if len(futures) % batch == 0:
                self.client.sync(self._flushed)
        return futures

    async def _flushed(self) -> None:
        """Wait in the client's loop until it has sent all that it has for the scheduler."""
        waiting = self.client.scheduler_comm
        while waiting is not None and waiting.buffer and not waiting.closed():
            await asyncio.sleep(0.001)

    def result(self, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
        """An array of this process."""
        return np.empty(shape, dtype)

    def settle(self, results: Sequence[npt.NDArray[Any]]) -> None:
        """This process has filled them."""

    def close(self) -> None:
        """Drop what calls have in common; the client is the user's."""
        self._calls.clear()


def _gone(tasks: int) -> UnavailableError:
    return UnavailableError(
        f"workers died {_TRIES} times while {tasks} tasks were left: read the workers' logs; often "
        f"workers are killed because they exceed their memory, so give distribute less memory than "
        f"a worker has"
    )


def _sent(handle: Handle) -> Any:
    """What a task takes: a future, which dask replaces by the value."""
    return getattr(handle, "future", handle)


def _all_sent(handles: Mapping[str, Handle]) -> dict[str, Any]:
    return {name: _sent(handle) for name, handle in handles.items()}


def _run(common: InMessage, stage: Any, held: Any, given: Any, task: Task) -> Done:
    run, references, memory = common.open()
    return run_task(Job(run, stage, {**references, **held}, given, memory), task)
