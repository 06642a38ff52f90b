"""What parts and tasks cost: in calls that use none, for a task on dask, for a part on MPI.

    taskset -c 0 python benchmarks/distributed_overhead.py unused
    python benchmarks/distributed_overhead.py dask
    mpirun -n 2 python benchmarks/distributed_overhead.py mpi

``unused`` compiles (T), DF-MP2 and the density-fitted ladder with numbered iterations and without,
and calls both in turn, whole. ``dask`` and ``mpi`` run one program in one task, and in many, on as
many workers, and beside them the parts one by one without an engine. Times are the least of many
calls.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import tcgen
from tcgen.testing import random_arrays

# Extents of calls of some milliseconds, and memory for which the plans have tiles.
METHODS = {
    "t_closed_shell": ({"o": 5, "v": 16}, "2MiB"),
    "mp2_df": ({"o": 12, "v": 40, "x": 120}, "256KiB"),
    "df_ladder": ({"o": 6, "v": 24, "x": 60}, "256KiB"),
}
# A part takes less than the messages about it.
SMALL = ("mp2_df", {"o": 60, "v": 8, "x": 8}, "16KiB")
Arrays = dict[str, np.ndarray]


def compiled(name: str, extents: dict[str, int], memory: str) -> tuple[tcgen.Program, Arrays]:
    """A program with tile loops, and its inputs."""
    path = tcgen.spec_path(name)
    program = tcgen.compile(path, extents=extents, objective="time", memory_limit=memory)
    made = random_arrays(tcgen.read_spec_file(path), extents, dtype="float64", seed=0)
    wanted = [t.name for t in program.manifest.tensors if t.role != "output"]
    return program, {n: made[n] for n in wanted}


def least(calls: list[Callable[[], Any]], count: int, clock: Callable[[], float]) -> list[float]:
    """The least seconds of each call, of ``count`` rounds in turn."""
    found = [float("inf")] * len(calls)
    for _ in range(count):
        for n, call in enumerate(calls):
            start = clock()
            call()
            found[n] = min(found[n], clock() - start)
    return found


def unused(count: int) -> None:
    """Calls of whole programs with and without numbered iterations."""
    for name, (extents, memory) in METHODS.items():
        numbered, arrays = compiled(name, extents, memory)
        with patch("tcgen.lower.with_parts", lambda module, *_: module):
            plain, _ = compiled(name, extents, memory)
        assert numbered.parts() > 1 == plain.parts()
        first, second = numbered(**arrays), plain(**arrays)
        for key, value in first.items():
            np.testing.assert_allclose(value, second[key], rtol=1e-10, atol=1e-10)
        ours, theirs = least(
            [lambda p=p, a=arrays: p(**a) for p in (numbered, plain)], count, time.process_time
        )
        print(
            f"{name}: {numbered.parts()} parts, {1e3 * ours:.3f} ms; without parts "
            f"{1e3 * theirs:.3f} ms ({100 * (ours / theirs - 1):+.2f} %)"
        )


def further_task(where: Any, count: int, say: Callable[[str], None]) -> None:
    """A call in one task and one in as many tasks as there are parts, on the workers."""
    name, extents, memory = SMALL
    program, arrays = compiled(name, extents, memory)
    runs = []
    for seconds in (1e9, 0.0):
        run = tcgen.distribute(program, where, "1GiB", task_seconds=seconds)
        run._engine.slots = max(run._engine.slots, program.parts())
        runs.append(run.bind(**arrays))

    def parts() -> None:
        for n in range(program.parts()):
            program(**arrays, part=(n, n + 1))

    one, many, alone = least([*runs, parts], count, time.perf_counter)
    tasks = runs[1].report.tasks
    assert runs[0].report.tasks == 1 < tasks
    say(
        f"one task {1e3 * one:.3f} ms, {tasks} tasks {1e3 * many:.3f} ms: "
        f"{1e6 * (many - one) / (tasks - 1):.1f} microseconds for each further task; in "
        f"one process the calls of all parts take {1e3 * alone:.3f} ms, so that a task takes "
        f"{1e6 * (many - alone) / tasks:.1f} microseconds more than its call"
    )


def main() -> None:
    """Measure one of the three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["unused", "dask", "mpi"])
    parser.add_argument("--calls", type=int, default=200, help="rounds of which the least counts")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.what == "unused":
        unused(given.calls)
    elif given.what == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(2)
            further_task(client, given.calls, print)
    else:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        further_task(comm, given.calls, print if comm.rank == 0 else lambda _: None)


if __name__ == "__main__":
    main()
