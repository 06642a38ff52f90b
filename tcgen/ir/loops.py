"""Level 4: imperfectly nested loops over buffers; the only tree.

Lowering makes it; emission prints it, the interpreter and the numpy target execute it. Printers
decide nothing: loop order, blocking, parallel loops, layouts and which statement becomes a matrix
product are all written here. Extents stay symbolic: ``N_o`` is a run-time argument.

Two kinds of loop: a :class:`Loop` is shared by the statements of its body; the band of a
statement holds that statement's own loops, outermost first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from .expr import Access, Expr
from .level import Level
from .tensor import Packing, Space, Tensor
from .thread_mapping import Share


@dataclass(frozen=True, slots=True)
class LoopVar:
    """Variable of a shared loop.

    Attributes:
        name: unique in the module.
        space: element loop: takes 0 .. N-1. Tile loop: takes the tile's base 0, T, 2T, ... < N.
        tile: T, or None for an element loop.
        below: triangular: takes no value above that of that variable, which encloses it and is a
            loop over the same space by the same tile.
    """

    name: str
    space: Space
    tile: int | None = None
    below: str | None = None


@dataclass(frozen=True, slots=True)
class BandVar:
    """Variable of a statement's own loop.

    Takes 0 .. N-1, or, inside the tile loop ``base``, base .. min(base + tile, N) - 1.
    With ``below`` it is bounded by that variable's value, inclusive (a triangle).
    """

    name: str
    space: Space
    base: str | None = None
    tile: int | None = None
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """One logical axis of a buffer.

    Attributes:
        space: the tensor's space on this axis.
        length: None for the whole extent; else 1 (contracted) or the tile.
    """

    space: Space
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that statements read and write, C order of ``order``.

    Attributes:
        name: unique; the tensor's name where it holds one.
        axes: logical axes, as the subscripts of an Access count them.
        order: logical axes from slowest to fastest.
        dtype: ``float64``, ``float32`` or ``complex128``.
        place: ``caller`` (argument array), ``arena`` (one for the program), ``private`` (one for
            each thread of a kernel, on a GPU for each block: contracted arrays and scratch that
            live within one launch),
            ``register`` (a scalar variable inside a kernel; its axes all have length 1),
            ``tile`` (target of a GPU's tiles that only their own epilogue reads: each thread keeps
            its elements in registers, and no memory holds it).
        tensor: the tensor it holds, or None for scratch made by lowering.
        packed: pairs of axes stored as triangles (caller buffers and scratch).
        live: first and last position (of statements and fetches, in the order of the text, constant
            phase first; see :func:`~tcgen.ir.loop_analysis.positions`) at which it holds memory,
            inclusive, over all of a loop that it outlives. Memory is reused between disjoint lives.
        keep: written in the constant phase and read in the volatile one: survives between calls.
        rank: place in an order of layout that is good under the planning extents.
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


@dataclass(frozen=True, slots=True)
class Loop:
    """``for var: body``.

    ``parallel``: the iterations write disjoint elements of everything that is not private to the
    body, so they may run in any order and at once.
    """

    var: LoopVar
    body: tuple[Stmt, ...]
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Zero:
    """Set a whole buffer to zero (the whole of its contracted extent)."""

    buffer: str


@dataclass(frozen=True, slots=True)
class Assign:
    """``out (+)= coeff * orbit * expr`` for every point of the band.

    Copies, permutations, multiply-adds, element-wise maps and reductions are all this.

    Attributes:
        out: target element. Band variables that it does not hold are summed. Of a packed buffer
            the band walks the stored triangle only; the diagonal, where none is stored, is skipped.
        expr: leaves are Access and Equal; an Access to a packed buffer reads through the triangle
            (sign and zero of an antisymmetric pair included).
        coeff: exact number.
        accumulate: add to what is there. Without it the target is overwritten: summed band
            variables then stand innermost, after all variables of ``out``.
        band: own loops, outermost first.
        orbit: chains (i, j, ...) of triangular variables, i >= j >= ...: each point is multiplied
            by its number of distinct arrangements; for bases of tiles, by that of the tiles.
        parallel: that many outermost band loops may run at once (all of them in ``out``); where
            ``out`` holds no band variable at all, the band is a parallel reduction.
        block: two band variables to block against each other (a transposition, or operands that lie
            across each other), or (). Sums of all points of a block are then formed together.
    """

    out: Access
    expr: Expr
    coeff: Fraction = Fraction(1)
    accumulate: bool = False
    band: tuple[BandVar, ...] = ()
    orbit: tuple[tuple[str, ...], ...] = ()
    parallel: int = 0
    block: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the generated contraction kernel reads the operands of a product.

    Rows of a register tile are vector lanes: they come from the group m. Columns come from n.
    Blocks of the operands are packed in the order in which tiles use them, which turns them, or are
    read where they lie. Tiles are stored as they are where the last variable of m is the target's
    stride-1 one, and element by element where it is not, unless they are staged.

    Attributes:
        pack_a: pack blocks of ``a``; without it panels whose rows have stride 1 are read in place.
        pack_b: pack blocks of ``b``; without it its elements are read in place, one by one.
        stage: tiles go through a buffer in the cache, which is turned as it is stored. The target's
            stride-1 variable is the last one of n, with ``a`` packed, or any one of m, of which
            the last is the stride-1 variable of ``a``, which is read in place.
    """

    pack_a: bool = True
    pack_b: bool = True
    stage: bool = False

    @property
    def stages_rows(self) -> bool:
        """Whether rows of ``a`` are read in place and tiles are staged."""
        return self.stage and not self.pack_a


@dataclass(frozen=True, slots=True)
class Gemm:
    """``out[batch, m, n] (+)= coeff * sum_k a[batch, m, k] * b[batch, k, n]``, matrix products.

    Without a scheme the BLAS computes it, and the operands lie right: in each one the variables of
    a group are neighbouring physical axes in the group's order, every variable but the first of a
    group runs over the whole length of its axis, and one of the operand's two groups ends on the
    fastest axis with stride 1 (axes of length 1 aside). With a scheme the generated kernel computes
    it, from operands in any layout, each variable on one axis. All have one dtype. No buffer is
    packed, but with a scheme a row (column) variable that stays below the one before it in its
    group walks, together with that one, the packed pair of each operand that holds them. An empty
    group is one row, one column or one product. A batch variable stands in ``out`` and in at least
    one operand; the other is then the same for all.
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
    scheme: Scheme | None = None


Stmt: TypeAlias = Loop | Zero | Assign | Gemm


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated function.

    Attributes:
        name: legal identifier.
        comment: equations, one a line, for the reader of the generated code.
        host_vars: variables of host loops that the body uses, passed as arguments.
        body: statements in order.
        share: how a GPU's blocks and threads share the work; None in modules for a CPU.
    """

    name: str
    comment: tuple[str, ...]
    host_vars: tuple[LoopVar, ...]
    body: tuple[Stmt, ...]
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A loop that runs on the host, around launches."""

    var: LoopVar
    body: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel; its host variables have the values of the enclosing host loops."""

    kernel: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask the caller for one tile of a generated input, into ``buffer`` (C order, logical axes).

    ``ranges`` has for each axis the host variable whose element or tile is wanted, or None for the
    whole axis. A shorter last tile arrives as a smaller C-contiguous array at the buffer's start
    along the tiled axis: it is copied so that the buffer keeps its own strides.
    """

    buffer: str
    ranges: tuple[LoopVar | None, ...]


Host: TypeAlias = HostLoop | Launch | Fetch


@dataclass(frozen=True, slots=True)
class Module(Level):
    """A whole program ready to print.

    Attributes:
        name: of the system.
        dtype: ``float64``, ``float32`` or ``complex128``.
        spaces: parts before the spaces that join them.
        tensors: inputs and outputs, in order: the call's arguments and results.
        buffers: all memory.
        kernels: generated functions.
        host_constant: what runs once for a bound program.
        host_volatile: what runs at each call.
        tight: arrays in the arena start at any element, so that it takes no more bytes than they
            do; else on cache lines.
    """

    name: str
    dtype: str
    spaces: tuple[Space, ...]
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    host_constant: tuple[Host, ...]
    host_volatile: tuple[Host, ...]
    tight: bool = False

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(b for b in self.buffers if b.name == name)
