"""A lower bound on the peak from some of the arrays alone, and what it takes to reach it.

The peak of a program is decided by its few large arrays, while most of its loops and statements
belong to small ones. A search over a few arrays is small. Whatever the loops of the other arrays
might change is left out of its rules, and the others take nothing: each arrangement of the program
is one of this search too and counts no more here, so that its bound is a bound for the program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..sharing.candidates import Arrangement, Sharing, connected, unmodelled
from ..solver.memory_model import Found, FusionModel


def part_of(found: Sharing, arrays: Collection[int]) -> Sharing:
    """What a program allows if no other arrays than these, by position, may shrink."""
    bare = tuple(replace(i, axes=()) for i in found.instances)
    tensors = {found.instances[n].array for n in arrays}
    return connected(found.graph, bare, found.needs, {}, tensors)


def solve_part(
    found: Sharing,
    part: Sharing,
    arrays: Collection[int],
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    work: float,
    hint: Arrangement,
    *,
    at_least: int,
    below: int,
) -> Found:
    """Least peak of some arrays, as far as it is below a peak that is known.

    Args:
        found: what the program allows.
        part: what it allows these arrays alone.
        arrays: to count, by position among the instances.
        weights: by position, bytes of one element.
        extents: of the base spaces.
        work: deterministic seconds.
        hint: an arrangement to start from.
        at_least: a proven bound.
        below: what is sought is less than this.

    Returns:
        The bound holds for the whole program: ``below`` where nothing is below it. The arrangement
        need not be one of the program.

    Raises:
        PlanError: the solver refuses the model.
    """
    model = FusionModel(
        part,
        weights,
        extents,
        hint,
        peak=True,
        ordered=True,
        only=arrays,
        unmodelled=unmodelled(part, found),
        at_least=at_least,
        below=below,
    )
    return model.solve(work, bound_only=True)
