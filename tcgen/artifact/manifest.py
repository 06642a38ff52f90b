"""The manifest of a compiled program as plain data: what to run, on which memory.

The bridge between compiler and runtime. It knows no level of the compiler and no library, and it
travels with every artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from .grid import GridEntry


@dataclass(frozen=True, slots=True)
class SpaceEntry:
    """A space; ``parts`` names the spaces it joins, which stand before it."""

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
    """Logical axes ``first`` and ``first + 1`` stored as a lower triangle."""

    first: int
    antisymmetric: bool


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """An argument or a result: role is ``input``, ``generated`` or ``output``.

    ``order`` lists the logical axes as the caller's array has them; ``default`` is an exact number
    as text, for scalars that may be left out. The array of a tensor with ``gaps`` may be a part of
    a larger one: they name for each logical axis the base space of what lies behind its own part
    there, or None; () for arrays by themselves.
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
        return len(self.order) - len(self.packed)

    def stored(self) -> tuple[tuple[int, PackingEntry | None], ...]:
        """Axes of the caller's array: a logical axis, or the row axis of a packed pair."""
        return _stored(self.order, self.packed)


@dataclass(frozen=True, slots=True)
class BufferEntry:
    """Memory; places, lives and ranks as the level of modules defines them.

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
        return _stored(self.order, self.packed)


@cache
def _stored(
    order: tuple[int, ...], packed: tuple[PackingEntry, ...]
) -> tuple[tuple[int, PackingEntry | None], ...]:
    pairs = {p.first: p for p in packed} | {p.first + 1: p for p in packed}
    axes: list[tuple[int, PackingEntry | None]] = []
    for axis in order:
        pair = pairs.get(axis)
        if pair is None or all(p is not pair for _, p in axes):
            axes.append((axis, pair))
    return tuple(axes)


ContractionEntry: TypeAlias = tuple[str, tuple[tuple[tuple[str, int | None], ...], ...], bool]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A generated function.

    Attributes:
        name: of the kernel.
        symbol: of the function in the source.
        host: host loop variables it takes, in order.
        spaces: base spaces whose extents it needs.
        reads: buffers it reads, of those that have an address outside the kernel.
        writes: buffers it writes, likewise.
        private: buffers of which there is one for each thread.
        live: first and last position of its statements.
        contractions: that pack blocks: type; space and tile of rows, columns, summed variables;
            whether rows are staged.
        grid: on a GPU; private buffers then belong to a block.
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


@dataclass(frozen=True, slots=True)
class LoopEntry:
    """A loop on the host: over elements, or over tiles; ``below``: up to that variable."""

    kind: str
    variable: str
    space: str
    tile: int | None
    below: str | None
    body: tuple[HostEntry, ...]


@dataclass(frozen=True, slots=True)
class LaunchEntry:
    """Run a kernel."""

    kind: str
    kernel: str


@dataclass(frozen=True, slots=True)
class FetchEntry:
    """Ask for a tile of a generated input: a host variable or None for each axis."""

    kind: str
    buffer: str
    ranges: tuple[str | None, ...]


HostEntry: TypeAlias = LoopEntry | LaunchEntry | FetchEntry
_KINDS = {"loop": LoopEntry, "launch": LaunchEntry, "fetch": FetchEntry}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything the runtime has to know.

    Attributes:
        name: of the program.
        tcgen_version: that made it.
        target: ``cpu``, ``cuda`` or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        planning_extents: extents the plan was made for, by base space.
        spaces: parts before the spaces that join them.
        tensors: arguments, then results, in order.
        buffers: all memory.
        kernels: generated functions.
        host_constant: what runs once for a bound program.
        host_volatile: what runs at each call.
        constant_positions: number of positions, in the lives of buffers, of the constant phase.
        tight: arrays in an arena start at any element; else on cache lines.
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

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the base spaces: the order of the extents that kernels take."""
        return tuple(s.name for s in self.spaces if not s.parts)

    def bases_of(self, space: str) -> tuple[str, ...]:
        """Base spaces of a space, in order."""
        entry = next(s for s in self.spaces if s.name == space)
        if not entry.parts:
            return (space,)
        return tuple(base for part in entry.parts for base in self.bases_of(part))

    def extent(self, space: str, extents: Mapping[str, int]) -> int:
        """Extent of a base or joined space."""
        return sum(extents[base] for base in self.bases_of(space))


def encode(value: Any) -> Any:
    """An entry as plain data: dictionaries, lists and what JSON has."""
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [encode(v) for v in value]
    return value


def decode(kind: Any, value: Any, where: str) -> Any:
    """``value`` as the annotated type ``kind``, exactly: no missing, no extra, no other type."""
    if get_origin(kind) is UnionType:
        options = get_args(kind)
        if value is None and NoneType in options:
            return None
        if LoopEntry in options:
            chosen = _KINDS.get(value["kind"])
            if chosen is None:
                raise TypeError(f"{where}: unknown kind {value['kind']!r}")
            return decode(chosen, value, where)
        return decode(next(o for o in options if o is not NoneType), value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{where}: a list is expected")
        inner = get_args(kind)
        kinds = (inner[0],) * len(value) if inner[1:] == (...,) else inner
        if len(kinds) != len(value):
            raise TypeError(f"{where}: {len(kinds)} items are expected")
        return tuple(
            decode(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True))
        )
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or set(value) != set(hints):
            raise TypeError(f"{where}: the fields {', '.join(hints)} are expected")
        make: Callable[..., Any] = kind
        return make(**{n: decode(h, value[n], f"{where}.{n}") for n, h in hints.items()})
    if type(value) is not kind:
        raise TypeError(f"{where}: {kind.__name__} is expected")
    return value
