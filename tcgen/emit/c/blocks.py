"""Loops over blocks of two variables, and the loops within a block.

Before: ``for a, b``. After: ``for (tc_from_a) for (tc_from_b) for a in its block for b in its
block``. Of a triangle ``b < a``, the blocks that hold none of its points are left out.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.loops import Assign, BandVar
from ..scope import Scope
from .expressions import bounds

_START = "tc_from_"  # prefix of the variable that holds the start of a block


def blocked_pair(band: tuple[BandVar, ...], stmt: Assign) -> tuple[BandVar, ...]:
    """The two blocked variables in loop order, or ().

    The second may be bounded by the first, or by a variable outside of both: between the loops over
    blocks and those within a block no further bound is known.
    """
    pair = tuple(v for v in band if v.name in stmt.block)
    if len(pair) != 2:
        return ()
    between = band[band.index(pair[0]) + 1 : band.index(pair[1])]
    return () if pair[1].below in {v.name for v in between} else pair


def is_triangle(pair: tuple[BandVar, ...]) -> bool:
    """True if the second of two blocked variables is bounded by the first."""
    return bool(pair) and pair[1].below == pair[0].name


def collapsible(pair: tuple[BandVar, ...], stmt: Assign) -> int:
    """Loops over blocks that threads can divide: those of the target, with independent bounds."""
    return 2 if pair[1].name in stmt.out.variables and pair[1].below is None else 1


def start(var: BandVar, scope: Scope) -> str:
    """The variable in the source that holds the start of a block."""
    return f"{_START}{scope.variables[var.name]}"


def ends(pair: tuple[BandVar, ...], scope: Scope, side: str) -> tuple[str, str]:
    """The ends of the ranges of two blocked variables, for a block of the first one."""
    first, second = pair
    end = bounds(first, scope)[1]
    if not is_triangle(pair):
        return end, bounds(second, scope)[1]
    last = f"tc_min({start(first, scope)} + {side}, {end})" + (" - 1" if second.strict else "")
    if second.base is None:
        return end, last
    return end, f"tc_min({bounds(replace(second, below=None), scope)[1]}, {last})"


def over_blocks(var: BandVar, end: str, scope: Scope, side: str) -> str:
    """The head of the loop over the blocks of a variable."""
    name = start(var, scope)
    return f"for (int64_t {name} = {bounds(var, scope)[0]}; {name} < {end}; {name} += {side})"


def within_block(var: BandVar, scope: Scope, side: str) -> str:
    """The head of the loop over the points of a variable in a block."""
    name, (_, end) = scope.variables[var.name], bounds(var, scope)
    stop = f"tc_min({start(var, scope)} + {side}, {end})"
    return f"for (int64_t {name} = {start(var, scope)}; {name} < {stop}; ++{name})"


def points_in_block(var: BandVar, end: str, scope: Scope, side: str) -> str:
    """How many points of a variable, which ends at ``end``, a block has."""
    return f"tc_min({side}, {end} - {start(var, scope)})"
