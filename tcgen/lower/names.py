"""Readable names of loop variables, and statements renamed to those of another statement.

Loop variables are index letters; the base of a tile of ``i`` is ``i0``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ..ir.expr import Access, Equal, Expr, Subscript, accesses_of, map_leaves
from ..ir.loops import Assign, BandVar, LoopVar
from ..ir.plan import FusionPlan, LoopId


def unique(name: str, taken: Container[str]) -> str:
    """``name``, or ``name_2``, ``name_3`` ... where it is taken."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def loop_variables(plan: FusionPlan) -> dict[LoopId, LoopVar]:
    """Variable of each shared loop, named after the first index that is bound to it."""
    variables: dict[LoopId, LoopVar] = {}
    taken: set[str] = set()
    for loop in dict.fromkeys(loop for visit in plan.visits for loop in visit.loops):
        bound = (i.name for visit in plan.visits for i, o in visit.bind if o == loop)
        letter = next(bound, loop.space.name)
        name = unique(f"{letter}0" if loop.tile else letter, taken)
        taken.add(name)
        outer = loop.order_after
        below = variables[outer].name if outer is not None else None
        variables[loop] = LoopVar(name, loop.space, loop.tile, below)
    return variables


def renamed_access(access: Access, names: Mapping[str, str]) -> Access:
    """An access with other variables; those that ``names`` lacks, and bases of tiles, stay."""
    return replace(
        access,
        subscripts=tuple(
            replace(s, variable=names.get(s.variable or "", s.variable)) for s in access.subscripts
        ),
    )


def renamed(
    stmt: Assign, access: Access, target: Access, band: tuple[BandVar, ...]
) -> Assign | None:
    """``stmt`` with its band renamed so that ``access`` becomes ``target``, or None if it cannot.

    ``stmt`` is outside of loops, and ``access`` its target or one of its operands. ``target`` is an
    access to the same buffer by the variables of ``band``, those of the other statement; new names
    differ from those that ``target`` lacks.
    """
    if stmt.orbit or any(v.below is not None for v in stmt.band):
        return None
    mine = {v.name: v for v in band}
    own = {v.name: v for v in stmt.band}
    names: dict[str, str] = {}
    for a, b in zip(target.subscripts, access.subscripts, strict=True):
        if a.variable is None or b.variable is None or b.variable not in own:
            if a != b:
                return None
            continue
        if a.variable not in mine or names.setdefault(b.variable, a.variable) != a.variable:
            return None
        if replace(own[b.variable], name=a.variable) != mine[a.variable]:
            return None
    if len(set(names.values())) != len(names):
        return None
    taken = {*mine, *own, *names.values()}
    for name in own:
        if name not in names:
            names[name] = name if name not in mine else unique(name, taken)
            taken.add(names[name])
    result = _with_names(stmt, names)
    return result if target in (result.out, *accesses_of(result.expr)) else None


def _with_names(stmt: Assign, names: dict[str, str]) -> Assign:
    """A statement with other names of its band; variables of host loops stay."""

    def subscript(s: Subscript) -> Subscript:
        return replace(s, variable=names.get(s.variable or "", s.variable))

    def leaf(node: object) -> Expr:
        match node:
            case Access():
                return renamed_access(node, names)
            case Equal(left, right):
                return Equal(subscript(left), subscript(right))
            case _:
                raise AssertionError(f"{node} is a leaf of an earlier level")

    band = tuple(replace(v, name=names[v.name]) for v in stmt.band)
    return replace(
        stmt, out=renamed_access(stmt.out, names), expr=map_leaves(stmt.expr, leaf), band=band
    )
