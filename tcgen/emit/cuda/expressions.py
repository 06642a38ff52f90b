"""CUDA text that all thread mappings use: types, numbers of points, values, stores.

Reads level 4 and the thread mapping of a kernel. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from ...dtypes import COMPLEX128, FLOAT64
from ...ir.chains import Var, chains, is_strict, packed_variables
from ...ir.expr import Access, Delta, Equal, Expr, map_leaves
from ...ir.loops import Assign, BandVar, Buffer, LoopVar
from ...ir.reduction import Reduction
from ...ir.tensor import Packing, Ref
from ..c.expressions import address, element, expression, length, loop_head, packed_place
from ..c.stores import combined, value_at_point
from ..printing import (
    axis_length,
    extent,
    is_complex,
    literal,
    nest,
    product,
    simplex,
    stored_lengths,
)
from ..scope import Scope

THREADS = "cuda/kernels/threads.cu"  # the template of kernels without tiles


def count(var: Var, scope: Scope) -> str:
    """Number of values that a variable takes, without the bound of a triangle."""
    if isinstance(var, BandVar) and var.base is not None:
        return f"tc_min({var.tile}, {extent(var.space)} - {scope.variables[var.base]})"
    if isinstance(var, LoopVar) and var.tile is not None:
        return f"tc_tiles({extent(var.space)}, {var.tile})"
    return length(var, scope)


def points(variables: Iterable[Var], scope: Scope) -> str:
    """Number of points of some variables; triangles of other variables count as rectangles."""
    return product([_count_of_chain(chain, scope) for chain in chains(variables)])


def _count_of_chain(chain: tuple[Var, ...], scope: Scope) -> str:
    first, *others = chain
    if not others:
        return count(first, scope)
    return f"({simplex(extent(first.space), len(chain), is_strict(others[0]))})"


def values(variables: Sequence[Var], rest: str, scope: Scope, number: str) -> list[str]:
    """Declare the variables of the point with a number, the last the fastest.

    ``rest`` is the name of a new variable in the generated text.
    """
    if not variables:
        return []
    first, *others = chains(variables)
    if not others:
        return _values_of_chain(first, scope, number)
    lines = [f"tc_int {rest} = {number};"]
    for chain in reversed(others):
        extents = _count_of_chain(chain, scope)
        extents = f"({extents})" if "*" in extents and len(chain) == 1 else extents
        lines += _values_of_chain(chain, scope, f"{rest}%{extents}")
        lines.append(f"{rest} /= {extents};")
    return [*lines, *_values_of_chain(first, scope, rest)]


def _values_of_chain(chain: tuple[Var, ...], scope: Scope, number: str) -> list[str]:
    """Declare the variables of a chain, and its number, which is the place on its packed axes."""
    first, *others = chain
    names = [scope.variables[v.name] for v in chain]
    if not others:
        return [f"const tc_int {names[0]} = {first_value(first, scope, number)};"]
    strict = is_strict(others[0])
    lines, bound = [f"const tc_int {_number(chain, scope)} = {number};"], extent(first.space)
    left = _number(chain, scope)
    for n, name in enumerate(names[:-1]):
        among = len(names) - n
        lines.append(f"const tc_int {name} = tc_largest<{among}, {int(strict)}>({left}, {bound});")
        left = f"{left} - {simplex(name, among, strict)}"
        bound = name if strict else f"{name} + 1"
    return [*lines, f"const tc_int {names[-1]} = {left};"]


def _number(chain: tuple[Var, ...], scope: Scope) -> str:
    return f"tc_number_{scope.variables[chain[0].name]}"


def first_value(var: Var, scope: Scope, number: str) -> str:
    """The value of a variable with a number: its first one for a variable that walks tiles."""
    if isinstance(var, BandVar) and var.base is not None:
        return f"{scope.variables[var.base]} + {number}"
    if isinstance(var, LoopVar) and var.tile is not None:
        return f"{number}*{var.tile}" if number.isidentifier() else f"({number})*{var.tile}"
    return number


def triangles(variables: Iterable[Var], scope: Scope) -> list[str]:
    """Conditions on triangular variables; loops enumerate the rectangle."""
    names, found = scope.variables, []
    for var in variables:
        if var.below is not None:
            relation = "<" if isinstance(var, BandVar) and var.strict else "<="
            found.append(f"{names[var.name]} {relation} {names[var.below]}")
    return found


def loop(var: Var, scope: Scope, body: list[str]) -> list[str]:
    """``for (tc_int i = 0; i < N_o; ++i) { ... }``."""
    return nest(loop_head(var, scope, "tc_int"), body)


def free_and_summed(stmt: Assign) -> tuple[tuple[BandVar, ...], tuple[BandVar, ...]]:
    """Band variables of the target, and summed ones, each in the band's order."""
    held = stmt.out.variables
    free = tuple(v for v in stmt.band if v.name in held)
    return free, tuple(v for v in stmt.band if v.name not in held)


# ``coeff * orbit * expr`` of one point.
value = partial(value_at_point, orbit="tc_orbit({names})")


def sum_type(stmt: Assign, scope: Scope) -> str:
    """Type of a statement's sums: double for single precision."""
    return (COMPLEX128 if is_complex(stmt.expr, scope) else FLOAT64).cuda_type


def store(stmt: Assign, scope: Scope, given: str) -> str:
    """``out = value;`` or ``out += value;``."""
    if scope.buffers[stmt.out.buffer].dtype != "complex128" and is_complex(stmt.expr, scope):
        given = f"creal({given})"
    place = element(stmt.out, scope)
    return combined(stmt.reduction, place, given) if stmt.accumulate else f"{place} = {given};"


def from_registers(expr: Expr, loads: Mapping[Access, str]) -> Expr:
    """The expression with the elements of ``loads`` in the registers of these names."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return Access(loads[node], ()) if isinstance(node, Access) and node in loads else node

    return map_leaves(expr, leaf)


def held_in_registers(loads: Mapping[Access, str], at: str, scope: Scope) -> Scope:
    """The scope with these registers, which are arrays that are read at the place ``at``."""
    buffers = {
        n: Buffer(n, (), (), scope.buffers[a.buffer].dtype, "register") for a, n in loads.items()
    }
    return scope.holding(buffers, {n: f"{n}[{at}]" for n in buffers})


def block_total(reduction: Reduction) -> str:
    """The statement that reduces the parts of a block's threads; thread 0 has the result."""
    if reduction is Reduction.SUM:
        return "tc_sum = tc_block_sum(tc_sum);"
    return f"tc_sum = tc_block_reduce<tc_by_{reduction.value}>(tc_sum);"


def start(stmt: Assign, scope: Scope) -> str:
    """The neutral element, with which a thread begins."""
    if stmt.reduction is Reduction.SUM:
        return literal(0 * stmt.coeff, scope.dtype)
    return expression(stmt.reduction.neutral, scope)


def when(conditions: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Lines under the conjunction of some conditions."""
    if not conditions:
        return list(lines)
    head = f"if ({' && '.join(conditions)})"
    return [f"{head} {lines[0]}"] if len(lines) == 1 else nest(head, lines)


def part_of_address(access: Access, variables: Sequence[BandVar], scope: Scope) -> str:
    """The terms of an address that depend on some variables, which :func:`values` declares.

    They have all variables of packed axes, or none.
    """
    wanted, terms = {v.name for v in variables}, []
    buffer = scope.buffers[access.buffer]
    lengths = stored_lengths(buffer)
    for n, (axis, packing) in enumerate(buffer.stored()):
        name = access.subscripts[axis if packing is None else packing.first].variable
        if name not in wanted or name is None or lengths[n] == "1":
            continue
        here = scope.variables[name]
        if packing is not None:
            here = _place_on(access, packing, variables, scope)
        terms.append(product([here, *lengths[n + 1 :]]))
    return " + ".join(terms) or "0"


def _place_on(access: Access, packing: Packing, variables: Sequence[BandVar], scope: Scope) -> str:
    """The place on packed axes: the number of a chain if it has the same variables in order."""
    names = packed_variables(access, packing, scope.buffers[access.buffer])
    for chain in chains(variables):
        same = len(chain) > 1 and [v.name for v in chain] == names
        if same and is_strict(chain[1]) == packing.antisymmetric:
            return _number(chain, scope)
    return f"({packed_place(access, packing, scope.walking(tuple(variables)))})"


def fixed_address(access: Access, variables: Iterable[str], scope: Scope) -> str:
    """The terms of the address that depend on none of these variables."""
    return address(access, scope, dict.fromkeys(variables, "0"))


def adjacent(access: Access, name: str, scope: Scope) -> bool:
    """True if the elements for two successive values of a variable are neighbours in memory."""
    buffer = scope.buffers[access.buffer]
    axes = [axis for axis, s in enumerate(access.subscripts) if s.variable == name]
    return axes == [buffer.order[-1]] and all(axes[0] not in p.axes for p in buffer.packed)


def even_conditions(access: Access, var: BandVar, width: int, scope: Scope) -> list[str]:
    """When groups of ``width`` neighbours begin at multiples of it in every row of an array."""
    buffer = scope.buffers[access.buffer]
    numbers = [axis_length(buffer, buffer.order[-1]), count(var, scope)]
    if var.base is not None:
        numbers.append(scope.variables[var.base])
    return [f"{text}%{width} == 0" for text in dict.fromkeys(numbers)]
