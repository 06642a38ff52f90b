"""A ``dask.distributed.Client``: survives the loss of workers.

Arrays of a call and stages travel from the client to the workers, past the scheduler. Values that
are lost with their workers are sent again. Constants are references that tasks load where they run,
or arrays that the client holds and sends again. The scheduler receives the names of tasks and of
their arguments, few at a time, so that its messages stay short.

Arrays of dask are computed on the workers, and their results stay there: a placed result is an
array of dask with a chunk for each range, and a reduced one is a single chunk, which a worker
reduces in the order of the tasks. Only times and counts return to the client.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import ArgumentError, UnavailableError
from ..runtime.program import Program
from .executor import Engine
from .handles import Handle, InMessage
from .slicing import SlicedOutput
from .stage import Stage, Task, begin, put
from .stored import Stored
from .worker import Done, Job, prepare, probe, run_task

_TRIES = 4  # times that values lost with their workers are sent again
# Bytes of a message to the scheduler, of a task in it, and of each argument of the task: dask
# 2026.8 needs 1,500 to 2,200 for a task, and 56 for an argument.
_MESSAGE, _TASK, _VALUE = 40_000, 2200, 64
_NAMES = 128  # tasks in a message that only names them
_WAIT = 60  # seconds in which workers that died are started again, and one begins a task
_ANSWER = 5  # seconds in which a worker with tasks of others begins one
_START = 20  # seconds in which a worker without tasks imports tcgen
_LOOK = 5  # seconds of waiting for tasks after which the workers are looked at again


class Sent(Handle):
    """A value on the workers, and on the client in case they lose it."""

    future: Any = None


class DaskEngine(Engine):
    """Runs tasks on the workers of the user's dask client, which need this version of tcgen."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._turn = 0
        # Arguments that all tasks of equal calls share.
        self._calls: dict[Hashable, Sent] = {}
        self._silent: frozenset[str] = frozenset()
        self._ask()
        workers = self._workers()
        self.slots = sum(int(w["nthreads"]) for w in workers.values())
        self.slots_per_worker = max(int(w["nthreads"]) for w in workers.values())
        limits = [int(w["memory_limit"]) for w in workers.values() if w.get("memory_limit")]
        self.worker_memory = min(limits) if limits else None

    def _known(self) -> dict[str, Any]:
        try:
            workers: dict[str, Any] | None = self.client.scheduler_info(n_workers=-1).get("workers")
        except RuntimeError:  # the event loop of this process ends with its client
            workers = None
        if workers is None:
            raise UnavailableError(
                "the dask client is closed, or its scheduler is gone: open a new Client, and "
                "distribute the program to it"
            )
        return workers

    def _workers(self, *, or_at_work: bool = False) -> dict[str, Any]:
        """The workers that take tasks; with ``or_at_work`` also paused ones that finish theirs."""
        end = time.monotonic() + _WAIT
        while True:
            known = self._known()
            found = {
                address: worker
                for address, worker in known.items()
                if (worker["status"] == "running" and address not in self._silent)
                or (or_at_work and worker["metrics"]["task_counts"].get("executing"))
            }
            if found:
                return found
            if time.monotonic() > end:
                raise UnavailableError(
                    f"the dask cluster has had no workers that take tasks for {_WAIT} s (it has "
                    f"{len(known)} that are paused or do not answer): start some, and wait for "
                    f"them with client.wait_for_workers(1)"
                )
            time.sleep(0.2)

    def _ask(self) -> None:
        """Check the versions of workers, and leave out those that do not begin a task."""
        workers = self._workers()
        submit = self.client.submit
        probes = {w: submit(probe, workers=[w], pure=False) for w in workers}
        self._wait_for_answers(probes)
        answered = {w: future for w, future in probes.items() if future.done()}
        self._silent = frozenset(probes) - frozenset(answered)
        self.client.cancel([probes[w] for w in sorted(self._silent)])
        if not answered:
            raise UnavailableError(
                f"no dask worker began a task within {_WAIT} s: {', '.join(probes)} are busy or do "
                f"not answer: wait for the tasks that they run, or start more workers"
            )
        paused = [w for w, info in self._known().items() if info["status"] == "paused"]
        if paused:
            warnings.warn(
                f"the dask workers {', '.join(paused)} are paused, since their memory is nearly "
                f"full, and run no task: restart them, or delete what they hold",
                RuntimeWarning,
                stacklevel=5,
            )
        for worker, future in answered.items():
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

    def _wait_for_answers(self, probes: Mapping[str, Any]) -> None:
        """Wait until all workers have answered that can be expected to, and one at least."""
        start = time.monotonic()
        while left := [w for w, future in probes.items() if not future.done()]:
            waited = time.monotonic() - start
            if waited > _ANSWER and len(left) < len(probes):
                tasks = self.client.processing()
                if waited > _START or all(len(tasks.get(w, ())) > 1 for w in left):
                    return
            if waited > _WAIT:
                return
            time.sleep(0.01)

    def share(self, value: Any) -> Handle:
        """Send a value straight from the client to a worker; an array of dask is computed there."""
        if is_dask_array(value):
            recipe = Recipe(value)
            self._compute(recipe)
            return recipe
        sent = Sent(value)
        self._send(sent)
        return sent

    def _compute(self, recipe: Recipe) -> None:
        """Compute an array of dask on a worker, and wait for it.

        Otherwise all tasks begin when the array arrives, and the scheduler sends them in one
        message.
        """
        self._workers()
        array = self.client.compute(recipe.value)
        recipe.future = self.client.submit(InMessage, array, recipe.token, pure=False)
        self._wait([recipe.future])
        if recipe.future.cancelled():
            raise UnavailableError(
                "a dask array of the call was lost with the worker that had it, and cannot be "
                "computed again: make it again from arrays that are still there"
            )

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait for tasks to end as long as there are workers."""
        import distributed  # noqa: PLC0415  (needs the extra)

        wait: Any = distributed.wait
        with suppress(distributed.CancelledError), self.client.as_current():
            while not all(future.done() for future in futures):
                try:
                    wait(list(futures), timeout=_LOOK)
                except TimeoutError:
                    self._workers(or_at_work=True)

    def send_again(self, job: Job) -> None:
        """Send the values of a job again, which workers lost."""
        for handle in (job.stage, *self._calls.values(), *job.held.values(), *job.given.values()):
            if isinstance(handle, Sent):
                self._send(handle)
            elif isinstance(handle, Recipe):
                self._compute(handle)

    def _send(self, sent: Sent) -> None:
        """Send to one worker, from which the others fetch it when a task needs it.

        Sending to all at once would block on a worker that dies meanwhile.
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
            except (OSError, TimeoutError):  # a connection to a dead worker
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
        for _ in range(_TRIES):
            futures = [
                submit(_prepared, stage.future, workers=[w], allow_other_workers=True, pure=False)
                for w in hosts.values()
            ]
            if all(self.fetched(futures)):
                return
            self._send(stage)
        raise _gone(len(hosts))

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task as it ends; tasks of lost workers run on others."""
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
                self.send_again(job)
        raise _gone(len(left))

    def _attempt(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done | None]]:
        """Each task with its results; None if values were lost with their workers."""
        futures = dict(zip(self.submit(job, tasks), tasks, strict=True))
        try:
            for left in self._batches(list(futures)):
                while left:
                    few, left = left[:_NAMES], left[_NAMES:]
                    for future, done in zip(few, self.fetched(few), strict=True):
                        # Without its future, the worker drops the result.
                        yield futures.pop(future), done
        finally:
            every = list(futures)
            for first in range(0, len(every), _NAMES):
                self.client.cancel(every[first : first + _NAMES])

    def _batches(self, futures: Sequence[Any]) -> Iterator[list[Any]]:
        """The futures of tasks as they end, as long as there are workers."""
        from distributed import as_completed  # noqa: PLC0415  (needs the extra)

        finished: Any = as_completed
        left = dict.fromkeys(futures)
        while left:
            try:
                for batch in finished(list(left), loop=self.client.loop, timeout=_LOOK).batches():
                    for future in batch:
                        del left[future]
                    yield list(batch)
            except TimeoutError:
                self._workers(or_at_work=True)

    def fetched(self, futures: Sequence[Any]) -> list[Any]:
        """Results of tasks, straight from the workers; None for those that died with one."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415  (needs the extra)

        self._wait(futures)
        try:
            return list(self.client.gather(futures, direct=True))
        except (CancelledError, KilledWorker):
            if len(futures) == 1:
                return [None]
        return [done for future in futures for done in self.fetched([future])]

    def submit(self, job: Job, tasks: Sequence[Task]) -> list[Any]:
        """A future for the results of each task."""
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
        """Futures of tasks, with ``values`` arguments each, that are submitted as they are drawn.

        The client collects messages to the scheduler, and sends them together every few
        milliseconds.
        """
        futures = []
        batch = max(1, _MESSAGE // (_TASK + _VALUE * values))
        for future in submitted:
            futures.append(future)
            if len(futures) % batch == 0:
                self.client.sync(self._flushed)
        return futures

    async def _flushed(self) -> None:
        """Let the client's loop run until its messages to the scheduler are sent."""
        comm = self.client.scheduler_comm
        while comm is not None and comm.buffer and not comm.closed():
            await asyncio.sleep(0.001)

    def close(self) -> None:
        """Drop the arguments that calls share; the client is the user's."""
        self._calls.clear()


def _gone(tasks: int) -> UnavailableError:
    return UnavailableError(
        f"workers died {_TRIES} times while {tasks} tasks were left: read the workers' logs; often "
        f"workers are killed because they exceed their memory, so give distribute less memory than "
        f"a worker has"
    )


def _sent(handle: Handle) -> Any:
    """The argument of a task: a future, which dask replaces by the value."""
    return getattr(handle, "future", handle)


def _all_sent(handles: Mapping[str, Handle]) -> dict[str, Any]:
    return {name: _sent(handle) for name, handle in handles.items()}


def _run(common: InMessage, stage: Any, held: Any, given: Any, task: Task) -> Done:
    run, references, memory = common.open()
    return run_task(Job(run, stage, {**references, **held}, given, memory), task)


def _prepared(stage: InMessage) -> bool:
    prepare(stage)
    return True


# ---------------------------------------------------------------- arrays of dask


class Recipe(Handle):
    """An array of dask, which a worker has computed or computes again."""

    future: Any = None


def is_dask_array(value: object) -> bool:
    """True for an array of dask; does not import dask."""
    return type(value).__module__.startswith("dask.") and hasattr(value, "chunks")


def check_chunks(name: str, array: Any) -> None:
    """Refuse an array whose shape is not known before it is computed."""
    if any(isnan(n) for n in array.shape):
        raise ArgumentError(
            f"{name} is a dask array with chunks of unknown shape {array.shape}: call "
            f"{name}.compute_chunk_sizes() first"
        )


def results_on_workers(
    engine: DaskEngine, stage: Stage, program: Program, job: Job, tasks: Sequence[Task]
) -> tuple[dict[str, Any], list[tuple[Task, Done]]]:
    """The results of a stage as dask arrays, and the report of each task."""
    for _ in range(_TRIES):
        futures = engine.submit(job, tasks)
        short = engine.few_at_a_time(engine.client.submit(_head, f) for f in futures)
        heads = engine.fetched(short)
        if None not in heads:
            break
        engine.send_again(job)
    else:
        raise _gone(len(tasks))
    results = {}
    for output in stage.outputs:
        blocks = [stage.writings(program, t.first, t.last) for t in tasks]
        rectangles = [next(w for w in b if w.name == output.name).rectangles for b in blocks]
        results[output.name] = _result(engine, stage, output.name, futures, rectangles)
    return results, list(zip(tasks, heads, strict=True))


def _result(
    engine: DaskEngine, stage: Stage, name: str, futures: Sequence[Any], rectangles: Sequence[Any]
) -> Any:
    from dask import array  # noqa: PLC0415  (needs the extra)

    dask: Any = array
    output = next(o for o in stage.outputs if o.name == name)
    dtype, shape = np.dtype(stage.dtype(name)), stage.output_shape(name)
    submit = engine.client.submit
    if output.how != "place" or output.axis is None:
        whole = submit(_reduced, output, shape, dtype.str, list(futures), pure=False)
        return dask.from_delayed(whole, shape, dtype)
    shapes = []
    axis = 0
    for (rectangle,) in rectangles:
        lengths = tuple(s.stop - s.start for s in rectangle)
        axis = next((k for k, n in enumerate(lengths) if n != shape[k]), axis)
        shapes.append(lengths)
    blocks = engine.few_at_a_time(submit(_block, name, future, pure=False) for future in futures)
    chunks = [dask.from_delayed(b, n, dtype) for b, n in zip(blocks, shapes, strict=True)]
    return dask.concatenate(chunks, axis=axis)


def _head(done: Done) -> Done:
    return replace(done, blocks={})


def _block(name: str, done: Done) -> Any:
    return done.blocks[name][0][1]


def _reduced(output: SlicedOutput, shape: tuple[int, ...], dtype: str, done: Sequence[Done]) -> Any:
    result = np.empty(shape, dtype)
    begin(output, result)
    for part in done:
        for rectangle, block in part.blocks[output.name]:
            put(output, result, rectangle, block)
    return result
