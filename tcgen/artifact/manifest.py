"""The manifest of a compiled program as plain data: its arrays, memory, kernels and host program.

The compiler writes it and the runtime reads it. It imports no level of the compiler and no library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol, TypeAlias, TypeVar

from ..simplices import stored_values
from .grid import GridEntry
from .parts import PartsEntry, StatementEntry
from .product import ProductEntry

SOURCES = {"cpu": "kernels.c", "cuda": "kernels.cu", "numpy": "kernels.py"}  # file by target


@dataclass(frozen=True, slots=True)
class SpaceEntry:
    """A space; ``parts`` names the spaces that it joins, which precede it."""

    name: str
    extent: int | None
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SymmetryEntry:
    """``T[x[perm]] == sign * T[x]``, conjugated with ``conj``."""

    perm: tuple[int, ...]
    sign: int
    conj: bool


@dataclass(frozen=True, slots=True)
class PackingEntry:
    """``count`` logical axes from ``first`` on, stored as one axis of their distinct values."""

    first: int
    antisymmetric: bool
    count: int = 2

    @property
    def axes(self) -> range:
        """The logical axes."""
        return range(self.first, self.first + self.count)

    def values(self, extent: int) -> int:
        """The number of stored values of axes of an extent."""
        return stored_values(extent, self.count, self.antisymmetric)


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """An argument or a result: role is ``input``, ``generated`` or ``output``.

    ``order`` lists the logical axes as the caller's array has them; ``default`` is an exact number
    as text, for scalars that may be left out. The array of a tensor with ``gaps`` may be a part of
    a larger one: for each logical axis they name the base space whose extent counts the elements of
    the larger array between the end of the axis and its next start, or None. () for whole arrays.
    """

    name: str
    role: str
    spaces: tuple[str, ...]
    order: tuple[int, ...]
    packed: tuple[PackingEntry, ...]
    gaps: tuple[str | None, ...]
    dtype: str
    real: bool
    default: str | None
    accumulate: bool
    volatile: bool
    symmetry: tuple[SymmetryEntry, ...]

    @property
    def stored_rank(self) -> int:
        """Number of axes of the caller's array."""
        return len(self.order) - sum(pair.count - 1 for pair in self.packed)

    def stored(self) -> tuple[tuple[int, PackingEntry | None], ...]:
        """Axes of the caller's array: a logical axis, or the row axis of a packed pair."""
        return stored_axes(self.order, self.packed)


@dataclass(frozen=True, slots=True)
class BufferEntry:
    """Memory; the level of modules defines places, live ranges and ranks.

    ``lengths`` has None for the whole extent of the axis, else 1 or the tile.
    """

    name: str
    spaces: tuple[str, ...]
    lengths: tuple[int | None, ...]
    order: tuple[int, ...]
    dtype: str
    place: str
    tensor: str | None
    packed: tuple[PackingEntry, ...]
    live: tuple[int, int]
    keep: bool
    rank: int

    def stored(self) -> tuple[tuple[int, PackingEntry | None], ...]:
        """Physical axes, slowest first: a logical axis, or the row axis of a packed pair."""
        return stored_axes(self.order, self.packed)


class _PackedPair(Protocol):
    """A :class:`PackingEntry`, or the compiler's own record of a packed pair."""

    @property
    def axes(self) -> range: ...


_Pair = TypeVar("_Pair", bound=_PackedPair)


@cache
def stored_axes(
    order: tuple[int, ...], packed: tuple[_Pair, ...]
) -> tuple[tuple[int, _Pair | None], ...]:
    """Physical axes, slowest first: a logical axis, or the row axis of a packed pair.

    Example:
        >>> stored_axes((2, 0, 1), (PackingEntry(0, False),))
        ((2, None), (0, PackingEntry(first=0, antisymmetric=False, count=2)))
    """
    pairs = {axis: p for p in packed for axis in p.axes}
    axes: list[tuple[int, _Pair | None]] = []
    for axis in order:
        pair = pairs.get(axis)
        if pair is None or all(p is not pair for _, p in axes):
            axes.append((axis, pair))
    return tuple(axes)


ContractionEntry: TypeAlias = tuple[str, tuple[tuple[tuple[str, int | None], ...], ...], bool]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A generated function, or a call of a library.

    Attributes:
        name: of the kernel.
        symbol: name of the function in the source.
        host: host loop variables that it takes, in order.
        spaces: base spaces whose extents it needs.
        reads: buffers that it reads, of those that have an address outside the kernel.
        writes: buffers that it writes, of those that have an address outside the kernel.
        private: buffers of which each thread has one.
        live: first and last position of its statements.
        contractions: those that pack blocks: element type; space and tile of each variable of m, n
            and k; whether C is staged while A is read in place.
        grid: on a GPU, where each block has the private buffers.
        product: on a GPU, of a kernel that is a call of its library instead of a function; such a
            kernel has no grid.
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
    product: ProductEntry | None = None


@dataclass(frozen=True, slots=True)
class LoopEntry:
    """A loop on the host over elements or tiles; with ``below`` up to that variable's value."""

    kind: Literal["loop"]
    variable: str
    space: str
    tile: int | None
    below: str | None
    body: tuple[HostEntry, ...]


@dataclass(frozen=True, slots=True)
class LaunchEntry:
    """Run a kernel."""

    kind: Literal["launch"]
    kernel: str


@dataclass(frozen=True, slots=True)
class FetchEntry:
    """Ask for a tile of a generated input; for each axis its first element's variable, or None."""

    kind: Literal["fetch"]
    buffer: str
    ranges: tuple[str | None, ...]


HostEntry: TypeAlias = LoopEntry | LaunchEntry | FetchEntry


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a program for the runtime.

    Attributes:
        name: of the program.
        tcgen_version: version that compiled it.
        target: ``cpu``, ``cuda`` or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        planning_extents: extents for which it was planned, by base space.
        spaces: parts precede the spaces that join them.
        tensors: arguments, then results, in order.
        buffers: all memory.
        kernels: generated functions.
        host_constant: host program of the constant phase, which runs once for a bound program.
        host_volatile: host program of the volatile phase, which runs at each call.
        constant_positions: positions, in live ranges of buffers, of the constant phase.
        tight: arrays in an arena start at any element; else on cache lines.
        parts: how the volatile phase is divided; None where it is whole.
        statements: of the volatile phase, for predictions of time.
        machine: constants of these predictions by name.
        tf32: products of float32 may round their factors to TF32.
    """

    name: str
    tcgen_version: str
    target: str
    dtype: str
    memory_limit: int | None
    planning_extents: tuple[tuple[str, int], ...]
    spaces: tuple[SpaceEntry, ...]
    tensors: tuple[TensorEntry, ...]
    buffers: tuple[BufferEntry, ...]
    kernels: tuple[KernelEntry, ...]
    host_constant: tuple[HostEntry, ...]
    host_volatile: tuple[HostEntry, ...]
    constant_positions: int
    tight: bool
    parts: PartsEntry | None
    statements: tuple[StatementEntry, ...]
    machine: tuple[tuple[str, int], ...]
    tf32: bool = False

    @property
    def reuses_memory(self) -> bool:
        """True where released arrays may wait in memory for the next call."""
        return self.memory_limit is None and not self.tight

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the base spaces: the order of the extents that kernels take."""
        return tuple(s.name for s in self.spaces if not s.parts)

    @property
    def outputs(self) -> tuple[TensorEntry, ...]:
        """Results, in order."""
        return tuple(t for t in self.tensors if t.role == "output")

    @property
    def constant_outputs(self) -> tuple[TensorEntry, ...]:
        """Results that the constant phase computes."""
        kernels = (k for k in self.kernels if self.is_constant(k.live))
        names = {name for kernel in kernels for name in kernel.writes}
        written = {b.tensor for b in self.buffers if b.place == "caller" and b.name in names}
        return tuple(t for t in self.outputs if t.name in written)

    @property
    def constant_bases(self) -> tuple[str, ...]:
        """Base spaces on whose extents the constant phase and what it leaves depend."""
        fetched = _fetched(self.host_constant)
        spaces = {s for k in self.kernels if self.is_constant(k.live) for s in k.spaces}
        spaces |= _loop_spaces(self.host_constant)
        spaces |= {s for t in self.constant_outputs for s in t.spaces}
        for buffer in self.buffers:
            if buffer.name in fetched:
                spaces |= set(buffer.spaces)
            elif buffer.place != "caller" and self.is_constant(buffer.live):
                pairs = zip(buffer.spaces, buffer.lengths, strict=True)
                spaces |= {space for space, length in pairs if length is None}
        used = {base for space in spaces for base in self.bases_of(space)}
        return tuple(base for base in self.bases if base in used)

    def is_constant(self, live: tuple[int, int]) -> bool:
        """True where a live range begins in the constant phase."""
        return live[0] < self.constant_positions

    def bases_of(self, space: str) -> tuple[str, ...]:
        """Base spaces of a space, in order."""
        entry = next(s for s in self.spaces if s.name == space)
        if not entry.parts:
            return (space,)
        return tuple(base for part in entry.parts for base in self.bases_of(part))

    def extent(self, space: str, extents: Mapping[str, int]) -> int:
        """Extent of a base or joined space."""
        return sum(extents[base] for base in self.bases_of(space))


def _loop_spaces(host: tuple[HostEntry, ...]) -> set[str]:
    """Spaces over which a host program loops."""
    loops = [item for item in host if isinstance(item, LoopEntry)]
    return {item.space for item in loops}.union(*(_loop_spaces(item.body) for item in loops))


def _fetched(host: tuple[HostEntry, ...]) -> set[str]:
    """Buffers that a host program fills with tiles of generated inputs."""
    own = {item.buffer for item in host if isinstance(item, FetchEntry)}
    return own.union(*(_fetched(item.body) for item in host if isinstance(item, LoopEntry)))
