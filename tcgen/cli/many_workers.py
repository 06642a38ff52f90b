"""``tcgen run DIR --scheduler ...`` and ``--mpi``: one run of a compiled program on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..distributed.distribute import dask_client, distribute, mpi_world
from ..distributed.stored import stored
from ..errors import ArgumentError
from ..runtime.program import Program
from .arrays_in_files import is_hdf5, read_arrays
from .run import Outcome, describe


@contextmanager
def workers(scheduler: str | None) -> Iterator[tuple[Any, bool]]:
    """Where to run, and whether this process is the one that prints.

    Args:
        scheduler: address of a dask scheduler; None takes the ranks of mpirun.

    Raises:
        UnavailableError: the engine is not installed, or does not answer.
    """
    if scheduler is None:
        world = mpi_world()
        yield world, world.rank == 0
        return
    client = dask_client(scheduler)
    try:
        yield client, True
    finally:
        client.close()


def run_on_workers(
    program: Program,
    where: object,
    inputs: Path,
    memory: str,
    progress: Callable[[int, int], None],
) -> Outcome:
    """One run; inputs in an HDF5 file are read by the workers.

    Args:
        program: compiled.
        where: of :func:`workers`.
        inputs: .h5 or .npz file with an array for each input.
        memory: that one worker may use.
        progress: called with the tasks that are done and those of the stage.

    Raises:
        ArgumentError: the file lacks an input, or cannot be read.
        MemoryLimitError: a worker has too little memory.
        UnavailableError: workers are lost.
    """
    names = [t.name for t in program.manifest.tensors if t.role != "output" and t.default is None]
    given: dict[str, Any]
    if is_hdf5(inputs):
        given = {name: stored(inputs, name) for name in names}
    else:
        arrays = read_arrays(inputs)
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ArgumentError(f"{inputs} has no array {', '.join(missing)}: add it to the file")
        given = {name: arrays[name] for name in names}
    with distribute(program, where, memory, progress=progress).bind(**given) as run:
        outputs = run()
        report = run.report
    lines = [describe(name, np.asarray(value)) for name, value in outputs.items()]
    return Outcome(outputs, {"distributed": asdict(report)}, (*lines, *str(report).split("\n")), "")
