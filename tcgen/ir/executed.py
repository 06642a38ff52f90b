"""Work of generated code: flops and bytes of every statement of a module.

Reads level 4. Reports, pages and the comments of kernels print these counts; counters in the
interpreter and in generated C give the same numbers.

Flops: a product of two operands counts 2 at each point of its loops, a multiply and an add, for
matrix products and loops alike, whether or not an operand is conjugated; padding of micro-tiles is
not counted. Any other statement counts the operations of its expression, a coefficient that is not
1 or -1, an addition to its target, and the weights of a triangular sum. Copies count nothing, and
neither does the addition of scratch to its target, since the product term that made it counted that
addition.

Bytes: each reference of a statement counts the elements that it reaches in a launch once, an
element that is added to once for reading and once for writing. Arrays that live within one launch,
registers and packed blocks of products do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .cost import ZERO, Poly
from .expr import Access, operation_count, two_factors
from .iteration_domain import Domain, Range, distinct, points, polynomial
from .loop_analysis import band_of, operands_of, statements
from .loops import (
    Assign,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    LoopVar,
    Module,
    Zero,
)
from .tensor import Packing, Space


@dataclass(frozen=True, slots=True)
class Amount:
    """``each`` for every point of a domain: flops, or bytes."""

    each: int
    domain: Domain


@dataclass(frozen=True, slots=True)
class StatementWork:
    """The work of one statement of a kernel, in all launches of a phase.

    ``step`` is the id of its step; None in hand-written modules. ``constant`` work is done once for
    a bound program, not in each call. ``flops`` counts each point of its loops; None if it has
    none. ``read`` and ``written`` count the bytes of each distinct element of each reference.
    """

    kernel: str
    step: int | None
    constant: bool
    flops: Amount | None
    read: tuple[Amount, ...]
    written: tuple[Amount, ...]

    @property
    def amounts(self) -> tuple[Amount, ...]:
        """Flops and bytes, one after the other."""
        flops = () if self.flops is None else (self.flops,)
        return (*flops, *self.read, *self.written)


@dataclass(frozen=True, slots=True)
class Executed:
    """The work of a module, statement by statement, in the order of its text."""

    statements: tuple[StatementWork, ...] = ()

    def by_kernel(self) -> dict[str, list[StatementWork]]:
        """The statements of each kernel."""
        kernels: dict[str, list[StatementWork]] = {}
        for work in self.statements:
            kernels.setdefault(work.kernel, []).append(work)
        return kernels


@dataclass(frozen=True, slots=True)
class Counts:
    """Flops, and bytes read and written, at given extents."""

    flops: int = 0
    read: int = 0
    written: int = 0

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of a module at given extents: of each call, and ``once`` for a bound program.

    ``steps`` has the counts by step id, in all launches of its phase; ``constant_steps`` are the
    ids of those that are executed once.
    """

    per_call: Counts
    once: Counts
    steps: Mapping[int, Counts]
    constant_steps: frozenset[int]


def totals(executed: Executed, extents: Mapping[str, int]) -> Totals:
    """The counts of a module at extents of the base spaces."""
    known: dict[Amount, int] = {}

    def value(amounts: Iterable[Amount]) -> int:
        total = 0
        for amount in amounts:
            if amount not in known:
                known[amount] = amount.each * points(amount.domain, extents)
            total += known[amount]
        return total

    phases = {True: [0, 0, 0], False: [0, 0, 0]}
    steps: dict[int, list[int]] = {}
    constant = set()
    for work in executed.statements:
        counts = (
            0 if work.flops is None else value((work.flops,)),
            value(work.read),
            value(work.written),
        )
        sums = [phases[work.constant]]
        if work.step is not None:
            sums.append(steps.setdefault(work.step, [0, 0, 0]))
            if work.constant:
                constant.add(work.step)
        for total in sums:
            for n, count in enumerate(counts):
                total[n] += count
    return Totals(
        Counts(*phases[False]),
        Counts(*phases[True]),
        {step: Counts(*counts) for step, counts in steps.items()},
        frozenset(constant),
    )


def as_polynomial(amounts: Iterable[Amount]) -> Poly:
    """The sum of amounts in the extents, exact if tiles divide them."""
    total = ZERO
    for amount, times in Counter(amounts).items():
        total = total + polynomial(amount.domain) * Poly.of(times * amount.each)
    return total


def executed_by(module: Module) -> Executed:
    """The work of a module, statement by statement; counted once for a module."""
    return module.derived("executed", lambda: _executed_by(module))


def _executed_by(module: Module) -> Executed:
    kernels = {kernel.name: kernel for kernel in module.kernels}
    buffers = {buffer.name: buffer for buffer in module.buffers}
    found = [
        work
        for host, constant in ((module.host_constant, True), (module.host_volatile, False))
        for name, around in _launches(host, ())
        for work in _kernel(kernels[name], buffers, around, constant=constant)
    ]
    return Executed(tuple(found))


def _kernel(
    kernel: Kernel, buffers: Mapping[str, Buffer], around: tuple[LoopVar, ...], *, constant: bool
) -> Iterator[StatementWork]:
    """The work of each statement of a kernel that is launched in some loops of the host."""
    held = _target_in_registers(kernel)
    for n, stmt in enumerate(kernel.body):
        skipped = frozenset() if held is None else held.skipped(n)
        for inner, own in statements((stmt,)):
            loops = (*around, *(loop.var for loop in own))
            yield _Counter(buffers, len(around)).work(kernel.name, inner, loops, skipped, constant)


@dataclass(frozen=True, slots=True)
class _Target:
    """An array that a kernel of a GPU accesses once, from the first to the last statement."""

    name: str
    last: int

    def skipped(self, n: int) -> frozenset[tuple[str, str]]:
        """References of the n-th statement that read or write registers only."""
        reads = {("read", self.name)} if n > 0 else set()
        return frozenset(reads | ({("written", self.name)} if n < self.last else set()))


def _target_in_registers(kernel: Kernel) -> _Target | None:
    """The target of threadblock tiles, which threads hold over all statements."""
    if kernel.mapping is None:
        return None
    from .thread_mapping import Tiles  # noqa: PLC0415  (loaded for GPUs)

    if not isinstance(kernel.mapping, Tiles):
        return None
    written = [s.out.buffer for s in kernel.body if isinstance(s, Assign)]
    return _Target(written[0], max(n for n, name in enumerate(written) if name == written[0]))


def _launches(
    host: tuple[Host, ...], around: tuple[LoopVar, ...]
) -> Iterator[tuple[str, tuple[LoopVar, ...]]]:
    """Launched kernels with the loops of the host around each launch."""
    for item in host:
        match item:
            case HostLoop(var, body):
                yield from _launches(body, (*around, var))
            case Launch(kernel):
                yield kernel, around
            case Fetch():
                continue


def flops_at_a_point(stmt: Zero | Assign | Gemm, buffers: Mapping[str, Buffer]) -> int:
    """Flops at each point of the loops of a statement."""
    match stmt:
        case Zero():
            return 0
        case Gemm():
            return 2
        case Assign(expr=expr) if two_factors(expr) is not None:
            return 2
        case Assign(expr=Access(name)) if buffers[name].tensor is None:
            # Scratch is copied to its target: the product counted this addition.
            return 0
        case Assign():
            held = stmt.out.variables
            adds = stmt.accumulate or any(v.name not in held for v in stmt.band)
            scales = abs(stmt.coeff) != 1
            return operation_count(stmt.expr) + adds + scales + len(stmt.orbit)


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts statements of a kernel inside ``hosts`` loops of the host."""

    buffers: Mapping[str, Buffer]
    hosts: int

    def work(
        self,
        kernel: str,
        stmt: Zero | Assign | Gemm,
        around: tuple[LoopVar, ...],
        skipped: frozenset[tuple[str, str]],
        constant: bool,
    ) -> StatementWork:
        """The work of one statement."""
        variables: tuple[LoopVar | BandVar, ...] = (*around, *band_of(stmt))
        domain = _domain(variables)
        read = tuple(dict.fromkeys(operands_of(stmt)))
        written: tuple[Amount, ...]
        if isinstance(stmt, Zero):
            written = self.zeroed(stmt, domain)
        else:
            domain = self.stored(stmt.out, variables, domain)
            read = (*read, stmt.out) if stmt.accumulate else read
            written = self.reached((stmt.out,), "written", variables, domain, skipped)
        each = flops_at_a_point(stmt, self.buffers)
        return StatementWork(
            kernel,
            stmt.step,
            constant,
            Amount(each, domain) if each else None,
            self.reached(read, "read", variables, domain, skipped),
            written,
        )

    def zeroed(self, stmt: Zero, domain: Domain) -> tuple[Amount, ...]:
        """All bytes of a buffer, in each launch."""
        buffer = self.buffers[stmt.buffer]
        if not _outside(buffer):
            return ()
        ranges = list(domain[: self.hosts])
        place: dict[int, int] = {}
        for axis, shape in enumerate(buffer.axes):
            place[axis] = len(ranges)
            ranges.append(
                Range(_bases(shape.space)) if shape.length is None else Range(fixed=shape.length)
            )
        for pair in buffer.packed:
            for row, column in pairwise(place[axis] for axis in pair.axes):
                ranges[column] = replace(ranges[column], bound=row, past=_past(pair))
        return (Amount(_item(buffer), tuple(ranges)),)

    def stored(
        self, out: Access, variables: tuple[LoopVar | BandVar, ...], domain: Domain
    ) -> Domain:
        """The points whose element a target stores: packed axes may lack their diagonals."""
        names = {v.name: n for n, v in enumerate(variables)}
        ranges = list(domain)
        for pair in self.buffers[out.buffer].packed:
            ends = [names.get(out.subscripts[axis].variable or "") for axis in pair.axes]
            for inner in ends if pair.antisymmetric else ():
                bound = None if inner is None else ranges[inner].bound
                if inner is not None and bound is not None and bound in ends:
                    ranges[inner] = replace(ranges[inner], past=0)
        return tuple(ranges)

    def reached(
        self,
        references: tuple[Access, ...],
        how: str,
        variables: tuple[LoopVar | BandVar, ...],
        domain: Domain,
        skipped: frozenset[tuple[str, str]],
    ) -> tuple[Amount, ...]:
        """Bytes of the elements that each reference reaches in memory, launch by launch."""
        amounts = []
        for access in references:
            buffer = self.buffers[access.buffer]
            if _outside(buffer) and (how, access.buffer) not in skipped:
                reach = self.elements(access, buffer, variables, domain)
                amounts.append(Amount(_item(buffer), reach))
        return tuple(amounts)

    def elements(
        self,
        access: Access,
        buffer: Buffer,
        variables: tuple[LoopVar | BandVar, ...],
        domain: Domain,
    ) -> Domain:
        """Distinct elements of a reference in each launch."""
        names = {v.name: n for n, v in enumerate(variables)}
        ranges = list(domain)
        for subscript in access.subscripts:
            # A buffer that holds one tile is reused for each tile of a loop in the kernel.
            if subscript.base is not None and names[subscript.base] >= self.hosts:
                n = names[subscript.variable or ""]
                ranges[n] = replace(ranges[n], base=None)
        for pair in buffer.packed:
            ends = {names.get(access.subscripts[axis].variable or "") for axis in pair.axes}
            places = sorted(n for n in ends if n is not None)
            if len(places) < pair.count or places[0] < self.hosts or ranges[places[0]].outer:
                continue
            # All places of an element are one.
            if all(ranges[n].outer in ((), (before,)) for before, n in pairwise(places)):
                for outer, inner in pairwise(places):
                    ranges[inner] = replace(ranges[inner], bound=outer, past=_past(pair))
        wanted = {names[name] for name in access.variables}
        return distinct(tuple(ranges), {*range(self.hosts), *wanted})


def _domain(variables: tuple[LoopVar | BandVar, ...]) -> Domain:
    """Loop variables as ranges; each name stands for the last variable of that name before."""
    names: dict[str, int] = {}
    ranges = []
    for n, var in enumerate(variables):
        bound = None if var.below is None else names[var.below]
        tiled = isinstance(var, BandVar) and var.base is not None
        ranges.append(
            Range(
                _bases(var.space),
                step=(var.tile or 1) if isinstance(var, LoopVar) else 1,
                base=names[var.base] if isinstance(var, BandVar) and var.base else None,
                tile=var.tile if tiled else None,
                bound=bound,
                past=0 if bound is None or (isinstance(var, BandVar) and var.strict) else 1,
            )
        )
        names[var.name] = n
    return tuple(ranges)


def _past(packing: Packing) -> int:
    """Distance by which a packed position may exceed the one before it."""
    return 0 if packing.antisymmetric else 1


def _outside(buffer: Buffer) -> bool:
    """True for a buffer that lives longer than a launch."""
    return buffer.place in ("caller", "arena")


def _bases(space: Space) -> tuple[str, ...]:
    return tuple(base.name for base in space.bases)


def _item(buffer: Buffer) -> int:
    return np.dtype(buffer.dtype).itemsize
