"""An mpi4py communicator: all ranks call the program, and all of them have the results.

The ranks take tasks from a counter that they share. Arrays that rank 0 was given and results stand
once on each node, in windows that its ranks share; small results, which are copied, are the
exception. The first rank of a node, its leader, fills the windows: it receives blocks in the order
of the tasks. Each call begins with a message of every rank, what it is about to do or its error, so
that all ranks take part in what follows, or none. A rank that fails tells the others, and all raise
the same error.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..errors import ArgumentError, TcgenError, UnavailableError
from ..hardware import memory_of_node
from .executor import Engine
from .handles import Handle
from .stage import Task
from .worker import Block, Done, Job, prepare, probe, run_task

T = TypeVar("T")
Array = npt.NDArray[Any]
_SMALL = 4096  # bytes of a result that all ranks get in one message with the others
_LONGEST = 2**30  # bytes of a message: MPI counts them in 32 bits


class _Window:
    """Memory that the ranks of a node share, until all of them have dropped its arrays."""

    def __init__(self, window: Any, nbytes: int) -> None:
        self.window, self.nbytes = window, nbytes
        self._bytes: weakref.ref[Array] | None = None

    @property
    def unused(self) -> bool:
        """True if this process has dropped all arrays of the window."""
        return self._bytes is None or self._bytes() is None

    def has(self, array: Array) -> bool:
        """True for an array that is the whole window."""
        made = None if self._bytes is None else self._bytes()
        return made is not None and array.base is made and array.nbytes == self.nbytes

    def array(self, shape: tuple[int, ...], dtype: str) -> Array:
        """The window as an array. Views of it keep the array of bytes alive."""
        memory: Any = self.window.Shared_query(0)[0]
        made = np.frombuffer(memory, np.uint8)
        self._bytes = weakref.ref(made)
        return made.view(dtype).reshape(shape)


class MpiEngine(Engine):
    """Runs tasks on the ranks of a communicator; every rank makes one, and all calls of it."""

    # The attribute of a communicator that has its engine.
    _key: ClassVar[int | None] = None

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
        self.ranks = int(self._comm.allreduce(self._node.size, op=MPI.MIN))
        memory = self._comm.allreduce(memory_of_node() // self._node.size, op=MPI.MIN)
        self.worker_memory = int(memory)
        self._counter = MPI.Win.Allocate(8 if self._comm.rank == 0 else 0, 8, comm=self._comm)
        self._leads = self._node.rank == 0
        self._leaders = self._comm.Split(0 if self._leads else MPI.UNDEFINED, self._comm.rank)
        self._leader_of = self._comm.allgather(self._node.bcast(self._comm.rank))
        self._windows: list[_Window] = []
        self._failed: BaseException | None = None

    @classmethod
    def of(cls, comm: Any) -> MpiEngine:
        """The engine of a communicator: one, so that calls of all its programs meet."""
        from mpi4py import MPI  # noqa: PLC0415  (needs the extra)

        if cls._key is None:
            cls._key = MPI.Comm.Create_keyval()
        engine: MpiEngine | None = comm.Get_attr(cls._key)
        if engine is None:
            engine = cls(comm)
            comm.Set_attr(cls._key, engine)
        return engine

    def agreed(self, make: Callable[[], tuple[str, T]]) -> T:
        """The value of ``make`` on each rank; all raise if one does, or if their texts differ."""
        made: list[tuple[str, T]] = []
        self._raise_first(_caught(lambda: made.append(make())))
        [(text, value)] = made
        texts = self._comm.allgather(text)
        other = next((n for n, found in enumerate(texts) if found != texts[0]), None)
        if other is not None:
            raise ArgumentError(
                f"the ranks are out of step: rank 0 is to {texts[0]}, and rank {other} to "
                f"{texts[other]}: make the same calls on all ranks, with arrays of the same shapes"
            )
        return value

    def apart(self, work: Callable[[], None]) -> None:
        """Work between messages to other ranks; its first error is raised by ``settle``."""
        if self._failed is None:
            self._failed = _caught(work)

    def once(self, make: Callable[[], T]) -> T:
        """The value that rank 0 makes, or its error, on all ranks."""
        made: list[T] = []
        root = self._comm.rank == 0
        self._raise_first(_caught(lambda: made.append(make())) if root else None)
        result: T = self._comm.bcast(made[0] if root else None)
        return result

    def share(self, value: Any) -> Handle:
        """The value of rank 0 on every rank; a result in a window of the nodes stays there."""
        comm, root = self._comm, self._comm.rank == 0
        array = isinstance(value, np.ndarray)
        given = (uuid4().hex, (value.shape, value.dtype.str) if array else None)
        token, kind = comm.bcast(given if root else None)
        if kind is None:
            return Handle(comm.bcast(value if root else None), token)
        number = -1
        if array and kind == (value.shape, value.dtype.str):
            number = next((n for n, w in enumerate(self._windows) if w.has(value)), -1)
        numbers = set(comm.allgather(number))
        if numbers != {-1} and len(numbers) == 1:
            return Handle(value, token, moves=False, holders=self._node.size)
        made = self._shared(*kind)
        if self._leads:
            if root:
                made[...] = value
            self._to_leaders(made, 0)
        self._node.Barrier()
        return Handle(made, token, holders=self._node.size)

    def _shared(self, shape: tuple[int, ...], dtype: str) -> Array:
        """An array with arbitrary elements, once on each node."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        if nbytes == 0:
            return np.empty(shape, dtype)
        unused = np.array([w.unused for w in self._windows], bool)
        self._comm.Allreduce(self._mpi.IN_PLACE, unused, op=self._mpi.LAND)
        free = [w for w, no in zip(self._windows, unused, strict=True) if no]
        found = next((w for w in free if w.nbytes == nbytes), None)
        if found is None:
            for window in free:
                self._windows.remove(window)
                window.window.Free()
            own = nbytes if self._leads else 0
            found = _Window(self._mpi.Win.Allocate_shared(own, 1, comm=self._node), nbytes)
            self._windows.append(found)
        return found.array(shape, dtype)

    def result(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Memory of this rank for a small result, else of the node, which the leader fills."""
        if math.prod(shape) * np.dtype(dtype).itemsize <= _SMALL:
            return np.empty(shape, dtype)
        made = self._shared(shape, dtype)
        made.flags.writeable = self._leads
        return made

    def settle(self, results: Sequence[Array]) -> None:
        """Synchronize with the leader. Results become read-only, since ranks share them."""
        failed, self._failed = self._failed, None
        self._raise_first(failed)
        for result in results:
            result.flags.writeable = False

    def prepare(self, stage: Handle) -> None:
        """Compile on one rank of each node; the others find the result in its cache."""
        error = None
        if self._node.rank == 0:
            error = _caught(lambda: prepare(stage))
        self._raise_first(error)

    def run(self, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[Task, Done]]:
        """Each task in order, on every rank; all raise the error of a rank that failed."""
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
        """The results of a task; its large arrays are sent without pickle."""
        if not any(isinstance(a, _Large) for pieces in head.blocks.values() for _, a in pieces):
            return head
        blocks: dict[str, tuple[Block, ...]] = {}
        pieces: Any
        for name, pieces in head.blocks.items():
            received = []
            for k, (rectangle, piece) in enumerate(pieces):
                array: Any = piece
                if isinstance(piece, _Large):
                    own = None if done is None else np.asarray(done.blocks[name][k][1], order="C")
                    array = self._sent(owner, piece, own)
                received.append((rectangle, array))
            blocks[name] = tuple(received)
        return replace(head, blocks=blocks)

    def _sent(self, owner: int, piece: _Large, own: Array | None) -> Array | None:
        """An array of the rank ``owner`` on all leaders; None on other ranks."""
        home = self._leader_of[owner]
        if own is not None and not self._leads:
            for message in _messages(own):
                self._comm.Send(message, dest=home)
        if not self._leads:
            return None
        array = np.empty(piece.shape, piece.dtype) if own is None else own
        if self._comm.rank == home != owner:
            for message in _messages(array):
                self._comm.Recv(message, source=owner)
        self._to_leaders(array, home)
        return array

    def _to_leaders(self, array: Array, source: int) -> None:
        """Send an array from the leader with this rank to the others."""
        root = sorted(set(self._leader_of)).index(source)
        for message in _messages(array):
            self._leaders.Bcast(message, root=root)

    def _raise_first(self, error: BaseException | None) -> None:
        """Raise the error of the first rank that has one, on all ranks."""
        for rank, found in enumerate(self._comm.allgather(_portable(error))):
            if found is not None:
                if rank == self._comm.rank and error is not None:
                    raise error
                raise found


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


def _messages(array: Array) -> Iterator[Array]:
    """The bytes of an array in C order, in pieces that fit into a message."""
    every = array.reshape(-1).view(np.uint8)
    for first in range(0, every.size, _LONGEST):
        yield every[first : first + _LONGEST]


@dataclass(frozen=True, slots=True)
class _Large:
    """Stands for an array that is sent by itself."""

    shape: tuple[int, ...]
    dtype: str


def _light(done: Done) -> Done:
    if all(a.nbytes <= _SMALL for pieces in done.blocks.values() for _, a in pieces):
        return done
    blocks: Any = {
        name: tuple(
            (r, _Large(a.shape, a.dtype.str) if a.nbytes > _SMALL else a) for r, a in pieces
        )
        for name, pieces in done.blocks.items()
    }
    return replace(done, blocks=blocks)
