"""``tcgen.distribute(program, ...)``: a program that runs on many workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from ..artifact.manifest import Manifest
from ..errors import ArgumentError, DtypeError
from ..records.tensors import element_type
from ..runtime.arguments import check_dtype, check_names, check_rank, find_extents, read_inputs
from ..runtime.host_device import HostDevice
from ..runtime.program import Program
from .dask_client import DaskEngine, check_chunks, is_dask_array, results_on_workers
from .executor import Engine
from .handles import Handle
from .plan import Cluster, Plan, make_plan
from .stage import Reading, Stage, Task, begin, corners, put, source_names
from .stored import Stored, by_reference
from .worker import Done, Job

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """Seconds of one worker during a call; ``idle`` is the rest of the call on its threads."""

    worker: str
    tasks: int
    busy: float
    idle: float


@dataclass(frozen=True, slots=True)
class RunReport:
    """One call of a distributed program.

    Attributes:
        stages: a line for each stage: "parts of ..." or "slices of v, ...", and its results.
        tasks: number of tasks.
        repeated: flops of all tasks over those of the program in one piece; 1 repeats nothing.
        bytes_moved: bytes that workers read from files and received, and results that they sent.
            Bytes count when a worker has them for the first time.
        bytes_predicted: the same bytes by the rectangles of the tasks.
        bytes_reloaded: bytes that workers read again, since they did not fit beside other tasks.
        peak_bytes: the most bytes that a worker allocated and stored.
        need_bytes: predicted bytes of a worker.
        workers: busy and idle seconds by worker.
        seconds: time of the call.
        predicted_seconds: predicted time, with as many tasks at a time as threads.
    """

    stages: tuple[str, ...]
    tasks: int
    repeated: float
    bytes_moved: int
    bytes_predicted: int
    bytes_reloaded: int
    peak_bytes: int
    need_bytes: int
    workers: tuple[WorkerTime, ...]
    seconds: float
    predicted_seconds: float

    def __str__(self) -> str:
        lines = [
            *self.stages,
            f"{self.tasks} tasks, flops {self.repeated:.3f} times those of the whole",
            f"moved {self.bytes_moved:,} bytes, predicted {self.bytes_predicted:,}; "
            f"read {self.bytes_reloaded:,} again",
            f"a worker held {self.peak_bytes:,} bytes, predicted at most {self.need_bytes:,}",
            f"{self.seconds:.3f} s, predicted {self.predicted_seconds:.3f} s",
        ]
        lines += [
            f"{w.worker}: {w.tasks} tasks, busy {w.busy:.3f} s, idle {w.idle:.3f} s"
            for w in self.workers
        ]
        return "\n".join(lines)


class DistributedProgram:
    """A program that runs on the workers of an engine: what ``program.distribute`` returns.

    Use it in a ``with`` statement, or call ``close()``: it then drops the values on workers.

    Attributes:
        program: the user's program.
    """

    def __init__(
        self,
        program: Program,
        engine: Engine,
        memory: int,
        *,
        task_seconds: float = 0.2,
        along: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        held: Mapping[str, Any] | None = None,
    ) -> None:
        self.program = program
        self._engine = engine
        self._memory = memory
        self._task_seconds = task_seconds
        self._along = along
        self._progress = progress or (lambda _done, _tasks: None)
        self._held_values = dict(held or {})
        self._held: dict[str, Stored | Handle] = {}
        self._plans: dict[tuple[tuple[str, int], ...], _Ready] = {}
        self._report: RunReport | None = None
        self._closed = 0  # times
        self._name = engine.once(lambda: uuid4().hex)
        self._seen: dict[str, set[Hashable]] = {}  # pieces on each worker

    def __enter__(self) -> DistributedProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        held = ", ".join(self._held_values)
        return f"<{self.program.manifest.name} on {self._engine.slots} workers, bound({held})>"

    @property
    def report(self) -> RunReport:
        """The report of the latest call.

        Raises:
            ArgumentError: the program was not called yet.
        """
        if self._report is None:
            raise ArgumentError(f"{self.program.manifest.name}: call it first, then ask for report")
        return self._report

    def bind(self, /, *unnamed: object, **constants: object) -> DistributedProgram:
        """Fix some of the inputs: workers load each once, and store it between calls.

        Args:
            unnamed: refused, on all ranks of a communicator alike.
            constants: arrays of NumPy; references (``tcgen.stored``), data sets of h5py and arrays
                of zarr, which workers read from their files themselves.

        Raises:
            ArgumentError, DtypeError, ShapeError: an array does not fit.
        """

        def check() -> tuple[str, dict[str, Any]]:
            self._refuse(unnamed)
            values = {name: by_reference(value) for name, value in constants.items()}
            found = _checked(self.program, {**self._held_values, **values}, complete=False)
            return f"bind {self._described(found)}", found

        checked = self._engine.agreed(check)
        return DistributedProgram(
            self.program,
            self._engine,
            self._memory,
            task_seconds=self._task_seconds,
            along=self._along,
            progress=self._progress,
            held=checked,
        )

    def plan(self, extents: Mapping[str, int]) -> Plan:
        """Stages and tasks of a call at these extents.

        Args:
            extents: extents by base space.

        Raises:
            MemoryLimitError: a worker's memory is too small; the message says how much works.
            PlanError: the program cannot be cut.
        """
        held = {
            name: 0 if isinstance(value, Stored) else int(value.nbytes)
            for name, value in self._held_values.items()
        }
        cluster = Cluster(
            self._engine.slots,
            self._engine.slots_per_worker,
            self._memory,
            self._task_seconds,
            self._engine.ranks,
            self._engine.on_gpus,
        )
        return make_plan(self.program, extents, held, cluster, self._along)

    def __call__(self, /, *unnamed: object, **arrays: object) -> dict[str, Any]:
        """Run the program on the workers.

        Args:
            unnamed: refused, on all ranks of a communicator alike.
            arrays: the inputs that are not bound, by name: arrays of NumPy, or references. On a
                dask Client also arrays of dask: the results then are arrays of dask.

        Returns:
            Each output by name, as the program itself gives it. Numbers are added in the order of
            the tasks, so that equal tasks give equal bits on any number of workers.

        Raises:
            ArgumentError, DtypeError, ShapeError, ExtentError: an array does not fit.
            MemoryLimitError: a worker's memory is too small, before anything is sent.
            UnavailableError: workers cannot be reached, or die again and again.
        """
        start = time.perf_counter()
        every, extents = self._engine.agreed(lambda: self._arguments(unnamed, arrays))
        lazy = any(is_dask_array(value) for value in every.values())
        ready = self._ready(extents)
        for name, value in self._held_values.items():
            if name not in self._held:
                self._held[name] = value if isinstance(value, Stored) else self._share(value)
        held = dict(self._held)
        held |= {n: v for n in arrays if isinstance(v := every[n], Stored)}
        call = _Call(
            self._engine, ready, held, self._memory, self._seen, self._name, self._progress
        )
        # Scalars that are left out have their defaults.
        given = {n: v for n, v in every.items() if n not in held}
        results = call.run(given, lazy=lazy)
        self._report = call.report(time.perf_counter() - start)
        return {t.name: results[t.name] for t in self.program.manifest.outputs}

    def _refuse(self, unnamed: Sequence[object]) -> None:
        """Refuse arrays without names here, so that all ranks raise if one rank passes them."""
        if unnamed:
            name = next(t.name for t in self.program.manifest.tensors)
            raise ArgumentError(f"arrays are passed by name: {name}=array")

    def _arguments(
        self, unnamed: Sequence[object], arrays: Mapping[str, object]
    ) -> tuple[str, tuple[dict[str, Any], dict[str, int]]]:
        """What a call is to do, its arrays with those that are bound, and the extents."""
        self._refuse(unnamed)
        twice = [name for name in arrays if name in self._held_values]
        if twice:
            raise ArgumentError(f"{', '.join(twice)} is bound already: leave it out of the call")
        values = {name: by_reference(value) for name, value in arrays.items()}
        every = _checked(self.program, {**self._held_values, **values}, complete=True)
        extents = find_extents(self.program.manifest, {n: tuple(a.shape) for n, a in every.items()})
        lazy = any(is_dask_array(value) for value in values.values())
        if lazy and not isinstance(self._engine, DaskEngine):
            raise ArgumentError(
                "arrays of dask run on the workers of a dask Client: distribute the program to "
                "one, or pass array.compute()"
            )
        return f"call {self._described(every)}", (every, extents)

    def _described(self, arrays: Mapping[str, Any]) -> str:
        """The program and the arrays that it is given, for a message."""
        each = ", ".join(
            f"{'stored ' if isinstance(a, Stored) else ''}{n} of shape {tuple(a.shape)}"
            for n, a in arrays.items()
        )
        closed = f", closed {self._closed} times" if self._closed else ""
        name = self.program.manifest.name
        return f"{name} (run {self._name[:8]}{closed}) with {each or 'no arrays'}"

    def close(self) -> None:
        """Drop the values on workers. The client, communicator or executor stays open.

        All ranks of a communicator close a program that they call again.
        """
        handles = [h for ready in self._plans.values() for h in ready.stages]
        handles += [h for h in self._held.values() if not isinstance(h, Stored)]
        self._engine.forget(handles)
        self._plans.clear()
        self._held.clear()
        self._closed += 1
        self._engine.close()

    def _share(self, value: Array) -> Handle:
        return self._engine.share(np.asarray(value, order="C"))

    def _ready(self, extents: Mapping[str, int]) -> _Ready:
        """The plan at extents, its stages sent and compiled."""
        key = tuple(sorted(extents.items()))
        if key not in self._plans:
            plan = self._engine.once(lambda: self.plan(extents))
            handles = tuple(self._engine.share(stage) for stage in plan.stages)
            for handle in handles:
                self._engine.prepare(handle)
            self._plans[key] = _Ready(plan, handles, {})
        return self._plans[key]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A plan whose stages are on the workers.

    ``rectangles`` has, for tasks that ran, the arrays that each reads and the bytes of its results.
    """

    plan: Plan
    stages: tuple[Handle, ...]
    rectangles: dict[Task, tuple[tuple[Reading, ...], int]]


@dataclass(slots=True)
class _Call:
    """One call: runs the stages in order and assembles the results."""

    engine: Engine
    ready: _Ready
    held: Mapping[str, Stored | Handle]
    memory: int
    seen: dict[str, set[Hashable]]
    name: str
    progress: Callable[[int, int], None]
    done: list[tuple[Task, Done]] = field(default_factory=list)
    given: dict[str, Handle] = field(default_factory=dict)

    def run(self, arrays: Mapping[str, Any], *, lazy: bool) -> dict[str, Any]:
        """The whole results by name; if ``lazy``, arrays of dask, which stay on the workers."""
        plan, handles = self.ready.plan, self.given
        results: dict[str, Any] = {}
        try:
            for stage, handle in zip(plan.stages, self.ready.stages, strict=True):
                for name in source_names((stage,)):
                    if name not in handles and name not in self.held:
                        value = {**arrays, **results}[name]
                        array = value if is_dask_array(value) else np.asarray(value, order="C")
                        handles[name] = self.engine.share(array)
                needed = {n: handles[n] for n in source_names((stage,)) if n in handles}
                tasks = [t for t in plan.tasks if t.stage == stage.number]
                job = Job(self.name, handle, self.held, needed, self.memory)
                if lazy:
                    assert isinstance(self.engine, DaskEngine)
                    program = plan.programs[stage.number]
                    made, done = results_on_workers(self.engine, stage, program, job, tasks)
                    self.done += done
                else:
                    made = self._assembled(stage, tasks, self.engine.run(job, tasks))
                results |= made
        finally:
            # Results on the workers are computed from the arrays.
            if not lazy:
                self.engine.forget(list(handles.values()))
        return results

    def _assembled(
        self, stage: Stage, tasks: list[Task], done: Iterator[tuple[Task, Done]]
    ) -> dict[str, Array]:
        """Blocks at their places, combined in the order of the tasks, in whatever order they end.

        Another process fills a result that is read-only.
        """
        outputs = {o.name: o for o in stage.outputs}
        results = {n: self.engine.result(stage.output_shape(n), stage.dtype(n)) for n in outputs}
        # Arrays of a GPU have no such flag.
        own = {n: outputs[n] for n, r in results.items() if getattr(r.flags, "writeable", True)}
        for name, output in own.items():
            self.engine.apart(partial(begin, output, results[name]))
        pending: dict[int, Done] = {}
        order = deque(t.number for t in tasks)

        def place(count: int, task: Task, part: Done) -> None:
            self.progress(count, len(tasks))
            pending[task.number] = part
            while order and order[0] in pending:
                blocks = pending.pop(order.popleft()).blocks
                for name, output in own.items():
                    for rectangle, block in blocks[name]:
                        put(output, results[name], rectangle, block)

        for count, (task, part) in enumerate(done, 1):
            self.done.append((task, part))
            self.engine.apart(partial(place, count, task, part))
        self.engine.settle(list(results.values()))
        return {name: self.engine.taken(result) for name, result in results.items()}

    def report(self, seconds: float) -> RunReport:
        """The report of the call."""
        done = [d for _, d in self.done]
        return RunReport(
            self.ready.plan.text,
            len(done),
            self.ready.plan.repeated,
            sum(d.loaded_bytes + d.result_bytes for d in done),
            self._predicted_bytes(),
            sum(d.reloaded_bytes for d in done),
            max((d.peak_bytes for d in done), default=0),
            self.ready.plan.need,
            _worker_times(done, seconds),
            seconds,
            _predicted_seconds([t for t, _ in self.done], self.engine.slots),
        )

    def _predicted_bytes(self) -> int:
        """Bytes by the rectangles of the tasks; a piece moves to a worker once.

        A worker may also have a piece that was read by a task whose result was lost on its way.
        """
        plan, total = self.ready.plan, 0
        for task, done in self.done:
            stage, program = plan.stages[task.stage], plan.programs[task.stage]
            seen = self.seen.setdefault(done.worker, set())
            if task not in self.ready.rectangles:
                results = stage.result_bytes(program, task.first, task.last)
                readings = stage.readings(program, task.first, task.last)
                self.ready.rectangles[task] = readings, results
            readings, results = self.ready.rectangles[task]
            total += results + sum(self._moved(stage, r, seen, done.first) for r in readings)
        return total

    def _moved(
        self, stage: Stage, reading: Reading, seen: set[Hashable], first: frozenset[Hashable]
    ) -> int:
        source = self.held.get(reading.source) or self.given[reading.source]
        if isinstance(source, Stored) or self.engine.on_gpus:
            pieces, total = reading.pieces, 0
            if self.engine.on_gpus and not reading.shrunk:
                whole = tuple(slice(0, n) for n in reading.shape)
                pieces = ((corners(whole), reading.whole_bytes),)
            for piece, count in pieces:
                key = (source, piece)
                new = key not in seen and (reading.source, piece) in first
                if new or stage.entry(reading.name).role == "generated":
                    total += count
                    seen.add(key)
            return total
        new = source.token not in seen and source.token in first
        if not new:
            return 0
        seen.add(source.token)
        return reading.whole_bytes


def _worker_times(done: Sequence[Done], seconds: float) -> tuple[WorkerTime, ...]:
    """Busy and idle seconds by worker in a call that took ``seconds``."""
    found = []
    for worker in sorted({d.worker for d in done}):
        own = [d for d in done if d.worker == worker]
        busy, threads = sum(d.seconds for d in own), len({d.thread for d in own})
        found.append(WorkerTime(worker, len(own), busy, max(0.0, threads * seconds - busy)))
    return tuple(found)


def _predicted_seconds(tasks: Sequence[Task], slots: int) -> float:
    """Seconds of tasks in order on ``slots`` threads, each task to the first one that is free."""
    total = 0.0
    for stage in sorted({t.stage for t in tasks}):
        free = [0.0] * max(1, slots)
        for task in (t for t in tasks if t.stage == stage):
            soonest = min(range(len(free)), key=free.__getitem__)
            free[soonest] += task.seconds
        total += max(free)
    return total


def _checked(program: Program, values: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
    """References and arrays that fit the inputs of the program."""
    manifest: Manifest = program.manifest
    inputs = tuple(t for t in manifest.tensors if t.is_input)
    expected = inputs if complete else tuple(t for t in inputs if t.name in values)
    unknown = [n for n in values if all(t.name != n for t in inputs)]
    if complete or unknown:
        check_names(manifest.name, inputs, values)
    found: dict[str, Any] = {}
    for tensor in expected:
        value: Any = values.get(tensor.name)
        dtype = element_type(tensor, manifest.dtype)
        if is_dask_array(value):
            check_chunks(tensor.name, value)
        if isinstance(value, Stored) or is_dask_array(value):
            check_dtype(tensor, dtype, np.dtype(value.dtype))
            check_rank(tensor, value.shape)
            found[tensor.name] = value
            continue
        if callable(value) and not isinstance(value, np.ndarray):
            raise DtypeError(
                f"{tensor.name} is a callable, which workers on other machines may lack: pass an "
                f"array, or a reference to one in a file (tcgen.stored)"
            )
        found |= read_inputs(HostDevice(), (tensor,), values, manifest.dtype)
    return found
