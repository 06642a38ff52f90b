"""Contractions whose indices are symmetric in groups: each group is one index of distinct values.

Before: ``r[i,j,a,b] += t[i,j,c,d] * v[a,b,c,d]``, with t and v antisymmetric in each pair. After:
``s[(i,j),(a,b)] = 2 * sum((c,d)) t[(i,j),(c,d)] * v[(a,b),(c,d)]`` for i > j, a > b and c > d, an
ordinary product of matrices with an eighth of the work, and ``r[i,j,a,b] += s[i,j,a,b]``, which
reads s with its sign. Operands and results that are stored in the same groups are used in place;
the others are gathered first, constant ones once for a bound program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import factorial, prod

from ...ir.cost import extent_of
from ...ir.exchange_symmetry import tensor_sign
from ...ir.expr import Access, Prod, Subscript
from ...ir.loops import BandVar, Buffer, Stmt
from ...ir.plan import FusionPlan
from ...ir.program import Contract, FormulaSequence, Phase, Step
from ...ir.tensor import Index, Packing, Ref, Role, Tensor
from ...simplices import parity, stored_values
from ...thresholds import CpuThresholds
from ..buffers import Memory
from ..layout import Band, elements, memory_order
from ..statements import Statement
from .kernel_scheme import as_contraction, packed_contraction
from .loops import bind_assign


@dataclass(frozen=True, slots=True)
class Group:
    """Indices of a contraction under whose permutations its factors change by a sign only.

    Attributes:
        names: of their variables, the one with the largest value first.
        strict: they are antisymmetric: no two have the same value.
        summed: they are summed over.
    """

    names: tuple[str, ...]
    strict: bool
    summed: bool


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups that make a contraction cheapest.

    Attributes:
        groups: at least one.
        constant: which of the two factors are constant, so that a copy is made once.
        saved: flops that they save, less the time of the copies.
    """

    groups: tuple[Group, ...]
    constant: tuple[bool, bool]
    saved: int


def grouping_of(
    plan: FusionPlan,
    statement: Statement,
    buffers: Mapping[str, Buffer],
    thresholds: CpuThresholds,
) -> Grouping | None:
    """The groups with which the contraction of an unfused visit is cheapest, or None."""
    visit = plan.visits[statement.position]
    step, extents = plan.program.steps[visit.step], plan.extent_of
    flops = 2 * elements(statement.band, extents)
    if visit.loops or not isinstance(step.op, Contract) or flops < thresholds.pair_flops:
        return None
    names = {i: v.name for i, v in zip(step.indices, statement.band, strict=True)}
    operands = (step.op.a, step.op.b)
    one, two = (_is_constant(plan.program, step, ref.tensor) for ref in operands)
    found = tuple(
        Group(_in_memory_order([names[i] for i in members], statement, buffers), sign < 0, summed)
        for members, sign, summed in _symmetric_indices(plan.program, step)
    )

    def cost(groups: tuple[Group, ...]) -> int:
        return _cost(groups, statement, (one, two), buffers, extents, thresholds)

    choices = (c for count in range(1, len(found) + 1) for c in combinations(found, count))
    best = min(choices, key=cost, default=())
    saved = cost(()) - cost(best)
    return Grouping(best, (one, two), saved) if saved > 0 else None


def _is_constant(program: FormulaSequence, step: Step, tensor: Tensor) -> bool:
    """True if a copy of an operand can be made once for the calls of a volatile step."""
    if step.phase is Phase.CONSTANT or tensor.role is Role.GENERATED:
        return False
    makers = program.producers(tensor)
    return (
        not tensor.volatile if tensor.is_input else all(s.phase is Phase.CONSTANT for s in makers)
    )


def _symmetric_indices(
    program: FormulaSequence, step: Step
) -> Iterator[tuple[tuple[Index, ...], int, bool]]:
    """Maximal sets of indices of rows, columns or sums, with the sign of their exchanges."""
    assert isinstance(step.op, Contract), "only contractions have rows and columns"
    a, b = step.op.a, step.op.b
    places: dict[tuple[object, ...], list[Index]] = {}
    for index in step.indices:
        kind = (index in step.out.indices, index in a.indices, index in b.indices)
        if sum(kind) == 2:
            places.setdefault((index.space, *kind), []).append(index)
    for (_, out, *_), members in places.items():
        while members:
            first, *others = members
            signs = {i: _sign(program, (a, b), first, i) for i in others}
            sign = next((s for s in signs.values() if s is not None), None)
            group = (first, *(i for i in others if sign is not None and signs[i] == sign))
            if sign is not None:
                yield group, sign, not out
            members = [i for i in others if i not in group]


def _sign(program: FormulaSequence, factors: tuple[Ref, Ref], one: Index, two: Index) -> int | None:
    """Sign by which each factor that has two indices changes if they are exchanged, or None."""
    signs = set()
    for ref in factors:
        if one not in ref.indices and two not in ref.indices:
            continue
        if ref.indices.count(one) != 1 or ref.indices.count(two) != 1:
            return None
        first, second = ref.indices.index(one), ref.indices.index(two)
        if ref.tensor.spaces[first] != ref.tensor.spaces[second]:
            return None
        perm = list(range(ref.tensor.rank))
        perm[first], perm[second] = second, first
        signs.add(tensor_sign(program, ref.tensor, tuple(perm)))
    return signs.pop() if len(signs) == 1 else None


def _in_memory_order(
    names: Sequence[str], statement: Statement, buffers: Mapping[str, Buffer]
) -> tuple[str, ...]:
    """Variables in the order of the operand with the most axes."""
    held = [(x, buffers[x.buffer]) for x in statement.factors if names[0] in x.variables]
    order = memory_order(*max(held, key=lambda pair: len(pair[1].axes)))
    return tuple(sorted(names, key=order.index))


def _cost(
    groups: tuple[Group, ...],
    statement: Statement,
    constant: tuple[bool, bool],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> int:
    """Flops of a contraction by groups, and the flops in the time of its copies."""
    weighted = _weighted(groups, statement, constant)
    copied = sum(
        points_of(groups, _band_of(access, statement), extents)
        for n, access in enumerate(statement.factors)
        if not constant[n] and (n in weighted or _moves(access, groups, statement, buffers))
    )
    target = statement.out
    if _moves(target, groups, statement, buffers):
        copied += 2 * elements(_band_of(target, statement), extents)
    flops = 2 * points_of(groups, statement.band, extents)
    return flops + thresholds.pair_copy_flops * copied


def _band_of(access: Access, statement: Statement) -> Band:
    return tuple(v for v in statement.band if v.name in access.variables)


def points_of(groups: tuple[Group, ...], band: Band, extents: Mapping[str, int]) -> int:
    """Points of a band, of a group in it those of its distinct values."""
    held = {v.name: v for v in band}
    inside = [g for g in groups if g.names[0] in held]
    single = tuple(v for v in band if all(v.name not in g.names for g in inside))
    return elements(single, extents) * prod(
        stored_values(extent_of(held[g.names[0]].space, extents), len(g.names), g.strict)
        for g in inside
    )


def _weighted(
    groups: tuple[Group, ...], statement: Statement, constant: tuple[bool, bool]
) -> frozenset[int]:
    """The factor whose copy has the weights of symmetric sums; none without such sums.

    It is a constant one, or the one with fewer variables.
    """
    if all(g.strict or not g.summed for g in groups):
        return frozenset()
    counts = [len(x.variables) for x in statement.factors]
    return frozenset({min((0, 1), key=lambda n: (not constant[n], counts[n]))})


def _moves(
    access: Access,
    groups: tuple[Group, ...],
    statement: Statement,
    buffers: Mapping[str, Buffer],
) -> bool:
    """True if the kernel cannot use an operand in place."""
    return _in_place(access, groups, statement, buffers) is None


def _in_place(
    access: Access,
    groups: tuple[Group, ...],
    statement: Statement,
    buffers: Mapping[str, Buffer],
) -> tuple[Access, int] | None:
    """An operand with its variables in the order of the groups, and the sign of that; or None.

    The operand must be stored in its groups, and in no others.
    """
    buffer, spaces = buffers[access.buffer], {v.name: v.space for v in statement.band}
    mine = {frozenset(g.names): g for g in groups if g.names[0] in access.variables}
    if len(buffer.packed) != len(mine) or buffer.dtype != buffers[statement.out.buffer].dtype:
        return None
    subscripts, sign = list(access.subscripts), 1
    for packing in buffer.packed:
        axes = [axis for axis in buffer.order if axis in packing.axes]
        names = [access.subscripts[axis].variable or "" for axis in axes]
        group = mine.get(frozenset(names))
        whole = all(
            spaces[n] == buffer.axes[axis].space for n, axis in zip(names, axes, strict=True)
        )
        if group is None or group.strict != packing.antisymmetric or not whole:
            return None
        if group.strict:
            sign *= parity([group.names.index(name) for name in names])
        for axis, name in zip(axes, group.names, strict=True):
            subscripts[axis] = Subscript(name)
    return replace(access, subscripts=tuple(subscripts)), sign


@dataclass(frozen=True, slots=True)
class GroupedProduct:
    """A contraction by groups.

    Attributes:
        constant: copies of constant operands, made once for a bound program.
        body: copies, the product, and what adds it to its target.
    """

    constant: tuple[Stmt, ...]
    body: tuple[Stmt, ...]


def bind_groups(
    statement: Statement,
    grouping: Grouping,
    memory: Memory,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> GroupedProduct | None:
    """The statements of a contraction by groups; None if the kernel cannot."""
    buffers = memory.buffers
    used = (statement.out, *statement.factors)
    dtype = buffers[statement.out.buffer].dtype
    if any(buffers[x.buffer].dtype == "complex128" != dtype for x in statement.factors):
        return None
    plain = {x.buffer: replace(buffers[x.buffer], packed=(), dtype=dtype) for x in used}
    if packed_contraction(statement, plain) is None:
        return None
    binder = _Binder(statement, grouping.groups, memory, extents, thresholds)
    return binder.bound(grouping.constant)


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds one contraction."""

    statement: Statement
    groups: tuple[Group, ...]
    memory: Memory
    extents: Mapping[str, int]
    thresholds: CpuThresholds

    def bound(self, constant: tuple[bool, bool]) -> GroupedProduct:
        """The statements."""
        statement, buffers = self.statement, self.memory.buffers
        weighted = _weighted(self.groups, statement, constant)
        copies: tuple[list[Stmt], list[Stmt]] = ([], [])  # volatile ones, and constant ones
        factors, sign = [], 1
        for n, access in enumerate(statement.factors):
            placed = _in_place(access, self.groups, statement, buffers)
            if placed is None or n in weighted:
                factors.append(self.gathered(access, n in weighted, copies[constant[n]]))
            else:
                factors.append(placed[0])
                sign *= placed[1]
        direct = _in_place(statement.out, self.groups, statement, buffers)
        after: tuple[Stmt, ...] = ()
        if direct is None:
            out, after = self.scattered()
        else:
            out, sign = direct[0], sign * direct[1]
        coeff = statement.coeff * sign
        for group in self.groups:
            coeff *= factorial(len(group.names)) if group.summed and group.strict else 1
        pair = (factors[0], factors[1])
        product = as_contraction(
            replace(
                statement,
                out=out,
                expr=Prod(pair),
                factors=pair,
                band=self.walked(statement.band),
                coeff=coeff,
                accumulate=statement.accumulate and direct is not None,
            ),
            self.memory.buffers,
            self.extents,
            self.thresholds,
        )
        assert product is not None, "groups suit the kernel as well as their variables"
        return GroupedProduct(tuple(copies[True]), (*copies[False], product, *after))

    def walked(self, band: Band) -> Band:
        """A band in which the variables of each group follow each other, each below the last."""
        held = {v.name: v for v in band}
        walked: list[BandVar] = []
        for var in band:
            group = next((g for g in self.groups if var.name in g.names), None)
            if group is None:
                walked.append(var)
            elif var.name == next(v.name for v in band if v.name in group.names):
                chain = [held[group.names[0]]]
                for name in group.names[1:]:
                    chain.append(replace(held[name], below=chain[-1].name, strict=group.strict))
                walked += chain
        return tuple(walked)

    def scratch(self, access: Access) -> tuple[Access, Band]:
        """Scratch with the variables of an access, each group on a packed axis, and its band.

        A group has the place of its last variable in memory: loops follow long runs of elements.
        """
        statement = self.statement
        held = {v.name: v for v in statement.band}
        order = list(dict.fromkeys(memory_order(access, self.memory.buffers[access.buffer])))
        last = {g: max(map(order.index, g.names)) for g in self.groups if g.names[0] in order}
        names: list[str] = []
        packed: list[Packing] = []
        for n, name in enumerate(order):
            group = next((g for g in last if name in g.names), None)
            if group is None:
                names.append(name)
            elif last[group] == n:
                packed.append(Packing(len(names), group.strict, len(group.names)))
                names += group.names
        band = tuple(held[name] for name in names if name in held)
        dtype = self.memory.buffers[statement.out.buffer].dtype
        buffer = self.memory.scratch(band, dtype, statement.home, statement.position, tuple(packed))
        return Access(buffer.name, tuple(Subscript(v.name) for v in band)), self.walked(band)

    def gathered(self, access: Access, weighted: bool, copies: list[Stmt]) -> Access:
        """A copy of an operand in its groups, with the weights of symmetric sums."""
        place, band = self.scratch(access)
        sums = (g.names for g in self.groups if g.summed and not g.strict)
        copy = replace(
            self.statement,
            out=place,
            expr=access,
            factors=(),
            band=band,
            coeff=Fraction(1),
            accumulate=False,
            orbit=tuple(sums) if weighted else (),
        )
        bound = bind_assign(copy, self.memory.buffers)
        copies.append(replace(bound, band=band, block=()))
        return place

    def scattered(self) -> tuple[Access, tuple[Stmt, ...]]:
        """Scratch for the product, and the statement that adds all of its images to the target."""
        statement = self.statement
        place, _ = self.scratch(statement.out)
        copy = replace(
            statement,
            expr=place,
            factors=(),
            band=_band_of(statement.out, statement),
            coeff=Fraction(1),
        )
        return place, (bind_assign(copy, self.memory.buffers),)
