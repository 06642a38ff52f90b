"""Programs on two workers beside one, and what a task costs beside its kernel.

    mpirun -n 2 --bind-to none python benchmarks/many_workers.py --mpi
    python benchmarks/many_workers.py

On MPI, (T), density-fitted MP2 and the ladder run on all ranks and on the first alone, in turns,
with one thread a rank. Then MP2 runs in many parts of a few microseconds, at two numbers of tasks.
The difference of the times, less that of the same parts without workers, is the cost of a task. On
two local dask workers that cost alone is measured. The shortest of several calls counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tcgen
from tcgen.distributed import plan
from tcgen.testing import random_arrays

# A limit of memory makes tiles, hence parts.
CASES: dict[str, tuple[dict[str, int], str]] = {
    "t_closed_shell": ({"o": 5, "v": 53}, "64MiB"),
    "mp2_df": ({"o": 21, "v": 120, "x": 400}, "16MiB"),
    "df_ladder": ({"o": 16, "v": 100, "x": 400}, "32MiB"),
}
TINY = {"o": 1000, "v": 2, "x": 2}
Arrays = dict[str, Any]


def compiled(name: str, extents: dict[str, int], limit: str) -> tcgen.Program:
    """A shipped spec as one nest of loops."""
    return tcgen.compile(
        tcgen.spec_path(name), extents=extents, objective="time", memory_limit=limit
    )


def inputs(name: str, extents: dict[str, int]) -> Arrays:
    """Random arrays of a shipped spec; orbital energies of occupied orbitals below the others."""
    system = tcgen.read_spec_file(tcgen.spec_path(name))
    made = random_arrays(system, extents, dtype="float64", seed=0)
    made = {n: made[n] for n in (t.name for t in system.tensors if t.role.value == "input")}
    if "e_o" in made:
        made["e_o"], made["e_v"] = -1 - np.abs(made["e_o"]), 1 + np.abs(made["e_v"])
    return made


def least(work: Callable[[], Any], rounds: int) -> float:
    """Seconds of the shortest call."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


@contextmanager
def parts_a_slot(count: int) -> Iterator[None]:
    """Let a worker have more tasks than are sensible."""
    usual, plan.PARTS_PER_SLOT = plan.PARTS_PER_SLOT, count
    try:
        yield
    finally:
        plan.PARTS_PER_SLOT = usual


def cost_of_a_task(
    program: tcgen.Program, arrays: Arrays, where: Any, counts: tuple[int, int], rounds: int
) -> tuple[int, int, float]:
    """Two numbers of tasks, and the seconds that a task of the difference took in a call."""
    found = []
    for count in counts:
        with parts_a_slot(count), program.distribute(where, "1GiB", task_seconds=0) as run:
            run(**arrays)
            found.append((least(lambda: run(**arrays), rounds), run.report.tasks))
    (few, less), (many, more) = found
    return less, more, (many - few) / (more - less)


def on_mpi(rounds: int) -> None:
    """Both measurements, on the ranks of mpirun."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    alone = world.Split(color=world.rank)
    for name, (extents, limit) in CASES.items():
        program = world.bcast(compiled(name, extents, limit) if world.rank == 0 else None)
        arrays = inputs(name, extents)
        volatile = {t.name for t in program.manifest.tensors if t.volatile}
        given = {n: a for n, a in arrays.items() if n in volatile}
        bound = {n: a for n, a in arrays.items() if n not in volatile}
        all_ranks = program.distribute(world, "4GiB", task_seconds=0).bind(**bound)
        one_rank = program.distribute(alone, "4GiB", task_seconds=0).bind(**bound)
        both, single = float("inf"), float("inf")
        for _ in range(rounds):
            world.Barrier()
            both = min(both, least(lambda: all_ranks(**given), 1))  # noqa: B023
            world.Barrier()
            if world.rank == 0:
                single = min(single, least(lambda: one_rank(**given), 1))  # noqa: B023
            wait_quietly(world)
        if world.rank == 0:
            print(
                f"{name:15s} one rank {single * 1e3:8.1f} ms, "
                f"{world.size} ranks {both * 1e3:8.1f} ms, ratio {single / both:.2f}, "
                f"{all_ranks.report.tasks} tasks",
                flush=True,
            )
    program = world.bcast(compiled("mp2_df", TINY, "4KiB") if world.rank == 0 else None)
    arrays = inputs("mp2_df", TINY)
    few, many, each = cost_of_a_task(program, arrays, world, (100, 1000), rounds)
    if world.rank == 0:
        report_cost("MPI", program, arrays, (few, many), each * world.size, 1e6, "microseconds")


def wait_quietly(comm: Any) -> None:
    """A barrier whose ranks sleep: those that spin would slow down the rank that works."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


def report_cost(
    engine: str,
    program: tcgen.Program,
    arrays: Arrays,
    tasks: tuple[int, int],
    each: float,
    unit: float,
    name: str,
) -> None:
    """Print the seconds of a task on its worker, those of its part alone, and the difference."""
    count = program.parts(TINY)
    size = max(1, count // tasks[1])
    part = least(lambda: program(**arrays, part=(0, size)), 200)
    print(
        f"{engine}: {tasks[0]} and {tasks[1]} tasks: {each * unit:.2f} {name} a task, of which its "
        f"part takes {part * unit:.2f} in a plain call: {max(0.0, each - part) * unit:.2f} more",
        flush=True,
    )


def on_dask(rounds: int) -> None:
    """The cost of a task on two local workers."""
    from dask.distributed import Client, LocalCluster

    program, arrays = compiled("mp2_df", TINY, "4KiB"), inputs("mp2_df", TINY)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        few, many, each = cost_of_a_task(program, arrays, client, (20, 200), rounds)
        report_cost("dask", program, arrays, (few, many), each * 2, 1e3, "ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", action="store_true", help="run on the ranks of mpirun")
    parser.add_argument("--rounds", type=int, default=10, help="calls of which the shortest counts")
    options = parser.parse_args()
    (on_mpi if options.mpi else on_dask)(options.rounds)


if __name__ == "__main__":
    main()
