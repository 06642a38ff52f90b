"""Variables, buffers, matrix products and the host program: level 4 without kernel bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

from ..dtypes import BY_NAME
from .tensors import Packing, Space, Tensor, stored_axes


@dataclass(frozen=True, slots=True)
class Subscript:
    """Position on one axis of a buffer: ``variable - base + extents of the spaces in offset``.

    Attributes:
        variable: a loop or band variable, or None for position 0 (a contracted element axis).
        base: variable of the tile loop whose base is subtracted (axis contracted to a tile).
        offset: base spaces of the axis before the part over which the variable runs.
    """

    variable: str | None
    base: str | None = None
    offset: tuple[Space, ...] = ()

    def __str__(self) -> str:
        text = self.variable or "0"
        if self.base:
            text += f"-{self.base}"
        for space in self.offset:
            text += f"+N_{space.name}"
        return text


@dataclass(frozen=True, slots=True)
class Access:
    """One element of a buffer, a subscript for each logical axis of the buffer."""

    buffer: str
    subscripts: tuple[Subscript, ...] = ()

    def __str__(self) -> str:
        if not self.subscripts:
            return self.buffer
        return f"{self.buffer}[{','.join(str(s) for s in self.subscripts)}]"

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of the subscripts, each once, in order."""
        return tuple(dict.fromkeys(s.variable for s in self.subscripts if s.variable))


@dataclass(frozen=True, slots=True)
class LoopVar:
    """Variable of a shared loop; its name is unique in the module.

    Takes 0 .. N-1, or, in a loop over tiles of T elements, 0, T, 2T, ... < N.
    With ``below`` it never exceeds the value of that variable (a triangle), whose loop encloses
    this one and runs over the same space by the same tile.
    """

    name: str
    space: Space
    tile: int | None = None
    below: str | None = None


@dataclass(frozen=True, slots=True)
class BandVar:
    """Variable of a statement's own loop.

    Takes 0 .. N-1, or, inside the tile loop ``base``, base .. min(base + tile, N) - 1.
    With ``below`` it does not exceed the value of that variable (a triangle); if it is ``strict``,
    it stays below it.
    """

    name: str
    space: Space
    base: str | None = None
    tile: int | None = None
    below: str | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """One logical axis of a buffer; ``length``: None if whole, else 1 (contracted) or the tile."""

    space: Space
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that statements read and write, C order of ``order``.

    Attributes:
        name: unique name; that of the tensor it holds, if it holds one.
        axes: logical axes, as the subscripts of an Access count them.
        order: logical axes from slowest to fastest.
        dtype: ``float64``, ``float32`` or ``complex128``.
        place: ``caller`` (argument array), ``arena`` (one for the program), ``private`` (one for
            each thread of a kernel, on a GPU for each block: contracted arrays and scratch that
            are live within one launch), ``register`` (a scalar variable inside a kernel; its axes
            all have length 1), ``tile`` (target of a GPU's tiles that only their own epilogue
            reads: its elements are in registers of the threads and never in memory).
        tensor: the tensor it holds, or None for scratch made by lowering.
        packed: axes stored as one axis of their distinct values.
        live: first and last position at which it needs memory, inclusive. Positions number the
            statements and fetches in the order of the text, constant phase first
            (:func:`~tcgen.ir.loop_analysis.positions`). A buffer that outlives an iteration of a
            loop is live in the whole loop. Buffers with disjoint lives may use the same memory.
        keep: written in the constant phase and read in the volatile one; stored between calls.
        rank: place in the order in which offsets are assigned; chosen for the planning extents.
    """

    name: str
    axes: tuple[Axis, ...]
    order: tuple[int, ...]
    dtype: str
    place: str
    tensor: Tensor | None = None
    packed: tuple[Packing, ...] = ()
    live: tuple[int, int] = (0, 0)
    keep: bool = False
    rank: int = 0

    @property
    def source(self) -> str:
        """Name of the argument or result that it holds; its own name if it is scratch."""
        return self.name if self.tensor is None else self.tensor.source

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Spaces of the logical axes."""
        return tuple([axis.space for axis in self.axes])

    def stored(self) -> tuple[tuple[int, Packing | None], ...]:
        """Physical axes, slowest first: a logical axis, or the row axis of a packed pair."""
        return stored_axes(self.order, self.packed)


def stored_shape(entry: Tensor | Buffer, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the array in memory: stored order, packed axes are one axis."""
    shape = []
    spaces = entry.spaces
    for axis, pair in entry.stored():
        n = entry.axes[axis].length if isinstance(entry, Buffer) else None
        if n is None:
            n = spaces[axis].extent_in(extents)
        shape.append(n if pair is None else pair.values(n))
    return tuple(shape)


def buffer_bytes(buffer: Buffer, extents: Mapping[str, int]) -> int:
    """Bytes of a buffer."""
    return BY_NAME[buffer.dtype].itemsize * prod(stored_shape(buffer, extents))


@dataclass(frozen=True, slots=True)
class PackingScheme:
    """How the generated contraction kernel reads the operands of a product.

    The lanes of a vector register run over the group m. Blocks of an operand are either packed into
    micro-panels, in the order in which the micro-kernel reads them, or read in place. A register
    tile is stored by vectors if the last variable of m is the unit-stride variable of the target,
    and otherwise element by element, unless it is staged.

    Attributes:
        pack_a: pack blocks of ``a``; otherwise panels with unit stride along m are read in place.
        pack_b: pack blocks of ``b``; otherwise its elements are read in place, one by one.
        stage: tiles are collected in a buffer in the cache and transposed as it is stored. The
            target's unit-stride variable is the last one of n and ``a`` is packed, or it is any
            one of m, and the last one of m is the unit-stride variable of ``a``, read in place.
    """

    pack_a: bool = True
    pack_b: bool = True
    stage: bool = False

    @property
    def stages_rows(self) -> bool:
        """True if tiles are staged and ``a`` is read in place."""
        return self.stage and not self.pack_a


@dataclass(frozen=True, slots=True)
class Gemm:
    """``out[batch, m, n] (+)= coeff * sum_k a[batch, m, k] * b[batch, k, n]``, matrix products.

    Without a scheme the BLAS computes it, and the layouts of the operands must fit: the variables
    of a group are adjacent physical axes in the group's order, each variable but the first of a
    group runs over its whole axis, and one of the operand's two groups ends on the unit-stride axis
    (apart from axes of length 1). With a scheme the generated kernel computes it from operands in
    any layout, with each variable on one axis. All operands have the same dtype. No buffer is
    packed, with one exception: with a scheme, variables of m, n or k of which each is below the one
    before it run together over packed axes of each operand that has them. An empty group has
    extent 1. A batch variable is in ``out`` and in at least one operand; an operand
    without it is the same for all its values. ``step`` is that of an :class:`Assign`.
    """

    out: Access
    a: Access
    b: Access
    batch: tuple[BandVar, ...]
    m: tuple[BandVar, ...]
    n: tuple[BandVar, ...]
    k: tuple[BandVar, ...]
    coeff: Fraction = Fraction(1)
    accumulate: bool = False
    parallel: bool = False
    scheme: PackingScheme | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop that runs on the host, around launches."""

    var: LoopVar
    body: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel with the values of the enclosing host loops as its host variables."""

    kernel: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask the caller for one tile of a generated input, into ``buffer`` (C order, logical axes).

    ``ranges`` has for each axis the host variable whose element or tile is fetched, or None for the
    whole axis. A shorter last tile arrives as a smaller C-contiguous array at the start of the
    buffer and is then copied to the buffer's own strides.
    """

    buffer: str
    ranges: tuple[LoopVar | None, ...]


Host: TypeAlias = HostLoop | Launch | Fetch


def host_items(host: tuple[Host, ...]) -> Iterator[Host]:
    """Steps of a host program, in order; those inside a loop follow the loop."""
    for item in host:
        yield item
        if isinstance(item, HostLoop):
            yield from host_items(item.body)


def launched(host: tuple[Host, ...]) -> Iterator[str]:
    """Names of the kernels that a host program launches, in the order of its text."""
    return (item.kernel for item in host_items(host) if isinstance(item, Launch))
