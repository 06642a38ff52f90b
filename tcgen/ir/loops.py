"""Level 4: imperfectly nested loops over buffers; the only tree.

Lowering makes it; emission prints it, the interpreter and the numpy target execute it. A printer
decides nothing: the module fixes the order of loops, blocking, parallel loops, layouts, and which
statement is a matrix product. Extents are symbolic: ``N_o`` is a run-time argument.

Two kinds of loop: a :class:`Loop` is shared by the statements of its body; the band of a
statement holds that statement's own loops, outermost first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from .expr import Access, Expr
from .level import Level
from .reduction import Reduction
from .tensor import Packing, Space, Tensor

if TYPE_CHECKING:  # a program for the CPU does not load the mappings of GPUs
    from .thread_mapping import ThreadMapping


@dataclass(frozen=True, slots=True)
class LoopVar:
    """Variable of a shared loop.

    Attributes:
        name: unique name in the module.
        space: space of the values: 0 .. N-1, or 0, T, 2T, ... < N in a tile loop.
        tile: T, or None for an element loop.
        below: variable whose value this one never exceeds in a triangular loop. Its loop encloses
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


@dataclass(frozen=True, slots=True)
class Loop:
    """``for var: body``.

    ``parallel``: the iterations write disjoint elements of every buffer that is not private to the
    body, so they may run in any order and concurrently. ``vector``: so they do, and each iteration
    assigns single elements, so that the vector unit may run several at once.
    """

    var: LoopVar
    body: tuple[Stmt, ...]
    parallel: bool = False
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Zero:
    """Set all elements of a buffer to zero, or to the neutral element of another reduction.

    ``step`` is the one of the program that needs it.
    """

    buffer: str
    step: int | None = None
    reduction: Reduction = Reduction.SUM


@dataclass(frozen=True, slots=True)
class Assign:
    """``out (+)= coeff * orbit * expr`` for every point of the band.

    This is the form of copies, permutations, multiply-adds, element-wise maps and reductions.

    Attributes:
        out: target element. Band variables that it does not have are summed. For a packed buffer
            the band runs over the stored triangle only, without a diagonal that is not stored.
        expr: leaves are Access and Equal; an Access to a packed buffer reads through the triangle
            (sign and zero of antisymmetric axes included).
        coeff: exact number.
        accumulate: add to the target. Otherwise the target is overwritten, and summed band
            variables are innermost, after all variables of ``out``.
        band: own loops, outermost first.
        orbit: chains (i, j, ...) of triangular variables, i >= j >= ...: the value at each point is
            multiplied by its number of distinct arrangements; for bases of tiles, of the tiles.
        parallel: number of outermost band loops that may run in parallel (``out`` has all their
            variables); if ``out`` has no band variable, the band is a parallel reduction.
        block: two band variables to block against each other, or (): for a transposition, or for
            operands with different unit-stride axes. The sums of a block are formed together.
        step: step of the program that the statement belongs to; None in hand-written modules.
        reduction: combines the values of summed band variables, and with ``accumulate`` also the
            target's. Another one than the sum has the coefficient 1 and no orbit.
        tf32: the factors of a product of float32 may be rounded to TF32.
    """

    out: Access
    expr: Expr
    coeff: Fraction = Fraction(1)
    accumulate: bool = False
    band: tuple[BandVar, ...] = ()
    orbit: tuple[tuple[str, ...], ...] = ()
    parallel: int = 0
    block: tuple[str, ...] = ()
    step: int | None = None
    reduction: Reduction = Reduction.SUM
    tf32: bool = False


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


Stmt: TypeAlias = Loop | Zero | Assign | Gemm


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated function.

    Attributes:
        name: legal identifier.
        comment: equations, one a line, for the reader of the generated code.
        host_vars: variables of host loops that the body uses, passed as arguments.
        body: statements in order.
        mapping: thread mapping of a GPU kernel; None in modules for a CPU.
    """

    name: str
    comment: tuple[str, ...]
    host_vars: tuple[LoopVar, ...]
    body: tuple[Stmt, ...]
    mapping: ThreadMapping | None = None


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


@dataclass(frozen=True, slots=True)
class Parts:
    """How the volatile phase is divided: each part runs some iterations of its outermost loops.

    The iterations are numbered from 0 in the order in which they run. A part has the numbers
    ``first .. last - 1``, and the outputs of parts that have each number once add up to those of
    the whole phase: every output is zero before a part unless it adds to the caller's array.
    Statements outside of the chain belong to every part, except those of ``once``.

    Attributes:
        chain: variables of the outermost loops, each directly inside the one before: loops of the
            host, or of one kernel. Their iterations write elements of their own, or add.
        cleared: buffers, other than outputs, that iterations of the chain add to or write, and
            later statements read: a part sets them to zero before the chain.
        once: kernels whose results belong only to the part with iteration 0.
    """

    chain: tuple[LoopVar, ...]
    cleared: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module(Level):
    """A whole program ready to print.

    Attributes:
        name: name of the system.
        dtype: ``float64``, ``float32`` or ``complex128``.
        spaces: parts before the spaces that join them.
        tensors: inputs and outputs, in order: the call's arguments and results.
        buffers: all memory.
        kernels: generated functions.
        host_constant: host program of the constant phase, run once for a bound program.
        host_volatile: host program of each call.
        tight: arrays in the arena start at any element, to save the bytes between them; otherwise
            they start on cache lines.
        parts: division of the volatile phase, or None.
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
    parts: Parts | None = None

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return self.derived("by name", self._by_name)[0][name]

    def position(self, kernel: Kernel) -> int:
        """The position of a kernel among the module's."""
        return self.derived("by name", self._by_name)[1][kernel.name]

    def _by_name(self) -> tuple[dict[str, Buffer], dict[str, int]]:
        """Buffers by name, and the positions of kernels by name."""
        return (
            {b.name: b for b in self.buffers},
            {kernel.name: n for n, kernel in enumerate(self.kernels)},
        )
