"""Contractions by groups of symmetric indices: each group is one index of distinct values.

Before: ``r[i,j,a,b] += t[i,j,c,d] * v[a,b,c,d]``, with t and v antisymmetric in each pair. After:
``s[(i,j),(a,b)] = 2 * sum((c,d)) t[(i,j),(c,d)] * v[(a,b),(c,d)]`` for i > j, a > b and c > d, an
ordinary product of matrices, and ``r[i,j,a,b] += s[i,j,a,b]``, which reads s with its sign.
Operands and results that are stored in the same groups are used in place; the others are gathered
first, constant ones once for a bound program, and large ones slice by slice. A contraction that is
no product of matrices, such as ``e += t[i,j] * v[i,j]``, becomes element loops over the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from math import factorial, prod

from ...ir.expr import Access, Const, Expr, Prod, Sum
from ...ir.loops import BandVar, Loop, LoopVar, Stmt
from ...ir.tensor import Packing
from ...simplices import parity
from ..buffers import Memory
from ..layout import Band, held_by, in_order
from ..names import renamed_access
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign, placed
from .symmetric_groups import Group, Grouping, in_place, points_of


@dataclass(frozen=True, slots=True)
class GroupedProduct:
    """A contraction by groups: ``body`` copies, multiplies, and adds to the target.

    ``constant`` copies constant operands, once for a bound program.
    """

    constant: tuple[Stmt, ...]
    body: tuple[Stmt, ...]


def bind_groups(statement: Statement, grouping: Grouping, memory: Memory) -> GroupedProduct | None:
    """The statements of a contraction by groups; None if the kernel cannot."""
    dtype = memory.buffer(statement.out).dtype
    if any(memory.buffer(x).dtype == "complex128" != dtype for x in statement.factors):
        return None
    return _Binder(statement, grouping, memory).bound()


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds one contraction."""

    statement: Statement
    grouping: Grouping
    memory: Memory

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the contraction."""
        return self.grouping.groups

    def bound(self) -> GroupedProduct:
        """The statements."""
        statement, memory = self.statement, self.memory
        # Volatile copies, and constant ones.
        copies: tuple[list[Stmt], list[Stmt]] = ([], [])
        direct = in_place(statement.out, self.groups, statement, memory)
        sliced, cut = self.slices(accumulates=statement.accumulate and direct is not None)
        band = tuple(cut if cut and v.name == cut.name else v for v in statement.band)
        inside: list[Stmt] = []  # copies of a slice
        factors, sign = [], 1
        for n in (0, 1):
            stored = self.grouping.placed(n, statement, memory)
            if stored is not None:
                factors.append(stored[0])
                sign *= stored[1]
            elif n == sliced:
                factors.append(self.gathered(n, band, inside))
            else:
                kept = copies[self.grouping.constant[n]]
                factors.append(self.gathered(n, statement.band, kept))
        after: tuple[Stmt, ...] = ()
        if direct is None:
            out, after = self.scattered()
        else:
            out, sign = direct[0], sign * direct[1]
        coeff = statement.coeff * sign
        for group in self.groups:
            whole = group.summed and group.strict and group.changed is None
            coeff *= factorial(len(group.names)) if whole else 1
        pair = (factors[0], factors[1])
        small = replace(
            statement,
            out=out,
            expr=Prod(pair),
            factors=pair,
            band=self.walked(band),
            coeff=coeff,
            accumulate=statement.accumulate and direct is not None,
        )
        product = self.multiplied(small) if self.grouping.matrix else self.looped(small)
        if cut is not None:
            assert cut.base is not None, "the variable of a slice walks the tiles of a loop"
            product = (Loop(LoopVar(cut.base, cut.space, cut.tile), (*inside, *product)),)
        return GroupedProduct(tuple(copies[True]), (*copies[False], *product, *after))

    def slices(self, *, accumulates: bool) -> tuple[int | None, BandVar | None]:
        """The factor that is gathered slice by slice, and the variable whose tiles make slices.

        The variable is of no group. It is one of the target that the other factor lacks, or a
        summed one if the product is added to its target. The other factor, which is packed again
        for each slice, must be small.
        """
        statement, memory = self.statement, self.memory
        single = {v.name: v for v in statement.band if v.base is None and v.below is None}
        single = {n: v for n, v in single.items() if all(n not in g.names for g in self.groups)}
        for n, factor in enumerate(statement.factors):
            count = self.points(held_by(factor, statement.band))
            copied = self.grouping.placed(n, statement, memory) is None
            if not copied or self.grouping.constant[n] or not self.grouping.matrix:
                continue
            if count <= self.memory.thresholds.gathered_slice:
                continue
            other = statement.factors[1 - n]
            repeated = self.points(held_by(other, statement.band))
            names = self.memory.memory_order(factor)
            names.sort(key=lambda name: name not in statement.out.variables)
            for name in names:
                summed = name not in statement.out.variables
                if name not in single or summed != (name in other.variables):
                    continue
                extent = single[name].space.extent_in(self.memory.extents)
                tile = max(1, self.memory.thresholds.gathered_slice * extent // count)
                if summed > accumulates or repeated * (extent // tile) > count:
                    continue
                loop = f"{self.memory.next_scratch()}_{name}"
                return n, replace(single[name], base=loop, tile=tile)
        return None, None

    def multiplied(self, small: Statement) -> tuple[Stmt, ...]:
        """The contraction by the generated kernel."""
        product = as_contraction(small, self.memory)
        assert product is not None, "groups suit the kernel as well as their variables"
        return (product,)

    def looped(self, small: Statement) -> tuple[Stmt, ...]:
        """Element loops over the groups, in the order of the larger factor's memory.

        Single precision is added up in double in a local sum, so its loops follow the target.
        """
        sums = tuple(g.names for g in self.groups if g.summed and not g.strict)
        small = replace(small, orbit=sums)
        main = max(small.factors, key=lambda x: self.points(held_by(x, small.band)))
        order = self.memory.memory_order(main)
        target = self.memory.buffer(small.out)
        if order[-1] not in small.out.variables or target.dtype == "float32":
            return (bind_assign(small, self.memory),)
        band = in_order(small.band, order)
        loops = replace(bind_assign(small, self.memory), band=band, accumulate=True, block=())
        if small.accumulate:
            return (loops,)
        zero = replace(small, expr=Const(Fraction(0)), factors=(), orbit=(), coeff=Fraction(1))
        held = held_by(small.out, small.band)
        return (bind_assign(replace(zero, band=held), self.memory), loops)

    def points(self, band: Band) -> int:
        """Points of a band by the groups."""
        return points_of(self.groups, band, self.memory)

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

    def scratch(self, access: Access, band: Band) -> tuple[Access, Band]:
        """Scratch with the variables of an access, each group on a packed axis, and its loops.

        A group has the place of its last variable in memory: loops follow long runs of elements.
        """
        held = {v.name: v for v in band}
        order = list(dict.fromkeys(self.memory.memory_order(access)))
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
        own = tuple(held[name] for name in names if name in held)
        statement = self.statement
        dtype = self.memory.buffer(statement.out).dtype
        buffer = self.memory.scratch(own, dtype, statement.home, statement.position, tuple(packed))
        return placed(buffer, own), self.walked(own)

    def gathered(self, factor: int, band: Band, copies: list[Stmt]) -> Access:
        """A copy of a factor in its groups, made symmetric where it is not, with its weights."""
        access = self.statement.factors[factor]
        place, loops = self.scratch(access, band)
        changed = [g for g in self.groups if g.changed == factor]
        copy = replace(
            self.statement,
            out=place,
            expr=_symmetrised(access, changed),
            factors=(),
            band=loops,
            coeff=Fraction(1, prod(factorial(len(g.names)) for g in changed if not g.strict)),
            accumulate=False,
            orbit=tuple(g.names for g in self.grouping.weights(factor, self.statement)),
        )
        bound = bind_assign(copy, self.memory)
        copies.append(replace(bound, band=loops, block=()))
        return place

    def scattered(self) -> tuple[Access, tuple[Stmt, ...]]:
        """Scratch for the product, and the statement that adds all of its images to the target."""
        statement = self.statement
        place, _ = self.scratch(statement.out, statement.band)
        copy = replace(
            statement,
            expr=place,
            factors=(),
            band=held_by(statement.out, statement.band),
            coeff=Fraction(1),
        )
        return place, (bind_assign(copy, self.memory),)


def _symmetrised(access: Access, groups: Sequence[Group]) -> Expr:
    """The sum of the images of an access under the permutations of groups, with their signs."""
    images = [(1, access)]
    for group in groups:
        moves = []
        for order in permutations(range(len(group.names))):
            names = dict(zip(group.names, (group.names[n] for n in order), strict=True))
            moves.append((parity(order) if group.strict else 1, names))
        images = [(s * t, renamed_access(x, names)) for s, x in images for t, names in moves]
    if len(images) == 1:
        return access
    minus = Const(Fraction(-1))
    return Sum(tuple(x if sign > 0 else Prod((minus, x)) for sign, x in images))
