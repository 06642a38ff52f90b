"""Programs on all MPI ranks beside one rank.

    mpirun -n 2 --bind-to none python benchmarks/many_workers.py

(T), density-fitted MP2 and the ladder run on all ranks and on the first alone, in turns, with one
thread a rank. The shortest of several calls counts. ``distributed_overhead.py`` measures what a
task costs beside its kernel.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tcgen
from tcgen.testing import random_arrays

# A limit of memory makes tiles, hence parts.
CASES: dict[str, tuple[dict[str, int], str]] = {
    "t_closed_shell": ({"o": 5, "v": 53}, "64MiB"),
    "mp2_df": ({"o": 21, "v": 120, "x": 400}, "16MiB"),
    "df_ladder": ({"o": 16, "v": 100, "x": 400}, "32MiB"),
}
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


def on_ranks(rounds: int) -> None:
    """The times, on the ranks of mpirun."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    alone = world.Split(color=world.rank)
    for name, (extents, limit) in CASES.items():
        program = world.bcast(compiled(name, extents, limit) if world.rank == 0 else None)
        arrays = inputs(name, extents)
        volatile = {t.name for t in program.manifest.tensors if t.volatile}
        given = {n: a for n, a in arrays.items() if n in volatile}
        bound = {n: a for n, a in arrays.items() if n not in volatile}
        all_ranks = tcgen.distribute(program, world, "4GiB", task_seconds=0).bind(**bound)
        one_rank = tcgen.distribute(program, alone, "4GiB", task_seconds=0).bind(**bound)
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


def wait_quietly(comm: Any) -> None:
    """A barrier whose ranks sleep: those that spin would slow down the rank that works."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.001)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="calls of which the shortest counts")
    options = parser.parse_args()
    on_ranks(options.rounds)


if __name__ == "__main__":
    main()
