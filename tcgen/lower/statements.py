"""Visits of a plan as statements: references become accesses to buffers, indices variables.

Before: ``visit x[i,a] += sum(c) f[i,c] * t[c,a]`` with i bound to an element loop.
After: ``x[i,a] += f[i,c] * t[c,a]   for a, c`` inside ``for i``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from ..errors import PlanError
from ..ir.expr import (
    Access,
    Const,
    Delta,
    Equal,
    Expr,
    Subscript,
    accesses_of,
    map_leaves,
)
from ..ir.loops import Assign, BandVar, Fetch, LoopVar
from ..ir.plan import FusionPlan, LoopId, Visit
from ..ir.program import Contract, Step
from ..ir.reduction import Reduction, Running
from ..ir.tensor import Index, Ref, Space
from .buffers import Memory
from .names import unique


@dataclass(frozen=True, slots=True)
class Statement:
    """``out (+)= coeff * orbit * expr`` for every point of the band, not yet bound to loops.

    Attributes:
        expr: right-hand side, without ``coeff`` and ``orbit``.
        factors: the two operands of a contraction; () for other statements.
        band: own variables, those of ``out`` first.
        accumulate: add to the target instead of overwriting it.
        orbit: chains of triangular variables that are summed over, or whose images are added.
        home: innermost shared loop around it, in which its scratch lives.
        reduction: reduction over the variables that ``out`` does not have.
    """

    out: Access
    expr: Expr
    factors: tuple[Access, ...]
    band: tuple[BandVar, ...]
    coeff: Fraction
    accumulate: bool
    orbit: tuple[tuple[str, ...], ...]
    home: LoopId | None
    position: int
    reduction: Reduction = Reduction.SUM

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The target, then all that is read."""
        return (self.out, *accesses_of(self.expr))


@dataclass(frozen=True, slots=True)
class _Bindings:
    """The loops and buffers of one visit, by which its indices and references are translated."""

    visit: Visit
    position: int
    memory: Memory
    loops: Mapping[LoopId, LoopVar]
    names: Mapping[Index, str]

    def variable(self, index: Index) -> BandVar | None:
        """Band variable of an index; None if an element loop of the plan fixes it."""
        loop = self.visit.loop_of(index)
        if loop is None:
            return BandVar(self.names[index], index.space)
        if loop.tile is None:
            return None
        return BandVar(self.names[index], index.space, self.loops[loop].name, loop.tile)

    def subscript(self, index: Index) -> Subscript:
        """Position of an index in its own space."""
        return Subscript(self.names[index])

    def access(self, ref: Ref) -> Access:
        """A reference as an access to the buffer of its tensor."""
        name = self.memory.name_of(ref.tensor, self.position)
        array = self.memory.plan.instance(ref.tensor, self.position)
        subscripts = []
        for axis, (index, space) in enumerate(zip(ref.indices, ref.tensor.spaces, strict=True)):
            loop = array.loop_of(axis) if array is not None else None
            if loop is None:
                offset = space.before(index.space)
                assert offset is not None, f"{index} does not fit an axis of {space.name}"
                subscripts.append(Subscript(self.names[index], None, offset))
            elif loop.tile is None:
                subscripts.append(Subscript(None))
            else:
                subscripts.append(Subscript(self.names[index], self.loops[loop].name))
        return Access(name, tuple(subscripts))

    def leaf(self, node: Ref | Access | Delta | Equal) -> Expr:
        """A leaf of a program as a leaf of a module."""
        match node:
            case Ref():
                return self.access(node)
            case Delta(left, right):
                return _equal(self.subscript(left), left.space, self.subscript(right), right.space)
            case Access() | Equal():
                return node
            case _:
                assert_never(node)


def make_statement(
    plan: FusionPlan,
    position: int,
    memory: Memory,
    loops: Mapping[LoopId, LoopVar],
    accumulate: bool,
) -> Statement:
    """The statement of a visit that computes something."""
    visit = plan.visits[position]
    step = plan.program.steps[visit.step]
    bound = _Bindings(visit, position, memory, loops, _names(step, visit, loops))
    assert step.summand is not None, "a generated input is fetched, not computed"
    contracts = isinstance(step.op, Contract)
    return Statement(
        out=bound.access(step.out),
        expr=map_leaves(step.summand, bound.leaf),
        factors=tuple(map(bound.access, step.operands)) if contracts else (),
        band=tuple(v for i in step.indices if (v := bound.variable(i)) is not None),
        coeff=step.coeff,
        accumulate=accumulate,
        orbit=_weighted_chains(plan, position, loops),
        home=visit.loops[-1] if visit.loops else None,
        position=position,
        reduction=step.reduction if isinstance(step.reduction, Reduction) else Reduction.SUM,
    )


@dataclass(frozen=True, slots=True)
class Scan:
    """A running reduction: a carried value, or row of values, and the loop that takes them on.

    Before: ``y[i,j] = cumsum(i) x[i,j]``. After: ``t[j] = -0   for j``, and in the loop over i,
    ``t[j] += x[i,j]   for j``, ``y[i,j] = t[j]   for j``.

    Attributes:
        start: the value before the loop.
        depth: number of loops around the loop.
        step, copy: the statements in it.
    """

    start: Assign
    depth: int
    step: Statement
    copy: Statement


def make_scan(
    plan: FusionPlan,
    position: int,
    memory: Memory,
    loops: Mapping[LoopId, LoopVar],
    plain: Statement,
) -> Scan:
    """The statements of a running reduction; ``plain`` is its statement as of single elements."""
    visit = plan.visits[position]
    step = plan.program.steps[visit.step]
    assert isinstance(step.reduction, Running), "the reduction is a running one"
    assert step.running is not None, "a running reduction has an index"
    along = visit.loop_of(step.running)
    assert along is not None, "the index of a running reduction has a loop"
    depth = visit.loops.index(along)
    names = _names(step, visit, loops)
    carried = [
        BandVar(names[i], i.space)
        for axis in step.out.tensor.stored_order
        if (i := step.out.indices[axis]) != step.running
        and visit.loop_of(i) not in visit.loops[:depth]
    ]
    home = visit.loops[depth - 1] if depth else None
    dtype = memory.buffer(plain.out).dtype
    buffer = memory.carry(tuple(carried), dtype, home, position)
    place = Access(buffer.name, tuple(Subscript(v.name) for v in carried))
    own = tuple(BandVar(f"z{n}", v.space) for n, v in enumerate(carried))
    begin = Access(buffer.name, tuple(Subscript(v.name) for v in own))
    return Scan(
        Assign(begin, step.reduction.neutral, band=own),
        depth,
        replace(plain, out=place, accumulate=True, reduction=step.reduction.each),
        replace(plain, expr=place),
    )


def make_fetch(
    plan: FusionPlan, position: int, memory: Memory, loops: Mapping[LoopId, LoopVar]
) -> Fetch:
    """The fetch of the part of a generated input that its instance holds."""
    step = plan.program.steps[plan.visits[position].step]
    array = plan.instance(step.out.tensor, position)
    assert array is not None, f"{step.out.tensor.name} has no instance"
    held = [array.loop_of(axis) for axis in range(step.out.tensor.rank)]
    ranges = tuple(None if loop is None else loops[loop] for loop in held)
    return Fetch(memory.name_of(step.out.tensor, position), ranges)


def _names(step: Step, visit: Visit, loops: Mapping[LoopId, LoopVar]) -> dict[Index, str]:
    """Variable of each index: that of its element loop, or a letter that no outer loop uses."""
    taken = {loops[loop].name for loop in visit.loops}
    names: dict[Index, str] = {}
    for index in step.indices:
        loop = visit.loop_of(index)
        if loop is not None and loop.tile is None:
            names[index] = loops[loop].name
        else:
            names[index] = unique(index.name, taken)
            taken.add(names[index])
    return names


def _weighted_chains(
    plan: FusionPlan, position: int, loops: Mapping[LoopId, LoopVar]
) -> tuple[tuple[str, ...], ...]:
    """Chains of triangular loops that the step sums over, or writes an array that is whole in."""
    visit = plan.visits[position]
    out = plan.program.steps[visit.step].out
    array = plan.instance(out.tensor, position)
    held = {loop for _, loop in array.contracted} if array else set()
    summed = {loop for _, loop in visit.bind if loop not in held}
    followed = {loop.order_after for loop in summed}
    chains = []
    for end in (loop for loop in visit.loops if loop in summed and loop not in followed):
        chain, loop = [loops[end].name], end.order_after
        while loop is not None and loop in summed:
            chain.insert(0, loops[loop].name)
            loop = loop.order_after
        if len(chain) > 1:
            chains.append(tuple(chain))
    return tuple(chains)


def _equal(left: Subscript, one: Space, right: Subscript, other: Space) -> Expr:
    """Equality of two positions, counted from the start of the union of both spaces."""
    common = [base for base in one.bases if base in other.bases]
    if not common:
        return Const(Fraction(0))
    start, begin = one.bases.index(common[0]), other.bases.index(common[0])
    overlap = tuple(common)
    contiguous = (
        one.bases[start : start + len(common)] == overlap
        and other.bases[begin : begin + len(common)] == overlap
    )
    if not contiguous or (start and begin) or (_after(one, common) and _after(other, common)):
        raise PlanError(
            f"delta of {one.name} and {other.name}: both contain "
            f"{', '.join(b.name for b in common)} but differ on the same side of it; write one "
            f"delta for each common base space"
        )
    return Equal(
        Subscript(left.variable, None, other.bases[:begin]),
        Subscript(right.variable, None, one.bases[:start]),
    )


def _after(space: Space, common: list[Space]) -> int:
    """Number of base spaces after the common ones."""
    return len(space.bases) - space.bases.index(common[-1]) - 1
