"""Readable names: loop variables are index letters, the base of a tile of ``i`` is ``i0``."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ..ir.expr import Access
from ..ir.loops import LoopVar
from ..ir.plan import FusionPlan, LoopId


def unique(name: str, taken: Container[str]) -> str:
    """``name``, or ``name_2``, ``name_3`` ... where it is taken.

    Example:
        >>> unique("i", {"i", "i_2"})
        'i_3'
    """
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
