"""Groups of symmetric indices in contractions: found, proven, and chosen by their cost.

In ``r[i,j,a,b] += t[i,j,c,d] * v[a,b,c,d]``, with t and v antisymmetric in each pair, (i,j), (a,b)
and (c,d) are groups: the product needs only i > j, a > b and c > d, an eighth of the work. The sum
over (c,d) is also a group if only v is antisymmetric in c and d: then t is made antisymmetric,
``t[i,j,c,d] - t[i,j,d,c]``, and (i,j) may be a group because of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial, prod

from ...ir.exchange_symmetry import tensor_sign
from ...ir.expr import Access, Subscript
from ...ir.loops import Buffer
from ...ir.plan import FusionPlan
from ...ir.program import Contract, FormulaSequence, Phase, Step
from ...ir.tensor import Index, Ref, Role, Tensor
from ...simplices import parity, stored_values
from ..layout import Band, CpuContext, held_by
from ..statements import Statement
from .kernel_scheme import packed_contraction


@dataclass(frozen=True, slots=True)
class Group:
    """Indices of a contraction that need only their distinct values.

    Attributes:
        names: names of their variables, the one with the largest value first.
        strict: they are antisymmetric: no two have the same value.
        changed: the factor (0 or 1) that is made symmetric in a sum, since only the other one is.
        needs: the names of the group without which these indices are not symmetric.
    """

    names: tuple[str, ...]
    strict: bool
    summed: bool
    changed: int | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups, one or more, that make a contraction cheapest.

    Attributes:
        constant: flags of the two factors, true if a constant one is copied only once.
        saved: flops that they save, less the time of the copies.
        matrix: the generated kernel multiplies; otherwise element loops walk the groups.
    """

    groups: tuple[Group, ...]
    constant: tuple[bool, bool]
    saved: int
    matrix: bool = True

    def weights(self, factor: int, statement: Statement) -> tuple[Group, ...]:
        """Symmetric sums whose weights are in the copy of a factor.

        It is the factor that is made symmetric, else a constant one or the smaller one. Element
        loops have the weights themselves.
        """
        if not self.matrix:
            return ()
        counts = [len(x.variables) for x in statement.factors]
        other = min((0, 1), key=lambda n: (not self.constant[n], counts[n]))
        sums = (g for g in self.groups if g.summed and not g.strict)
        return tuple(g for g in sums if factor == (other if g.changed is None else g.changed))

    def placed(
        self, factor: int, statement: Statement, context: CpuContext
    ) -> tuple[Access, int] | None:
        """A factor as :func:`in_place` has it; None if the product needs a copy of it."""
        if self.weights(factor, statement) or any(g.changed == factor for g in self.groups):
            return None
        return in_place(statement.factors[factor], self.groups, statement, context)


class Groupings:
    """Finds the groups of the visits of a plan; what symmetry proves is found once for a step."""

    def __init__(self, plan: FusionPlan) -> None:
        self.plan = plan
        self._proven: dict[int, tuple[_Symmetric, ...]] = {}

    def of(self, statement: Statement, context: CpuContext) -> Grouping | None:
        """The groups with which the contraction of an unfused visit is cheapest, or None."""
        return self.cheapest(statement, context)[0]

    def cheapest(self, statement: Statement, context: CpuContext) -> tuple[Grouping | None, int]:
        """The groups of a contraction, and its flops with those in the time of its copies."""
        visit = self.plan.visits[statement.position]
        step = self.plan.program.steps[visit.step]
        flops = 2 * context.elements(statement.band)
        thresholds = context.thresholds
        if visit.loops or not isinstance(step.op, Contract) or flops < thresholds.pair_flops:
            return None, flops
        if step.id not in self._proven:
            self._proven[step.id] = tuple(_symmetric_indices(self.plan.program, step))
        named = {i: v.name for i, v in zip(step.indices, statement.band, strict=True)}
        found = [g.group(named, statement, context) for g in self._proven[step.id]]
        found += _stored_parts(found, statement, context)
        matrix = _is_matrix_product(statement, context)
        operands = (step.op.a, step.op.b)
        # A copy for element loops takes longer than the loops: it pays in the same call or never.
        one, two = (matrix and is_constant(self.plan.program, step, x.tensor) for x in operands)

        def cost(groups: tuple[Group, ...]) -> int:
            grouping = Grouping(groups, (one, two), 0, matrix)
            return _cost(grouping, statement, context)

        best = min(_choices(found, thresholds.summed_images), key=cost, default=())
        whole, least = cost(()), cost(best)
        if whole <= least:
            return None, whole
        return Grouping(best, (one, two), whole - least, matrix), least


def _is_matrix_product(statement: Statement, context: CpuContext) -> bool:
    """True if the generated kernel can compute a contraction once its operands are copied."""
    dtype = context.buffer(statement.out).dtype
    used = (statement.out, *statement.factors)
    plain = {x.buffer: replace(context.buffer(x), packed=(), dtype=dtype) for x in used}
    return packed_contraction(statement, context.with_buffers(plain)) is not None


def _stored_parts(found: Sequence[Group], statement: Statement, context: CpuContext) -> list[Group]:
    """Parts of groups in which an operand or the target is stored, so that it is used in place."""
    used = (statement.out, *statement.factors)
    stored = [g for access in used for g in stored_groups(access, context.buffer(access))]
    parts = [
        replace(group, names=tuple(n for n in group.names if n in part.names))
        for group in found
        for part in stored
        if set(part.names) < set(group.names) and part.strict == group.strict
    ]
    return list(dict.fromkeys(parts))


def _choices(found: Sequence[Group], most_images: int) -> Iterator[tuple[Group, ...]]:
    """Sets of groups that share no index, each with the groups that it needs."""
    for count in range(1, len(found) + 1):
        for groups in combinations(found, count):
            names = [name for group in groups for name in group.names]
            sets = {frozenset(group.names) for group in groups}
            images = prod(factorial(len(g.names)) for g in groups if g.changed is not None)
            complete = all(not g.needs or frozenset(g.needs) in sets for g in groups)
            if len(set(names)) == len(names) and complete and images <= most_images:
                yield groups


def is_constant(program: FormulaSequence, step: Step, tensor: Tensor) -> bool:
    """True if a copy of an operand can be made once for the calls of a volatile step."""
    if step.phase is Phase.CONSTANT or tensor.role is Role.GENERATED:
        return False
    if tensor.is_input:
        return not tensor.volatile
    return all(maker.phase is Phase.CONSTANT for maker in program.producers(tensor))


@dataclass(frozen=True, slots=True)
class _Symmetric:
    """Indices whose exchanges have a sign; the other fields are those of a :class:`Group`."""

    members: tuple[Index, ...]
    sign: int
    summed: bool
    changed: int | None = None
    needs: tuple[Index, ...] = ()

    def group(self, named: Mapping[Index, str], statement: Statement, context: CpuContext) -> Group:
        """The variables, in the memory order of the operand with the most axes."""
        names = [named[i] for i in self.members]
        held = (x for x in statement.factors if names[0] in x.variables)
        order = context.memory_order(max(held, key=lambda x: len(x.subscripts)))
        needs = tuple(named[i] for i in self.needs)
        ordered = tuple(sorted(names, key=order.index))
        return Group(ordered, self.sign < 0, self.summed, self.changed, needs)


def _symmetric_indices(program: FormulaSequence, step: Step) -> Iterator[_Symmetric]:
    """Maximal sets of indices of rows, columns or sums, with the sign of their exchanges."""
    assert isinstance(step.op, Contract), "only contractions have rows and columns"
    factors = (step.op.a, step.op.b)
    held = {i: tuple(i in ref.indices for ref in factors) for i in step.indices}
    summed = [i for i in step.indices if all(held[i]) and i not in step.out.indices]
    sums = _summed_groups(program, factors, summed)
    yield from sums
    for n, ref in enumerate(factors):
        rows = [i for i in step.out.indices if held[i] == (n == 0, n == 1)]
        plain = list(_components(program, ref, rows, {}))
        yield from (_Symmetric(members, sign, summed=False) for members, sign in plain)
        rest = [i for i in rows if all(i not in members for members, _ in plain)]
        for group in sums:
            first, second, *_ = group.members
            along = {first: second, second: first}
            for members, sign in _components(program, ref, rest, along):
                needed = sign * group.sign
                yield _Symmetric(members, needed, summed=False, needs=group.members)


def _summed_groups(
    program: FormulaSequence, factors: tuple[Ref, Ref], summed: Sequence[Index]
) -> list[_Symmetric]:
    """Groups of sums in which both factors are symmetric, or one of them."""
    groups: dict[frozenset[Index], _Symmetric] = {}
    for n, ref in enumerate(factors):
        for members, sign in _components(program, ref, summed, {}):
            other = factors[1 - n]
            both = all(_sign(program, other, p, q, {}) == sign for p, q in combinations(members, 2))
            changed = None if both else 1 - n
            groups.setdefault(
                frozenset(members), _Symmetric(members, sign, summed=True, changed=changed)
            )
    return list(groups.values())


def _components(
    program: FormulaSequence, ref: Ref, indices: Sequence[Index], along: Mapping[Index, Index]
) -> Iterator[tuple[tuple[Index, ...], int]]:
    """Maximal sets of indices of one space that a factor exchanges with one sign."""
    left = list(indices)
    while left:
        first, *left = left
        signs = {i: _sign(program, ref, first, i, along) for i in left if i.space == first.space}
        sign = next((s for s in signs.values() if s is not None), None)
        if sign is not None:
            group = (first, *(i for i in left if signs.get(i) == sign))
            left = [i for i in left if i not in group]
            yield group, sign


def _sign(
    program: FormulaSequence, ref: Ref, one: Index, two: Index, along: Mapping[Index, Index]
) -> int | None:
    """Sign by which a factor changes if two indices, and others with them, are exchanged."""
    images = {one: two, two: one, **along}
    if len(set(ref.indices)) < len(ref.indices) or not set(images) <= set(ref.indices):
        return None
    perm = tuple(ref.indices.index(images.get(i, i)) for i in ref.indices)
    spaces = ref.tensor.spaces
    if any(spaces[axis] != spaces[image] for axis, image in enumerate(perm)):
        return None
    return tensor_sign(program, ref.tensor, perm)


def _cost(grouping: Grouping, statement: Statement, context: CpuContext) -> int:
    """Flops of a contraction by groups, and the flops in the time of its copies."""
    groups, copied = grouping.groups, 0
    for n, access in enumerate(statement.factors):
        if grouping.constant[n] or grouping.placed(n, statement, context) is not None:
            continue
        images = prod(factorial(len(g.names)) for g in groups if g.changed == n)
        copied += images * points_of(groups, held_by(access, statement.band), context)
    if in_place(statement.out, groups, statement, context) is None:
        stored = stored_groups(statement.out, context.buffer(statement.out))
        points = points_of(stored, held_by(statement.out, statement.band), context)
        mine = [g.names for g in groups if g.names[0] in statement.out.variables]
        copied += 2 * points * reads_of(mine, context)
    flops = 2 * points_of(groups, statement.band, context)
    return flops + context.thresholds.pair_copy_flops * copied


def points_of(groups: tuple[Group, ...], band: Band, context: CpuContext) -> int:
    """Points of a band, of a group in it those of its distinct values."""
    held = {v.name: v for v in band}
    inside = [g for g in groups if g.names[0] in held]
    single = tuple(v for v in band if all(v.name not in g.names for g in inside))
    return context.elements(single) * prod(
        stored_values(held[g.names[0]].space.extent_in(context.extents), len(g.names), g.strict)
        for g in inside
    )


def reads_of(groups: Iterable[tuple[str, ...]], context: CpuContext) -> int:
    """Elements that are copied in the time in which one element is found in its groups."""
    return context.thresholds.group_reads if any(len(names) > 2 for names in groups) else 1


def stored_groups(access: Access, buffer: Buffer) -> tuple[Group, ...]:
    """The variables on the packed axes of a buffer, each set of them as a group."""
    return tuple(
        Group(
            tuple(access.subscripts[axis].variable or "" for axis in p.axes),
            p.antisymmetric,
            summed=False,
        )
        for p in buffer.packed
    )


def in_place(
    access: Access, groups: tuple[Group, ...], statement: Statement, context: CpuContext
) -> tuple[Access, int] | None:
    """An operand with its variables in the order of the groups, and the sign of that; or None.

    The operand must be stored in its groups, and in no others.
    """
    buffer, spaces = context.buffer(access), {v.name: v.space for v in statement.band}
    mine = {frozenset(g.names): g for g in groups if g.names[0] in access.variables}
    if len(buffer.packed) != len(mine) or buffer.dtype != context.buffer(statement.out).dtype:
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
