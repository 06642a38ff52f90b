"""Sums by the blocks of a kernel.

Before: ``Assign(out, expr, band)`` mapped to Sums. After: the threads of a block take the points of
the sum in turn, some at once, and reduce them. Elements for several points are loaded before the
first point is computed, so that many loads are in flight.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import BY_NAME
from ...hardware import WARP_THREADS
from ...ir.expr import Access, Equal, leaves
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Sums
from ...resources import part
from ..c.expressions import expression
from ..c.loop_transforms import joined
from ..c.stores import combined, total
from ..scope import Scope
from .expressions import (
    THREADS,
    block_total,
    count,
    first_value,
    free_and_summed,
    from_registers,
    held_in_registers,
    points,
    start,
    store,
    sum_type,
    triangles,
    value,
    values,
)
from .points import element_guards, summed_guards

_AT_ONCE = 4  # most points of a sum whose loads a thread has in flight
_HELD = 512  # most bytes of these loads: half of a thread's registers; the rest holds addresses


def sums_body(stmt: Assign, mapping: Sums, scope: Scope) -> list[str]:
    """The blocks of one element take the points of its sum in turn."""
    if not mapping.along:
        stmt, scope = joined(stmt, scope)
    free, summed = free_and_summed(stmt)
    kind = sum_type(stmt, scope)
    guards = [*summed_guards(free, summed, scope), *triangles(summed, scope)]
    walk = _walk_rows if mapping.along else _walk_numbers
    store = f"if (threadIdx.x == 0) (({kind} *)tc_scratch)[blockIdx.x] = tc_sum;"
    return part(
        THREADS,
        "sum",
        element=_which_element(stmt, free, scope, split=True),
        kind=kind,
        start=start(stmt, scope),
        walk=walk(stmt, mapping, guards, scope),
        reduce=block_total(stmt.reduction),
        store=store if mapping.splits > 1 else _final(stmt, scope),
    )


def _walk_numbers(stmt: Assign, mapping: Sums, guards: list[str], scope: Scope) -> list[str]:
    """The threads of all blocks take the numbers of points in turn."""
    _, summed = free_and_summed(stmt)
    first, step = "threadIdx.x", mapping.threads
    if mapping.splits > 1:
        first, step = f"tc_split*{step} + threadIdx.x", mapping.splits * step
    declare = [
        f"const tc_int tc_here = tc_n + tc_at*{step};",
        *values(summed, "tc_rest", scope, "tc_here"),
    ]
    moving = frozenset(v.name for v in summed)
    many = _points_at_once(stmt, moving, scope)
    inside = [f"tc_here < {points(summed, scope)}", *guards]
    return part(
        THREADS,
        "walk_points",
        first=first,
        points=points(summed, scope),
        step=many * step,
        body=_at_once(stmt, many, declare, inside, moving, scope),
    )


def _walk_rows(stmt: Assign, mapping: Sums, guards: list[str], scope: Scope) -> list[str]:
    """The warps of all blocks take rows in turn, each of a few values of the second variable."""
    _, summed = free_and_summed(stmt)
    band = {v.name: v for v in summed}
    *names, last = mapping.along
    lanes, several = tuple(band[name] for name in names), band[last]
    others = tuple(v for v in summed if v.name not in mapping.along)
    warps, index = mapping.threads // WARP_THREADS, f"threadIdx.x/{WARP_THREADS}"
    step = str(mapping.splits * warps)
    if mapping.splits > 1:
        index = f"tc_split*{warps} + {index}"
    rows = f"{points(others, scope)}*tc_groups" if others else "tc_groups"
    declare = [
        f"const tc_int {scope.variables[several.name]} ="
        f" {first_value(several, scope, 'tc_group + tc_at')};"
    ]
    inside = [f"tc_group + tc_at < {count(several, scope)}", *guards]
    moving = frozenset(mapping.along)
    many = _points_at_once(stmt, moving, scope)
    return part(
        THREADS,
        "walk_rows",
        count=count(several, scope),
        at_once=many,
        first=index,
        rows=rows,
        step=step,
        others=values(others, "tc_rest", scope, "tc_n/tc_groups"),
        warp=WARP_THREADS,
        lanes=points(lanes, scope),
        values=values(lanes, "tc_left_x", scope, "tc_x"),
        body=_at_once(stmt, many, declare, inside, moving, scope),
    )


def _points_at_once(stmt: Assign, moving: frozenset[str], scope: Scope) -> int:
    """Points of a sum whose loads a thread has in flight."""
    loads = {a for a in leaves(stmt.expr) if isinstance(a, Access) and _moves(a, moving)}
    size = sum(BY_NAME[scope.buffers[a.buffer].dtype].itemsize for a in loads)
    many = _AT_ONCE
    while many > 1 and many * size > _HELD:
        many //= 2
    return many


def _moves(access: Access, moving: frozenset[str]) -> bool:
    return not moving.isdisjoint(access.variables)


def _at_once(
    stmt: Assign,
    many: int,
    declare: list[str],
    inside: list[str],
    moving: frozenset[str],
    scope: Scope,
) -> list[str]:
    """Add so many points to the sum of a thread; ``tc_at`` counts them.

    ``declare`` has the declarations of the variables of a point, ``inside`` its conditions.
    ``moving`` variables differ between the points: accesses with them are loaded first.
    """
    moved = [a for a in leaves(stmt.expr) if isinstance(a, Access) and _moves(a, moving)]
    loads = {a: f"tc_value{n}" for n, a in enumerate(dict.fromkeys(moved))}
    loaded = replace(stmt, expr=from_registers(stmt.expr, loads))
    here = held_in_registers(loads, "tc_at", scope)
    add = combined(stmt.reduction, "tc_sum", value(loaded, here, coefficient=False))
    types = {n: BY_NAME[scope.buffers[a.buffer].dtype].cuda_type for a, n in loads.items()}
    counted = stmt.orbit or any(isinstance(leaf, Equal) for leaf in leaves(stmt.expr))
    return part(
        THREADS,
        "points_at_once",
        at_once=many,
        arrays=[f"{kind} {name}[{many}];" for name, kind in types.items()],
        declare=declare,
        inside=" && ".join(inside),
        loads=[
            f"{name}[tc_at] = tc_inside[tc_at] ? {expression(a, scope)} : {types[name]}(0);"
            for a, name in loads.items()
        ],
        declare_again=declare if counted else [],
        add=add,
    )


def sums_finish(stmt: Assign, mapping: Sums, scope: Scope) -> list[str]:
    """The second pass: a block adds the parts of one element in a fixed order."""
    free, _ = free_and_summed(stmt)
    kind = sum_type(stmt, scope)
    each = f"((const {kind} *)tc_scratch)[tc_n*(tc_int)gridDim.x + blockIdx.x]"
    add = combined(stmt.reduction, "tc_sum", each)
    return part(
        THREADS,
        "sum",
        element=_which_element(stmt, free, scope, split=False),
        kind=kind,
        start=start(stmt, scope),
        walk=part(THREADS, "walk_parts", splits=mapping.splits, threads=mapping.threads, add=add),
        reduce=block_total(stmt.reduction),
        store=_final(stmt, scope),
    )


def _which_element(
    stmt: Assign, free: tuple[BandVar, ...], scope: Scope, *, split: bool
) -> list[str]:
    """Declare the element's variables and the split; blocks without an element return."""
    if not free:
        return ["const tc_int tc_split = blockIdx.x;"] if split else []
    lines = part(THREADS, "split", points=points(free, scope)) if split else []
    lines += values(free, "tc_left", scope, "tc_element" if split else "(tc_int)blockIdx.x")
    guards = element_guards(stmt, free, scope)
    return [*lines, f"if (!({' && '.join(guards)})) return;"] if guards else lines


def _final(stmt: Assign, scope: Scope) -> str:
    return f"if (threadIdx.x == 0) {store(stmt, scope, total(stmt.coeff, scope.dtype))}"
