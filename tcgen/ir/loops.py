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

from ..records.loops import Access
from ..records.loops import Axis as Axis
from ..records.loops import BandVar as BandVar
from ..records.loops import Buffer as Buffer
from ..records.loops import Fetch as Fetch
from ..records.loops import Gemm as Gemm
from ..records.loops import Host as Host
from ..records.loops import HostLoop as HostLoop
from ..records.loops import Launch as Launch
from ..records.loops import LoopVar as LoopVar
from ..records.loops import PackingScheme as PackingScheme
from ..records.parts import Parts as Parts
from .expr import Expr
from .level import Level
from .reduction import Reduction
from .tensor import Space, Tensor

if TYPE_CHECKING:  # a program for the CPU does not load the mappings of GPUs
    from .thread_mapping import ThreadMapping


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


Stmt: TypeAlias = Loop | Zero | Assign | Gemm


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated function; its name is a legal identifier.

    ``comment`` has equations, one a line, for the reader of the generated code. ``host_vars`` are
    the variables of host loops that the body uses, passed as arguments. ``mapping`` is that of a
    kernel for a GPU; None in modules for a CPU.
    """

    name: str
    comment: tuple[str, ...]
    host_vars: tuple[LoopVar, ...]
    body: tuple[Stmt, ...]
    mapping: ThreadMapping | None = None


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
