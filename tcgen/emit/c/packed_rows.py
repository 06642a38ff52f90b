"""Copies from packed arrays in C, row by row: positions are sorted once for a row.

Before: ``x[l,j,k] = t[l,j,k]`` of an antisymmetric t that stores ``l > j > k``. After, inside the
loops over l and j: both are sorted once, and k runs through the ranges below, between and above
them. In each range the order of the three is known, and with it the sign and the place, a
polynomial in k. The place and sign of other groups of axes are found outside of inner loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...dtypes import BY_NAME
from ...ir.expr import Access
from ...ir.loops import Assign, BandVar
from ...ir.reduction import Reduction
from ...ir.tensor import Packing
from ...resources import part
from ...simplices import parity
from ..printing import literal, nest, product
from ..scope import Scope
from .expressions import LOOPS, address, bounds, ordered_place, packed_positions
from .loop_transforms import blocked_pair
from .stores import counted_block, counted_value, store

_SIGN = "tc_sign_of"  # prefix of the sign of a group, 0 if two of its positions are equal
_PLACE = "tc_place"  # prefix of the place of a group
_AT = "tc_at"  # prefix of the sorted positions of a group
_ROW_SIGN = "tc_row_sign"


@dataclass(frozen=True, slots=True)
class PackedRow:
    """The innermost loop of a copy from a packed array, and the lines that it needs.

    ``declared`` has lines by the number of the loop inside which they stand, the outermost is 0.
    """

    declared: Mapping[int, list[str]]
    lines: list[str]


@dataclass(frozen=True, slots=True)
class _Group:
    """Packed axes whose positions the loops do not order."""

    number: int
    packing: Packing
    places: list[str]

    def at(self, rank: int) -> str:
        """The variable with the position of a rank, 0 for the largest."""
        return f"{_AT}_{self.number}_{rank}"

    @property
    def sign(self) -> str:
        """The variable with the sign."""
        return f"{_SIGN}_{self.number}"


def packed_row(band: tuple[BandVar, ...], stmt: Assign, scope: Scope) -> PackedRow | None:
    """The innermost loop of a copy from an array with packed axes in no known order, or None."""
    expr = stmt.expr
    if not isinstance(expr, Access) or stmt.orbit or stmt.reduction is not Reduction.SUM:
        return None
    if len(band) < 2 or len(band) < len(stmt.band) or blocked_pair(band, stmt):
        return None
    buffers = scope.buffers
    if "register" in (buffers[stmt.out.buffer].place, buffers[expr.buffer].place):
        return None
    groups = _unordered(expr, scope)
    names = [v.name for v in band]
    if not groups or any(not _is_plain(expr, g.packing, names) for g in groups):
        return None
    inner = scope.variables[names[-1]]
    declared: dict[int, list[str]] = {}
    row: _Group | None = None
    for group in groups:
        if inner in group.places:
            row = group
            continue
        depth = max(n for n, v in enumerate(names) if scope.variables[v] in group.places)
        declared.setdefault(depth, []).extend(_sorted(group, group.places))
        sorted_places = [group.at(n) for n in range(group.packing.count)]
        place = ordered_place(sorted_places, group.packing)
        declared[depth].append(f"const int64_t {_PLACE}_{group.number} = {place};")
    stmt = replace(stmt, coeff=stmt.coeff * _known_sign(expr, scope))
    places = {g.packing.first: f"{_PLACE}_{g.number}" for g in groups if g is not row}
    signs = [g.sign for g in groups if g.packing.antisymmetric and g is not row]
    lines = _row(_Copy(stmt, band[-1], scope), row, places, signs)
    return PackedRow(declared, lines)


def _unordered(expr: Access, scope: Scope) -> list[_Group]:
    """The groups of packed axes whose order the loops do not determine."""
    groups: list[_Group] = []
    for _, packing in scope.buffers[expr.buffer].stored():
        if packing is None:
            continue
        places = packed_positions(expr, scope, packing, {})
        if scope.order_of(places, strict=packing.antisymmetric) is None:
            groups.append(_Group(len(groups), packing, places))
    return groups


def _known_sign(expr: Access, scope: Scope) -> int:
    """The sign of the groups of packed axes whose order the loops determine."""
    sign = 1
    for _, packing in scope.buffers[expr.buffer].stored():
        if packing is not None and packing.antisymmetric:
            sort = scope.order_of(packed_positions(expr, scope, packing, {}), strict=True)
            sign *= 1 if sort is None else parity(sort)
    return sign


def _is_plain(expr: Access, packing: Packing, names: list[str]) -> bool:
    """True if each position of a group is another variable of the loops."""
    held = [expr.subscripts[axis] for axis in packing.axes]
    plain = all(s.variable in names and s.base is None and not s.offset for s in held)
    return plain and len({s.variable for s in held}) == packing.count


def _sorted(group: _Group, places: list[str]) -> list[str]:
    """Declare positions in order, and the sign of a group if it has one."""
    order = f"tc_order_{group.number}"
    call = f"tc_sort({len(places)}, &{order});"
    strict = group.packing.antisymmetric
    return part(
        LOOPS,
        "sorted",
        order=order,
        places=", ".join(places),
        sort=f"const int {group.sign} = {call}" if strict else f"(void){call}",
        positions=[f"const int64_t {group.at(n)} = {order}.at[{n}];" for n in range(len(places))],
    )


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy whose innermost loop is printed."""

    stmt: Assign
    var: BandVar
    scope: Scope

    @property
    def name(self) -> str:
        """The innermost variable in the source."""
        return self.scope.variables[self.var.name]

    def loop(self, start: str, stop: str, body: list[str]) -> list[str]:
        """A loop over a range of the innermost variable."""
        assert isinstance(self.stmt.expr, Access), "a copy reads one array"
        pragma = ["#pragma omp simd"] if self.stmt.expr.buffer != self.stmt.out.buffer else []
        head = f"for (int64_t {self.name} = {start}; {self.name} < {stop}; ++{self.name})"
        return [*pragma, *nest(head, body)]

    def element(self, sign: int, row_sign: list[str], places: Mapping[int, str]) -> list[str]:
        """The store of one element, at known places and with a known sign."""
        stmt, scope = self.stmt, self.scope
        assert isinstance(stmt.expr, Access), "a copy reads one array"
        coeff = stmt.coeff * sign
        factors = [] if abs(coeff) == 1 else [literal(coeff, scope.dtype)]
        element = f"{scope.names[stmt.expr.buffer]}[{address(stmt.expr, scope, {}, places)}]"
        minus = "-" if coeff == -1 else ""
        value = f"{minus}{'*'.join([*factors, *row_sign, element])}"
        return store(stmt, scope, counted_value(stmt, scope, value))

    def zeros(self, points: str) -> list[str]:
        """Lines for points that are zero; none if nothing is written or counted."""
        stmt, scope = self.stmt, self.scope
        if stmt.accumulate:
            return counted_block(stmt, scope, points)
        return store(stmt, scope, counted_value(stmt, scope, "0"))


def _row(
    copy: _Copy, group: _Group | None, places: Mapping[int, str], signs: list[str]
) -> list[str]:
    """The innermost loop, in as many ranges as its group has axes."""
    scope, name, (low, high) = copy.scope, copy.name, bounds(copy.var, copy.scope)
    before: list[str] = []
    if group is None:
        ranges = copy.loop(low, high, copy.element(1, [_ROW_SIGN] if signs else [], places))
    else:
        others = [p for p in group.places if p != name]
        sort = scope.order_of(others, strict=group.packing.antisymmetric)
        sign = 1
        if sort is None:
            before = _sorted(group, others)
            others = [group.at(n) for n in range(len(others))]
            signs = [*signs, group.sign] if group.packing.antisymmetric else signs
        else:
            others = [others[n] for n in sort]
            sign = parity(sort)
        ranges = _ranges(copy, group, others, sign, [_ROW_SIGN] if signs else [], places)
    if not signs:
        return [*before, *ranges]
    real = BY_NAME[scope.buffers[copy.stmt.out.buffer].dtype].c_real
    before.append(f"const {real} {_ROW_SIGN} = {product(signs)};")
    zeros = copy.zeros(f"tc_max(0, {high} - {low})")
    if not copy.stmt.accumulate:
        zeros = copy.loop(low, high, zeros)
    if not zeros:
        return [*before, *nest(f"if ({_ROW_SIGN} != 0)", ranges)]
    condition = f"{_ROW_SIGN} == 0"
    return [*before, *part(LOOPS, "either", condition=condition, then=zeros, otherwise=ranges)]


def _ranges(
    copy: _Copy,
    group: _Group,
    others: list[str],
    sign: int,
    row_sign: list[str],
    places: Mapping[int, str],
) -> list[str]:
    """Loops over the ranges below, between and above the other positions, the largest first."""
    name, (low, high) = copy.name, bounds(copy.var, copy.scope)
    strict = group.packing.antisymmetric
    lines: list[str] = []
    for rank in range(len(others), -1, -1):  # number of larger positions
        start, stop = low, high
        if rank < len(others):
            first = f"{others[rank]} + 1" if strict else others[rank]
            start = first if low == "0" else f"tc_max({low}, {first})"
        if rank:
            stop = f"tc_min({high}, {others[rank - 1]})"
        place = ordered_place([*others[:rank], name, *others[rank:]], group.packing)
        turned = sign * (-1) ** (group.places.index(name) + rank) if strict else 1
        found = {**places, group.packing.first: place}
        lines += copy.loop(start, stop, copy.element(turned, row_sign, found))
        equal = copy.zeros("1") if strict and rank else []
        if equal:
            other = others[rank - 1]
            inside = "" if low == "0" else f"{low} <= {other} && "
            body = [f"const int64_t {name} = {other};", *equal]
            lines += nest(f"if ({inside}{other} < {high})", body)
    return lines
