"""``tcgen.distribute(program, where)``: the engine of a client, a communicator or an executor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from ..errors import ArgumentError, MemoryLimitError, PlanError, UnavailableError, pip_install
from ..options import parse_bytes
from ..runtime.program import Program
from ..runtime.queries import EQUATIONS
from .executor import Engine, ExecutorEngine
from .run import DistributedProgram

# Bytes of a worker that is no GPU.
DEFAULT_MEMORY = "4GiB"


def distribute(
    program: Program,
    where: object,
    memory: str | SupportsIndex | None = None,
    *,
    task_seconds: float = 0.2,
    along: str | None = None,
    scratch: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DistributedProgram:
    """A program that runs on the workers of ``where``.

    Args:
        program: the program.
        where: a dask.distributed Client, an mpi4py communicator (all ranks call this and the
            result), an executor of concurrent.futures, or a list or array of numbers of GPUs of
            this machine, such as ``[0, 1]``, for a program whose target is cuda.
        memory: bytes that one worker may use, or text such as "4GiB". None allows 4 GiB, and a GPU
            what is free on the one that has least.
        task_seconds: minimum predicted seconds of a task; shorter tasks are dominated by overhead.
        along: name of the space that is cut into ranges; None cuts the iterations of the program
            if it numbers them, else the largest space that can be cut.
        scratch: folder for arrays that an executor's processes map, on a file system that all of
            them see; by default one for temporary files.
        progress: function called after each task with the number of finished tasks and of all
            tasks of the stage.

    Raises:
        ArgumentError: ``where`` is of another kind, or ``memory`` cannot be read; GPUs for a
            program of another target.
        MemoryLimitError: a worker has less memory than ``memory``.
        UnavailableError: dask or mpi4py is not installed, workers are missing or have another
            version of tcgen; a GPU is missing.
        PlanError: an output accumulates.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> import numpy as np
        >>> import tcgen
        >>> program = tcgen.compile("ij,jk->ik", extents={"i": 4, "j": 3, "k": 2})
        >>> with ThreadPoolExecutor(2) as pool, tcgen.distribute(program, pool, along="i") as run:
        ...     y = run(x0=np.ones((4, 3)), x1=np.ones((3, 2)))["y"]
        >>> y.shape
        (4, 2)
    """
    engine = engine_of(where, None if scratch is None else Path(scratch))

    def agreed() -> tuple[str, int]:
        allowed = _allowed(program, engine, memory)
        options = f"memory={allowed}, task_seconds={task_seconds}, along={along}"
        return f"distribute {_described(program)} with {options}", allowed

    allowed = engine.agreed(agreed)
    return DistributedProgram(
        program, engine, allowed, task_seconds=task_seconds, along=along, progress=progress
    )


def _allowed(program: Program, engine: Engine, memory: str | SupportsIndex | None) -> int:
    """The bytes that a worker may use."""
    manifest = program.manifest
    if engine.on_gpus and manifest.target != "cuda":
        raise ArgumentError(
            f'{manifest.name} is for the target {manifest.target}: compile with target="cuda" for '
            f"GPUs, or distribute it to a client, a communicator or an executor"
        )
    for tensor in manifest.outputs:
        if tensor.accumulate:
            raise PlanError(
                f"output {tensor.name} accumulates, so that each task would add to it: write "
                f"{tensor.name} = ... in the equations, and add the arrays afterwards"
            )
    limit = engine.worker_memory
    if memory is None and engine.on_gpus and limit is not None:
        return limit
    allowed = parse_bytes(DEFAULT_MEMORY if memory is None else memory)
    if limit is not None and limit < allowed:
        raise MemoryLimitError(
            f"memory={allowed:,} bytes a worker is more than a worker has, {limit:,}: give "
            f"memory={limit}, or "
            f"{'other GPUs' if engine.on_gpus else 'start fewer workers on a node'}"
        )
    return allowed


def _described(program: Program) -> str:
    """A program for the message that ranks compare: its equations, not how they are planned.

    The nodes of a cluster may differ, and with them the plans that ranks make of one spec.
    """
    manifest, artifact = program.manifest, program.artifact
    equations = artifact.text(EQUATIONS) if artifact.has(EQUATIONS) else ""
    digest = hashlib.sha256(repr((equations, manifest.tensors)).encode()).hexdigest()[:8]
    names = ", ".join(t.name for t in manifest.tensors if t.is_input or t in manifest.outputs)
    return f"{manifest.name} (equations {digest}) of {names} in {manifest.dtype}"


def engine_of(where: Any, scratch: Path | None = None) -> Engine:
    """The engine of a client, a communicator or an executor; an engine is its own."""
    if isinstance(where, Engine):
        return where
    library = type(where).__module__.partition(".")[0]
    names = {cls.__module__.partition(".")[0] for cls in type(where).__mro__}
    if isinstance(where, Executor):
        return ExecutorEngine(where, scratch)
    if library == "distributed" or "distributed" in names:
        _need("distributed", "dask")
        from .dask_client import DaskEngine  # noqa: PLC0415

        return DaskEngine(where)
    if "mpi4py" in names:
        _need("mpi4py", "mpi")
        from .mpi import MpiEngine  # noqa: PLC0415

        return MpiEngine.of(where)
    if isinstance(where, np.ndarray) and where.ndim == 1:
        where = [*where]
    if isinstance(where, Sequence) and all(_is_number(n) for n in where):
        from .gpus import GpuEngine  # noqa: PLC0415  (loads the runtime of a GPU)

        return GpuEngine([int(n) for n in where])
    raise ArgumentError(
        f"cannot distribute to a {type(where).__name__}: give a dask.distributed Client, an mpi4py "
        f"communicator, an executor of concurrent.futures, or a list of numbers of GPUs"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _need(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise UnavailableError(f"{module} is not installed: {pip_install(extra)}")


def dask_client(address: str) -> Any:
    """A client of the dask scheduler at an address such as ``tcp://host:8786``."""
    _need("distributed", "dask")
    from distributed import Client  # noqa: PLC0415  (needs the extra)

    connect: Any = Client
    try:
        return connect(address, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(
            f"no dask scheduler answers at {address} ({error or type(error).__name__}): start one "
            f"with 'dask scheduler', and give the address that it prints"
        ) from None


def mpi_world() -> Any:
    """The communicator of all ranks that mpirun started."""
    _need("mpi4py", "mpi")
    try:
        from mpi4py import MPI  # noqa: PLC0415  (needs the extra)
    except (ImportError, RuntimeError) as error:
        raise UnavailableError(
            f"mpi4py finds no MPI ({error}): install one, for example apt-get install openmpi-bin"
        ) from None
    return MPI.COMM_WORLD
