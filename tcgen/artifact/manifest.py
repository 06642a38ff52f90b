"""The manifest of a compiled program: its arrays, memory, kernels and host program.

The compiler writes it and the runtime reads it. Arrays, buffers and the host program are those of
the module (:mod:`tcgen.records`); each kernel has an entry that was derived from its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from ..dtypes import BY_NAME
from ..records.loops import (
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Launch,
    buffer_bytes,
    host_items,
    stored_shape,
)
from ..records.parts import Parts
from ..records.tensors import Packing, Role, Space, Tensor, element_type
from .grid import GridEntry

SOURCES = {"cpu": "kernels.c", "cuda": "kernels.cu", "numpy": "kernels.py"}  # file by target

# A contraction that packs blocks: element type; space and tile of each variable of m, n and k;
# whether C is staged while A is read in place.
ContractionEntry: TypeAlias = tuple[str, tuple[tuple[tuple[str, int | None], ...], ...], bool]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A generated function, or a call of a library.

    Attributes:
        symbol: name of the function in the source; ``name`` is that of the kernel in the module.
        host: names of the host loop variables that it takes, in order.
        spaces: base spaces whose extents it needs.
        reads, writes: its buffers that have an address outside the kernel.
        private: buffers with a copy for each thread, or, on a GPU, for each block.
        live: first and last position of its statements.
        contractions: contractions that pack blocks.
        grid: number of blocks on a GPU; None for a CPU and for a product.
        product: matrix product that ``library`` computes on a GPU instead of a function.
    """

    name: str
    symbol: str
    host: tuple[str, ...]
    spaces: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    private: tuple[str, ...]
    live: tuple[int, int]
    contractions: tuple[ContractionEntry, ...]
    grid: GridEntry | None = None
    product: Gemm | None = None
    library: str | None = None


# The parts that run a statement: those with its iterations, every part, or the one with number 0.
Share: TypeAlias = Literal["iteration", "every", "first"]
ByBlock: TypeAlias = Literal["no", "first", "next"]


@dataclass(frozen=True, slots=True)
class SpanEntry:
    """A run of elements of an axis or of a loop.

    Attributes:
        variable: loop variable of the chain with its first element; None for element 0.
        length: maximum number of elements; None for all of the space.
        offset: base spaces of the axis before ``space``.
    """

    space: Space
    variable: str | None = None
    length: int | None = None
    offset: tuple[Space, ...] = ()


@dataclass(frozen=True, slots=True)
class TouchEntry:
    """Elements of an argument or result, one span for each logical axis."""

    tensor: str
    written: bool
    share: Share
    axes: tuple[SpanEntry, ...]


@dataclass(frozen=True, slots=True)
class OperandEntry:
    """An array of a statement.

    Attributes:
        spans: numbers of its spans among those of all groups of the statement.
        passes: number of times that each element is read or written.
        across: neighbouring threads of a GPU find neighbouring elements in different lines.
    """

    buffer: str
    spans: tuple[int, ...]
    passes: int
    across: bool = False


@dataclass(frozen=True, slots=True)
class StatementEntry:
    """A statement of the volatile phase, for the prediction of time.

    Attributes:
        share: parts that run it.
        loops: loops around it, without those of the chain.
        groups: groups of its own loops: m, n, k and the batch of a matrix product; else one.
        halves: number of triangles among all loops: each leaves half of the points.
        flops: flops of a point; None for a generated input.
        by_block: ``first`` or ``next`` if a thread block of a GPU computes each iteration of its
            loops, in a launch of its own or in that of the statement before it; else ``no``.
        shares: whether a GPU computes it in the launch of the statement before it.
        tile: numbers that ``launch_cycles`` reads of a product by tiles of a GPU, or None: m and n
            of a tile, the blocks that divide its sum, the blocks on a multiprocessor, and the
            times that each waits for memory at its end.
    """

    share: Share
    loops: tuple[SpanEntry, ...]
    groups: tuple[tuple[SpanEntry, ...], ...]
    halves: int
    flops: int | None
    operands: tuple[OperandEntry, ...]
    by_block: ByBlock = "no"
    shares: bool = False
    tile: tuple[int, int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a program for the runtime.

    Attributes:
        target: ``cpu``, ``cuda`` or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        planning_extents: extents for which it was planned, by base space.
        spaces: all spaces; parts precede the spaces that join them.
        tensors: arguments, then results, in order.
        host_constant: host program of the constant phase, which runs once for a bound program.
        host_volatile: host program of the volatile phase, which runs at each call.
        constant_positions: positions, in live ranges of buffers, of the constant phase.
        tight: arrays in an arena start at any element; else on cache lines.
        touches: elements of arguments and results that a program with parts reads and writes.
        statements: statements of the volatile phase, for predictions of time.
        machine: constants of these predictions, by name.
        tf32: whether products of float32 may round their factors to TF32.
    """

    name: str
    tcgen_version: str
    target: str
    dtype: str
    memory_limit: int | None
    planning_extents: tuple[tuple[str, int], ...]
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[KernelEntry, ...]
    host_constant: tuple[Host, ...]
    host_volatile: tuple[Host, ...]
    constant_positions: int
    tight: bool
    parts: Parts | None
    touches: tuple[TouchEntry, ...]
    statements: tuple[StatementEntry, ...]
    machine: tuple[tuple[str, int], ...]
    tf32: bool = False

    @property
    def reuses_memory(self) -> bool:
        """Whether the pool may hold released arrays for the next call."""
        return self.memory_limit is None and not self.tight

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the base spaces: the order of the extents that kernels take."""
        return tuple(s.name for s in self.spaces if not s.parts)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Results, in order."""
        return tuple(t for t in self.tensors if t.role is Role.OUTPUT)

    @property
    def constant_outputs(self) -> tuple[Tensor, ...]:
        """Results that the constant phase computes."""
        kernels = (k for k in self.kernels if self.is_constant(k.live))
        names = {name for kernel in kernels for name in kernel.writes}
        written = {b.source for b in self.buffers if b.place == "caller" and b.name in names}
        return tuple(t for t in self.outputs if t.name in written)

    @property
    def constant_bases(self) -> tuple[str, ...]:
        """Base spaces on whose extents the constant phase and its results depend."""
        host = tuple(host_items(self.host_constant))
        fetched = {item.buffer for item in host if isinstance(item, Fetch)}
        names = {s for k in self.kernels if self.is_constant(k.live) for s in k.spaces}
        spaces = {item.var.space for item in host if isinstance(item, HostLoop)}
        spaces.update(s for t in self.constant_outputs for s in t.spaces)
        for buffer in self.buffers:
            if buffer.name in fetched:
                spaces.update(buffer.spaces)
            elif buffer.place != "caller" and self.is_constant(buffer.live):
                spaces.update(axis.space for axis in buffer.axes if axis.length is None)
        used = names | {base.name for space in spaces for base in space.bases}
        return tuple(base for base in self.bases if base in used)

    def is_constant(self, live: tuple[int, int]) -> bool:
        """Whether a live range begins in the constant phase."""
        return live[0] < self.constant_positions

    def bases_of(self, space: str) -> tuple[str, ...]:
        """Names of the base spaces of a space, in order."""
        return tuple([b.name for b in next(s for s in self.spaces if s.name == space).bases])

    def extent(self, space: str, extents: Mapping[str, int]) -> int:
        """Extent of a base or joined space."""
        return sum([extents[base] for base in self.bases_of(space)])


def array_bytes(entry: Tensor | Buffer, manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Bytes of a tensor's array or of a buffer."""
    if isinstance(entry, Buffer):
        return buffer_bytes(entry, extents)
    dtype = element_type(entry, manifest.dtype)
    return BY_NAME[dtype].itemsize * prod(stored_shape(entry, extents))


def packed_run(pair: Packing, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The smallest run of a packed axis with all elements of some ranges of its logical axes.

    Example:
        >>> packed_run(Packing(0), ((2, 4), (0, 1)))
        (3, 10)
    """
    if any(start >= stop for start, stop in ranges):
        return 0, 0
    # The largest position of an element, which is stored first, is in this range.
    low, high = max(start for start, _ in ranges), max(stop for _, stop in ranges)
    return pair.values(low), pair.values(high)


def launches(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Launches of the volatile phase; the second pass of a GPU kernel counts with the kernel."""
    return _Counter(manifest, extents).count(manifest.host_volatile, {})


def constant_launches(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Launches of the constant phase, which a bound program runs once."""
    return _Counter(manifest, extents).count(manifest.host_constant, {})


class _Counter:
    """Counts the launches of host loops without walking through their iterations."""

    def __init__(self, manifest: Manifest, extents: Mapping[str, int]) -> None:
        self.manifest, self.extents = manifest, extents
        self.known: dict[tuple[int, int], int] = {}  # launches by (loop, trip count)

    def count(self, items: tuple[Host, ...], last: Mapping[str, int]) -> int:
        """Launches of items, at the current iteration, ``last``, of each loop around them."""
        total = 0
        for item in items:
            match item:
                case HostLoop():
                    total += self._loop(item, last)
                case Launch():
                    total += 1
                case Fetch():
                    pass
        return total

    def _loop(self, loop: HostLoop, last: Mapping[str, int]) -> int:
        var = loop.var
        extent = self.manifest.extent(var.space.name, self.extents)
        trips = -(-extent // (var.tile or 1))
        if var.below is not None:
            trips = min(trips, last[var.below] + 1)
        bounds = _bounds(loop.body)
        if var.name not in bounds:
            return trips * self.count(loop.body, last)
        if not bounds <= {var.name}:  # an outer loop bounds one inside as well
            return sum(self.count(loop.body, {**last, var.name: n}) for n in range(trips))
        if (id(loop), trips) not in self.known:
            counts = (self.count(loop.body, {var.name: n}) for n in range(trips))
            self.known[id(loop), trips] = sum(counts)
        return self.known[id(loop), trips]


def _bounds(items: tuple[Host, ...]) -> set[str]:
    """Variables of outer loops that bound loops in some items."""
    loops = [item.var for item in host_items(items) if isinstance(item, HostLoop)]
    return {v.below for v in loops if v.below is not None} - {v.name for v in loops}
