"""An mpi4py communicator: all ranks call the program, and all of them have the results.

The ranks take tasks from a counter that they share. Each result is sent by the rank that has it to
all others, in the order of the tasks. Arrays that rank 0 was given stand once on each node, in a
window that its ranks share. A rank that fails tells the others, and all raise the same error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from .._version import __version__
from ..errors import TcgenError, UnavailableError
from .handles import Handle
from .stage import Task
from .worker import Block, Done, Job, prepare, probe, run_task

T = TypeVar("T")
_SMALL = 4096  # bytes of a result that all ranks get in one message with the others


class OnNode:
    """A value that each rank has; an array stands once on a node."""

    moves = True

    def __init__(self, value: Any, token: str, window: Any) -> None:
        self._value, self.token, self.window = value, token, window

    def open(self) -> Any:
        """The value."""
        return self._value


class MpiEngine:
    """Runs tasks on the ranks of a communicator. Every rank makes one, and all calls of it.

    Args:
        comm: the user's.

    Raises:
        UnavailableError: ranks have different versions of tcgen.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI  # noqa: PLC0415  (needs the extra)

        self._mpi, self._comm = MPI, comm.Dup()
        self._node = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.slots, self.slots_per_worker = self._comm.size, 1
        ranks = self._comm.allgather((*probe(), self._node.size))
        for rank, (version, host, _, _) in enumerate(ranks):
            if version != __version__:
                raise UnavailableError(
                    f"rank {rank} on {host} has tcgen {version}, and rank {self._comm.rank} has "
                    f"{__version__}: install the same version on all nodes"
                )
        own = _node_memory()
        memory = self._comm.allreduce(own // self._node.size, op=MPI.MIN)
        self.worker_memory: int | None = int(memory)
        self._counter = MPI.Win.Allocate(8 if self._comm.rank == 0 else 0, 8, comm=self._comm)

    def once(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, on all ranks.

        Raises:
            TcgenError: of rank 0, on all ranks.
        """
        made: list[T] = []
        root = self._comm.rank == 0
        self._raise_first(_caught(lambda: made.append(make())) if root else None)
        result: T = self._comm.bcast(made[0] if root else None)
        return result

    def share(self, value: Any) -> Handle:
        """The value of rank 0 on every rank."""
        comm, root = self._comm, self._comm.rank == 0
        array = comm.bcast(
            (value.shape, value.dtype.str) if isinstance(value, np.ndarray) else None
        )
        if array is None:
            token, value = comm.bcast((uuid4().hex, value) if root else None)
            return OnNode(value, token, None)
        shape, dtype = array
        token = comm.bcast(uuid4().hex if root else None)
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        first = self._node.rank == 0
        window = self._mpi.Win.Allocate_shared(count if first else 0, 64, comm=self._node)
        memory: Any = window.Shared_query(0)[0]
        made = np.frombuffer(memory, dtype).reshape(shape) if count else np.empty(shape, dtype)
        leaders = comm.Split(0 if first else self._mpi.UNDEFINED, comm.rank)
        if first:
            if root:
                made[...] = value
            leaders.Bcast(_bytes(made))
            leaders.Free()
        self._node.Barrier()
        return OnNode(made, token, window)

    def forget(self, handles: Sequence[Handle]) -> None:
        """Free the windows of values."""
        for handle in handles:
            if isinstance(handle, OnNode) and handle.window is not None:
                handle.window.Free()
                handle.window = None

    def prepare(self, stage: Handle) -> None:
        """Compile on one rank of each node; the others find the result in its cache."""
        error = None
        if self._node.rank == 0:
            error = _caught(lambda: prepare(stage))
        self._raise_first(error)

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task in order, on every rank.

        Raises:
            TcgenError: of a rank that failed, on all ranks.
        """
        own: dict[int, Done] = {}

        def work() -> None:
            while (n := self._next()) < len(tasks):
                own[n] = run_task(job, tasks[n])

        self._reset()
        self._raise_first(_caught(work))
        every = self._comm.allgather([(n, _light(done)) for n, done in own.items()])
        heads = {n: (rank, head) for rank, found in enumerate(every) for n, head in found}
        for n, task in enumerate(tasks):
            yield task, self._filled(*heads[n], own.get(n))

    def _reset(self) -> None:
        if self._comm.rank == 0:
            self._counter.Lock(0)
            self._counter.Put(np.zeros(1, "i8"), 0)
            self._counter.Unlock(0)
        self._comm.Barrier()

    def _next(self) -> int:
        """The number of the next task; each number is given once."""
        one, got = np.ones(1, "i8"), np.zeros(1, "i8")
        self._counter.Lock(0)
        self._counter.Fetch_and_op(one, got, 0, 0, self._mpi.SUM)
        self._counter.Unlock(0)
        return int(got[0])

    def _filled(self, owner: int, head: Done, done: Done | None) -> Done:
        """What a task gave, with its large arrays from the rank that ran it, without pickle."""
        blocks: dict[str, tuple[Block, ...]] = {}
        pieces: Any
        for name, pieces in head.blocks.items():
            received = []
            for k, (rectangle, piece) in enumerate(pieces):
                array: Any = piece
                if isinstance(piece, _Large):
                    array = np.empty(piece.shape, piece.dtype)
                    if done is not None:
                        array = np.asarray(done.blocks[name][k][1], order="C")
                    self._comm.Bcast(_bytes(array), root=owner)
                received.append((rectangle, array))
            blocks[name] = tuple(received)
        return replace(head, blocks=blocks)

    def _raise_first(self, error: BaseException | None) -> None:
        """Raise the error of the first rank that has one, on all ranks."""
        for rank, found in enumerate(self._comm.allgather(_portable(error))):
            if found is not None:
                if rank == self._comm.rank and error is not None:
                    raise error
                raise found

    def close(self) -> None:
        """The communicator of the user stays open."""


def _caught(work: Any) -> BaseException | None:
    try:
        work()
    except Exception as error:
        return error
    return None


def _portable(error: BaseException | None) -> TcgenError | None:
    if error is None or isinstance(error, TcgenError):
        return error
    return UnavailableError(f"a rank failed: {type(error).__name__}: {error}")


def _bytes(array: Any) -> Any:
    return array.reshape(-1).view(np.uint8)


@dataclass(frozen=True, slots=True)
class _Large:
    """Stands for an array that is sent by itself."""

    shape: tuple[int, ...]
    dtype: str


def _light(done: Done) -> Done:
    blocks: Any = {
        name: tuple(
            (r, _Large(a.shape, a.dtype.str) if a.nbytes > _SMALL else a) for r, a in pieces
        )
        for name, pieces in done.blocks.items()
    }
    return replace(done, blocks=blocks)


def _node_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
