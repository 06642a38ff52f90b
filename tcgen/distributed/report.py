"""``run.report``: what a distributed call did, beside what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .stage import Task
from .worker import Done


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
        stages: of the call: "parts of ..." or "slices of v, ..." and what is exchanged.
        tasks: number of tasks.
        repeated: flops of all tasks over those of the program in one piece; 1 repeats nothing.
        bytes_moved: bytes that workers read from files and received, and results that they sent.
            Each counts where a worker has it for the first time.
        bytes_predicted: the same by the rectangles of the tasks.
        bytes_reloaded: bytes that workers read again, since their memory was too small to keep
            them beside other tasks.
        peak_bytes: the most that a worker allocated and kept.
        need_bytes: what a worker needs by prediction.
        workers: busy and idle seconds by worker.
        seconds: of the call.
        predicted_seconds: by the time model, with as many tasks at a time as there were threads.
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


def worker_times(done: Sequence[Done], seconds: float) -> tuple[WorkerTime, ...]:
    """Busy and idle seconds by worker in a call that took ``seconds``."""
    found = []
    for worker in sorted({d.worker for d in done}):
        own = [d for d in done if d.worker == worker]
        busy, threads = sum(d.seconds for d in own), len({d.thread for d in own})
        found.append(WorkerTime(worker, len(own), busy, max(0.0, threads * seconds - busy)))
    return tuple(found)


def predicted_seconds(tasks: Sequence[Task], slots: int) -> float:
    """Seconds of tasks in order on ``slots`` threads, each task to the first one that is free."""
    total = 0.0
    for stage in sorted({t.stage for t in tasks}):
        free = [0.0] * max(1, slots)
        for task in (t for t in tasks if t.stage == stage):
            soonest = min(range(len(free)), key=free.__getitem__)
            free[soonest] += task.seconds
        total += max(free)
    return total
