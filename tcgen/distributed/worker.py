"""Run a task in a worker: load its inputs, run the program, return the blocks of its results.

A process stores programs, constants and bound programs between tasks, and drops the least recently
used ones when the memory of the worker is full. After a worker dies, another one loads its
constants again: the scheduler does not know of them.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..compiler.program_cache import LeastRecentlyUsed
from ..errors import UnavailableError
from ..runtime.device_protocol import Device
from ..runtime.fork_safe_lock import Lock
from ..runtime.host_device import HostDevice
from ..runtime.program import Program
from .handles import Handle, aligned_copy, aligned_empty
from .stage import Reading, Stage, Task, Writing, corners, rectangle_bytes, source_names
from .stored import Rectangle, Stored

Array = npt.NDArray[Any]
Block = tuple[Rectangle, Array]


_MOST_VALUES = 4096
_UNLIMITED = 2**62  # bytes


@dataclass(frozen=True, slots=True)
class Job:
    """The arguments that all tasks of a call share.

    ``run`` names the distributed program, whose constants ``held`` the process stores. ``given``
    are the arrays of this call. The worker may store and allocate ``memory`` bytes.
    """

    run: str
    stage: Handle
    held: Mapping[str, Stored | Handle]
    given: Mapping[str, Handle]
    memory: int


@dataclass(frozen=True, slots=True)
class Done:
    """The results of a task, and its report.

    ``blocks`` of each output come with their rectangles. ``worker`` is host and process.
    ``loaded_bytes`` were read or received for the first time in the process, ``reloaded_bytes``
    read again after it had dropped them. ``first`` has names of sources with the pieces that were
    read, and tokens of the arrays that were received, for the first time. ``peak_bytes`` are those
    that the program allocated and the worker stored.
    """

    blocks: dict[str, tuple[Block, ...]]
    worker: str
    thread: int
    seconds: float
    loaded_bytes: int
    first: frozenset[Hashable]
    reloaded_bytes: int
    result_bytes: int
    peak_bytes: int

    def __sizeof__(self) -> int:
        """Bytes with the blocks: dask measures the memory of workers by them."""
        return object.__sizeof__(self) + sum(a.nbytes for b in self.blocks.values() for _, a in b)


@dataclass(frozen=True, slots=True)
class _Entry:
    value: Any
    nbytes: int
    needs: frozenset[Hashable]


class Shelf(LeastRecentlyUsed[_Entry]):
    """Values of a process up to a number of bytes; the least recently used ones are dropped."""

    def __init__(self) -> None:
        super().__init__(lambda: _MOST_VALUES)
        self._making: dict[Hashable, Lock] = {}
        self.nbytes = 0

    def load(
        self,
        key: Hashable,
        make: Callable[[], tuple[Any, int]],
        limit: int = _UNLIMITED,
        needs: Collection[Hashable] = (),
    ) -> Any:
        """The value of a key, made if it is missing; others are dropped to stay within the limit.

        ``make`` returns the value and its bytes; ``limit`` is for the bytes of all values. The
        value holds those of the keys ``needs``, and is dropped with them.
        """
        with self._lock:
            making = self._making.setdefault(key, Lock())
        # Two threads that need the same array load it once.
        with making:
            found: _Entry | None = self.get(key)
            if found is not None:
                return found.value
            try:
                value, count = make()
                self.put(key, value, count, limit, needs)
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return value

    def put(
        self,
        key: Hashable,
        value: Any,
        count: int,
        limit: int,
        needs: Collection[Hashable] = (),
    ) -> None:
        """Add a value, and drop the least recently used others beyond the limit."""
        with self._lock:
            old = self._values.pop(key, None)
            self.nbytes -= 0 if old is None else old.nbytes
            self._trim(limit - count)
            self.nbytes += count
            self._values[key] = _Entry(value, count, frozenset(needs))
            # Values without bytes, of earlier calls.
            while self._is_full():
                self._drop(next(iter(self._values)))

    def trim(self, limit: int) -> None:
        """Drop the least recently used values beyond the limit."""
        with self._lock:
            self._trim(limit)

    def drop(self, key: Hashable) -> None:
        """Drop a value and those that hold it."""
        with self._lock:
            self._drop(key)

    def forget(self, tokens: Collection[str]) -> None:
        """Drop what was made from the values of handles with these tokens."""
        with self._lock:
            for key in [k for k in self._values if isinstance(k, tuple) and k[0] in tokens]:
                self._drop(key)

    def clear(self) -> None:
        """Drop all values."""
        super().clear()
        self.nbytes = 0

    def _trim(self, limit: int) -> None:
        for key in [k for k, entry in self._values.items() if entry.nbytes]:
            if self.nbytes <= limit:
                break
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        entry = self._values.pop(key, None)
        if entry is None:
            return
        self.nbytes -= entry.nbytes
        for holder in [k for k, other in self._values.items() if key in other.needs]:
            self._drop(holder)


SHELF = Shelf()


@dataclass(slots=True)
class Place:
    """Where tasks of a process run: the CPU, or one of several GPUs.

    ``name`` is that of the worker, ``device`` makes its arrays, and ``shelf`` stores them between
    tasks.
    """

    name: str
    device: Device
    shelf: Shelf


def here() -> Place:
    """The memory of this process."""
    return Place(f"{socket.gethostname()}:{os.getpid()}", HostDevice(), SHELF)


class Tiles:
    """A range of a stored array that a program reads in tiles; counts their bytes."""

    def __init__(self, source: Stored, corner: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self._source, self._corner = source, corner
        self.shape, self.dtype, self.loaded = shape, np.dtype(source.dtype), 0

    def __getitem__(self, rectangle: Any) -> Array:
        given = rectangle if isinstance(rectangle, tuple) else (rectangle,)
        moved = []
        for k, n in enumerate(self.shape):
            axis = given[k] if k < len(given) else slice(None)
            start, stop, _ = axis.indices(n)
            moved.append(slice(self._corner[k] + start, self._corner[k] + stop))
        block = self._source.read(tuple(moved))
        self.loaded += block.nbytes
        return block


def probe() -> tuple[str, str, int]:
    """Version of tcgen, name of the host and number of the process of a worker."""
    return __version__, socket.gethostname(), os.getpid()


def prepare(stage: Handle) -> None:
    """Compile a stage's program on this node, so that its other workers find it compiled."""
    _program(stage).build()


def _program(handle: Handle) -> Program:
    stage: Stage = handle.open()
    if stage.version != __version__:
        raise UnavailableError(
            f"the worker on {socket.gethostname()} has tcgen {__version__}, and the program was "
            f"made by {stage.version}: install the same version on all workers"
        )

    def make() -> tuple[Program, int]:
        return Program(stage.artifact), 0

    program: Program = SHELF.load((handle.token, "program"), make)
    return program


def run_task(job: Job, task: Task, place: Place | None = None) -> Done:
    """Run one task in a worker; by default in the memory of this process.

    On a GPU the blocks are arrays there, and work on its current stream.
    """
    place = place or here()
    start = time.perf_counter()
    stage: Stage = job.stage.open()
    program = _program(job.stage)
    peak, readings, writings = _rectangles(job.stage.token, stage, program, task)
    loader = _Loader(job, stage, place)
    loader.keep = max(0, job.memory - peak - loader.sent)
    # The task before this one may have left more room.
    place.shelf.trim(loader.keep)
    outputs, state_bytes = _call(program, loader, readings, task)
    blocks: dict[str, tuple[Block, ...]] = {}
    result_bytes = 0
    for writing in writings:
        array = outputs[writing.name]
        pieces = []
        for rectangle in writing.rectangles:
            # A program for a range of a space returns the rectangle itself.
            piece = _block(place.device, array, None if stage.here else rectangle)
            pieces.append((rectangle, piece))
            result_bytes += int(piece.nbytes)
        blocks[writing.name] = tuple(pieces)
    return Done(
        blocks,
        place.name,
        threading.get_ident(),
        time.perf_counter() - start,
        loader.loaded,
        frozenset(loader.first),
        loader.reloaded,
        result_bytes,
        program.allocated_bytes - state_bytes + place.shelf.nbytes + loader.sent,
    )


def _block(device: Device, array: Any, rectangle: Rectangle | None) -> Any:
    """A copy of a rectangle of a result, or the result itself, in the memory of the device."""
    if device.on_cpu:
        return np.asarray(array if rectangle is None else np.array(array[rectangle], order="C"))
    if not device.holds(array):
        array = device.put(np.asarray(array))
    return array if rectangle is None else array[(*rectangle, ...)].copy()


def _rectangles(
    token: str, stage: Stage, program: Program, task: Task
) -> tuple[int, tuple[Reading, ...], tuple[Writing, ...]]:
    """Bytes that the program allocates, its readings and writings: found once for a range."""
    first, last = task.first, task.last

    def make() -> tuple[tuple[int, tuple[Reading, ...], tuple[Writing, ...]], int]:
        peak = program.peak_bytes(stage.extents_of(first, last))
        return (peak, stage.readings(program, first, last), stage.writings(program, first, last)), 0

    found: tuple[int, tuple[Reading, ...], tuple[Writing, ...]]
    found = SHELF.load((token, "rectangles", first, last), make)
    return found


def _call(
    program: Program, loader: _Loader, readings: tuple[Reading, ...], task: Task
) -> tuple[Mapping[str, Array], int]:
    """The outputs, and the bytes of a bound program's state, which the shelf also counts."""
    stage, job = loader.stage, loader.job
    numbers: dict[str, Any] = {} if stage.here else {"part": (task.first, task.last)}
    entries = {t.name: t for t in stage.artifact.manifest.tensors}
    fixed = [r for r in readings if not entries[r.name].volatile]
    loose = any(r.source not in job.held or entries[r.name].role == "generated" for r in fixed)
    if not fixed or loose:
        return program(**{r.name: loader.array(r) for r in readings}, **numbers), 0
    arrays = {r.name: loader.array(r) for r in fixed}

    def bind() -> tuple[Any, int]:
        bound = program.bind(**arrays)
        return bound, bound.kept_bytes

    tokens = tuple(getattr(v, "token", v) for v in job.held.values())
    # Ranges of the program's own iterations share the constant phase; those of a space do not.
    which = (task.first, task.last) if stage.here else tuple(map(id, arrays.values()))
    key = (job.stage.token, tokens, which)
    bound = loader.place.shelf.load(key, bind, loader.keep, [loader.key(r) for r in fixed])
    others = {r.name: loader.array(r) for r in readings if entries[r.name].volatile}
    result: Mapping[str, Array] = bound(**others, **numbers)
    return result, bound.kept_bytes


class _Loader:
    """Finds the arrays of a task, and counts the bytes that are new to the process.

    The process may store ``keep`` bytes besides the task's own memory. ``sent`` counts bytes of
    arrays that were sent to it and that the stage uses, ``reloaded`` those that were read again
    after it had dropped them. ``first`` has names and tokens of pieces that are new to it.
    """

    def __init__(self, job: Job, stage: Stage, place: Place) -> None:
        self.job, self.stage, self.place = job, stage, place
        self.keep = self.sent = self.reloaded = 0
        self.first: set[Hashable] = set()
        self._loaded = 0
        loaded = (job.run, "loaded")
        self._known: set[Hashable] = self.place.shelf.load(loaded, lambda: (set(), 0))
        self._tiles: list[Tiles] = []
        self._arrays: dict[str, Array] = {}
        for name in source_names((stage,)):
            source = job.held.get(name) or job.given[name]
            if not isinstance(source, Stored):
                self._arrays[name] = self._opened(source)

    @property
    def loaded(self) -> int:
        """Bytes that were read or received for this task."""
        return self._loaded + sum(tiles.loaded for tiles in self._tiles)

    def _count(self, name: str, source: Stored | Handle, piece: Hashable, nbytes: int) -> None:
        """Count a piece of a source that was read, separately if the worker had it before."""
        if (source, piece) in self._known:
            self.reloaded += nbytes
        else:
            self._known.add((source, piece))
            self.first.add((name, piece))
            self._loaded += nbytes

    def key(self, reading: Reading) -> Hashable:
        """The key of a constant input's array in the process."""
        source = self.job.held[reading.source]
        which: Hashable
        if reading.shrunk:
            [(which, _)] = reading.pieces
        elif isinstance(source, Stored) and not reading.whole and self._device.on_cpu:
            which = "some"
        else:
            which = corners(_full(reading.shape))
        return (
            (self.job.run, source, which) if isinstance(source, Stored) else (source.token, which)
        )

    def array(self, reading: Reading) -> Any:
        """The array that the program takes for an input."""
        source = self.job.held.get(reading.source)
        if isinstance(source, Stored):
            return self._stored(source, reading)
        whole = self._arrays[reading.source]
        if not reading.shrunk or (reading.whole and reading.unpacking is None):
            return whole if self._device.on_cpu else self._whole(reading, whole)

        def cut() -> tuple[Any, int]:
            piece = reading.taken(whole.__getitem__, whole.dtype.name)
            if not self._device.on_cpu:
                handle = source or self.job.given[reading.source]
                [(which, count)] = reading.pieces
                self._count(reading.source, handle, which, count)
            elif source is not None and reading.unpacking is None:
                piece = aligned_copy(piece)
            made = self._device.put(np.asarray(piece, order="C"))
            return made, made.nbytes

        if source is None:
            return cut()[0]
        return self.place.shelf.load(self.key(reading), cut, self.keep)

    def _whole(self, reading: Reading, whole: Array) -> Any:
        """The copy on a GPU of a whole array, which its tasks share."""
        handle = self.job.held.get(reading.source) or self.job.given[reading.source]
        which = corners(_full(reading.shape))

        def copied() -> tuple[Any, int]:
            self._count(reading.source, handle, which, int(whole.nbytes))
            return self._device.put(whole), int(whole.nbytes)

        assert not isinstance(handle, Stored)
        return self.place.shelf.load((handle.token, which), copied, self.keep)

    @property
    def _device(self) -> Device:
        return self.place.device

    def _opened(self, handle: Handle) -> Array:
        """An array that was sent; it counts when the process sees it first."""

        def first() -> tuple[None, int]:
            if handle.moves:
                self._loaded += int(array.nbytes)
                self.first.add(handle.token)
            return None, 0

        array: Array = handle.open()
        if handle.moves:
            self.sent += -(-int(array.nbytes) // handle.holders)
        self.place.shelf.load((handle.token, "seen"), first)
        return array

    def _stored(self, source: Stored, reading: Reading) -> Any:
        if self.stage.entry(reading.name).role == "generated":
            (rectangle,) = reading.rectangles if reading.shrunk else (_full(reading.shape),)
            corner = tuple(axis.start for axis in rectangle)
            tiles = Tiles(source, corner, tuple(axis.stop - axis.start for axis in rectangle))
            self._tiles.append(tiles)
            return tiles
        if reading.shrunk or reading.whole or not self._device.on_cpu:

            def load() -> tuple[Any, int]:
                count = 0
                with source.opened() as read:

                    def counted(rectangle: Rectangle) -> Array:
                        nonlocal count
                        block = read(rectangle)
                        count += int(block.nbytes)
                        return block

                    if reading.shrunk:
                        array = reading.taken(counted, source.dtype)
                        [(piece, _)] = reading.pieces
                    else:
                        array = counted(_full(reading.shape))
                        piece = corners(_full(reading.shape))
                self._count(reading.source, source, piece, count)
                return self._device.put(array), int(array.nbytes)

            return self.place.shelf.load(self.key(reading), load, self.keep)
        return self._sparse(source, reading)

    def _sparse(self, source: Stored, reading: Reading) -> Array:
        """An array of the whole shape that has the rectangles; the system maps no other pages."""
        key = self.key(reading)
        sparse: _Sparse = self.place.shelf.load(
            key, lambda: (_Sparse(reading.shape, source.dtype), 0), self.keep
        )
        with sparse.lock:
            missing = [r for r in reading.rectangles if corners(r) not in sparse.filled]
            more = sum(rectangle_bytes(r, reading.itemsize) for r in missing)
            if sparse.filled and sparse.nbytes + more > self.keep:
                # Drop the full array, and with it the programs that are bound to it.
                self.place.shelf.drop(key)
                sparse = _Sparse(reading.shape, source.dtype)
                missing = list(reading.rectangles)
            for rectangle in missing:
                sparse.array[rectangle] = block = source.read(rectangle)
                self._count(reading.source, source, corners(rectangle), int(block.nbytes))
                sparse.nbytes += int(block.nbytes)
                sparse.filled.add(corners(rectangle))
        self.place.shelf.put(key, sparse, sparse.nbytes, self.keep)
        return sparse.array


class _Sparse:
    """An array with some rectangles filled."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.array = aligned_empty(shape, dtype)
        self.filled: set[tuple[tuple[int, int], ...]] = set()
        self.nbytes = 0
        self.lock = threading.Lock()


def _full(shape: tuple[int, ...]) -> Rectangle:
    return tuple(slice(0, n) for n in shape)
